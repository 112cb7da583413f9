"""Transfers between devices: copies of values, and the return of gradients.

A copy enters the trace of its device as an input that refers to its original in another trace, as values of flushed traces
enter later ones. So backward goes from device to device as from trace to trace, and sends the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.execution.realize import realize
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import Device
from genesis.tracing.recording_hooks import is_recording, refuse
from genesis.tracing.state import recorded, thread_state
from genesis.tracing.trace import LOCK, Array, Trace


def sent(arrays: Sequence[Array], device: Device, leaves: Sequence[object] = ()) -> list[Array]:
    """The values of `arrays` on `device`: the array itself if it is there, else a copy, whose gradients are sent back.

    `leaves` has for the value of a leaf the tensor that gets the gradient, None for others.
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
                results.append(Array.over(memory, array.node.dtype))
                continue
            trace, index = array.trace, array.index
            if leaf is not None:
                trace = own.get(array.device) or own.setdefault(array.device, Trace(array.device))
                index = trace.enter_array(array, leaf)
            assert trace is not None
            results.append(_entered(Array(trace, index, trace.nodes[index], memory), device))
        for trace in own.values():  # only leaves, whose values no gradient reads
            trace.end(keeps=True)
            trace.input_at.clear()
    return results


def _entered(copy: Array, device: Device) -> Array:
    """`copy` cloned by a call in the open trace of `device`, so that it has a gradient of its own."""
    clone = OPERATIONS["clone"]

    def enter(trace: Trace) -> Array:
        index = trace.enter_array(copy)
        return trace.handle(trace.record((clone, True, index), lambda graph, key: clone(graph.value(index))).result)

    return recorded(device, enter)
