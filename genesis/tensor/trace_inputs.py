"""Values of tensors enter a trace as its inputs."""

from __future__ import annotations

from genesis.execution.realize import readable
from genesis.tensor.handle import Tensor
from genesis.tensor.new_programs import ended_before
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Array, Trace
from genesis.tracing.trie import BYTE_LIMIT

_SNAPSHOT_BYTES = 1 << 20


def enter(trace: Trace, tensor: Tensor, array: Array, may_end: bool = False) -> int:
    """The position in `trace` of `array`, the value of `tensor` now or before; -1 if an argument before has ended the trace, or
    this one ends it, which it `may`.
    """
    if trace.done:
        return -1
    leaf = tensor if tensor._requires_grad and not array.node.differentiable and thread_state.grad_enabled else None
    if array.trace is trace:
        return trace.enter_array(array, leaf)
    memory = array.memory
    if memory is None:
        array = readable(array)
        memory = array.memory
    buffer = memory.buffer  # type: ignore[union-attr]
    if buffer.device is not trace.device:  # the first other device in this thread: `call` restarts and checks devices
        thread_state.multi_device = trace.closed = True
    if may_end and trace.is_new_input(array, leaf) and ended_before(trace):
        return -1
    if (buffer._owner is not None or buffer._flat is not None) and buffer.shared:
        _snapshot(trace, array)
    index = trace.enter_array(array, leaf)
    recorder = thread_state.__dict__["recorder"]  # half of what the attribute of a thread-local costs
    if recorder is not None:
        recorder.input_entered(trace, tensor, array)
    return index


def _snapshot(trace: Trace, array: Array) -> None:
    """Fix the present values of an array that the outside can write to: copy it, or flush soon if it is large."""
    memory, dtype = array.memory, array.node.dtype
    assert memory is not None
    if array.node.nbytes > _SNAPSHOT_BYTES:
        trace.weight += BYTE_LIMIT
        return
    device = memory.buffer.device
    index = trace.entered.get(array)
    if index is not None and device.memory.is_host:
        then = trace.input_at[index].memory
        if memory.values_as_bytes(dtype) == then.values_as_bytes(dtype):  # type: ignore[union-attr]
            return
    trace.entered[array] = trace.enter_array(Array(array.trace, array.index, array.node, memory.copied(dtype, device)))
