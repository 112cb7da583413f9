"""From device to device: copies of values, and the way back for gradients.

A copy enters the trace of its device as an input that names the value, of another trace, it was made of. Values of flushed
traces enter later ones the same way, so backward goes from device to device as from trace to trace, and sends the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.execution.flush import realize
from genesis.ir.replayable import replayable_module
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import Device
from genesis.tracing.recording_hooks import is_recording, refuse
from genesis.tracing.state import recorded, thread_state
from genesis.tracing.trace import LOCK, Array, Trace


def sent(arrays: Sequence[Array], device: Device, leaves: Sequence[object] = ()) -> list[Array]:
    """The values of `arrays` on `device`: the array itself where it is there, else a copy, from which gradients return.

    `leaves` has the tensor that wants the gradient for an array which is the value of a leaf, None for others.
    """
    if is_recording() and any(array.device is not device for array in arrays):
        refuse("values go from device to device")
    results = []
    own: dict[Device, Trace] = {}
    with LOCK:
        for array, leaf in zip(arrays, leaves or [None] * len(arrays), strict=True):
            if array.device is device:
                results.append(array)
                continue
            memory = realize(array).copied(array.node.dtype, device)
            if leaf is None and not (array.node.differentiable and thread_state.grad_enabled):
                results.append(Array.realized(memory.buffer, memory.layout, array.node.dtype))
                continue
            trace, index = array.trace, array.index
            if leaf is not None:
                trace = own.get(array.device) or own.setdefault(array.device, Trace(array.device))
                index = trace.enter_variable(leaf, array)
            assert trace is not None
            results.append(_entered(Array(trace, index, trace.nodes[index], memory), device))
        for trace in own.values():  # leaves and nothing else: no value of theirs is read by any gradient
            trace.end()
            for container in (trace.inputs, trace.input_at, trace.entered):
                container.clear()
    return results


def _entered(copy: Array, device: Device) -> Array:
    """The result, in the open trace of `device`, of a call that clones `copy`: with a gradient of its own."""
    clone = OPERATIONS["clone"]

    def enter(trace: Trace) -> Array:
        index = trace.enter_array(copy)
        return trace.handle(trace.record((clone, True, index), lambda graph: clone(graph.value(index))).result)

    return recorded(device, enter)


replayable_module(__name__)
