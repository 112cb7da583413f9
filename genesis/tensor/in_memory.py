"""Values of small tensors in the host's memory, read by NumPy: no program then depends on which tensors a script has picked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import STORED, DType, bool_, float32, float64, int8, int16, int32, int64, uint8
from genesis.ir.replayable import replayable_module
from genesis.runtime.devices import CPU
from genesis.runtime.references import is_sole_owner
from genesis.tensor.handle import Tensor, from_values, root_of
from genesis.tracing.memory import Memory
from genesis.tracing.state import thread_state
from genesis.tracing.trace import LOCK, Array

MANY = 8  # of fewer, a script meets each choice soon
FEW = 1 << 16  # bytes of a tensor that is copied before a write, if others may see its memory
SMALL = 1 << 18  # bytes of one: larger ones are read by the kernels that use them
_EXACT = frozenset((float32, float64, bool_, uint8, int8, int16, int32, int64))  # NumPy rounds numbers as kernels do
_LEAST_LARGE = 1 << 63  # of numbers that rows may refuse, and NumPy warns of


def values_in_memory(tensor: object, dtype: DType) -> np.ndarray | None:
    """A copy of the values of a small tensor of `dtype`; None unless they have been computed, on the host.

    None too if a gradient may ask where they came from. The caller holds LOCK, as a compiled call in another thread may write
    them.
    """
    if not isinstance(tensor, Tensor) or tensor.__class__ is not Tensor or tensor._element_map is not None:
        return None
    node = tensor._array.node
    if node.dtype is not dtype or node.nbytes > SMALL or (tensor._requires_grad and thread_state.grad_enabled):
        return None
    root = root_of(tensor)
    memory = root._array.memory
    if memory is None or memory.buffer.device is not CPU or root._array.node.dtype is not dtype:
        return None
    if root is not tensor:
        memory = memory.at(tensor.layout, dtype, dtype)
    return np.frombuffer(memory.values_as_bytes(dtype), dtype.numpy).reshape(node.shape)


def written_at_once(root: Tensor, tensor: Tensor, write: Callable[[Memory], bool]) -> bool:
    """Have `write` change memory with the values of `root`, for `tensor`, which is it or its view; whether it has.

    The caller holds LOCK. A signal handler that writes to the tensor in between has done so before.
    """
    while True:
        changes, memory = root._changes, writable_memory(root, tensor)
        if memory is None or not write(memory):
            return False
        # Arrays are immutable: another value, another one.
        array = Array.realized(memory.buffer, memory.layout, root._array.node.dtype)
        if root._changes == changes:
            root._array, root._changes = array, changes + 1
            return True


def writable_memory(root: Tensor, tensor: Tensor) -> Memory | None:
    """Memory with the values of `root` that only it, and `tensor`, which is it or its view, will see: its own, or new memory if
    it is small.

    None for other values, pending ones but for constants, and those that the outside sees. The caller holds LOCK, and has no
    names for their arrays.
    """
    memories = [root._array.memory]
    if memories[0] is None:
        return _filled(root._array)
    if memories[0].buffer.device is not CPU or memories[0].buffer.shared:
        return None
    is_own = is_sole_owner([root._array], 1) and is_sole_owner(memories, 1)
    views = 0
    if tensor is not root and tensor._array.memory is not None and tensor._array.memory.buffer is memories[0].buffer:
        views = 1
        is_own = is_own and is_sole_owner([tensor._array], 1) and is_sole_owner([tensor._array.memory], 1)
    if is_own and is_sole_owner([memories[0].buffer], 1 + views):
        return memories[0]
    return memories[0].copied(root.dtype, CPU) if root._array.node.nbytes <= FEW else None


def _filled(array: Array) -> Memory | None:
    """The memory of a small pending value that is one constant everywhere."""
    node, trace = array.node, array.trace
    if node.nbytes > FEW or trace is None or trace is not thread_state.traces.get(CPU.name) or trace.closed:
        return None
    if array.memory is not None or node.op != "view" or any(node.attrs["strides"]):
        return None
    source = trace.nodes[node.inputs[0]]
    if source.shape or source.op not in ("constant", "scalar"):
        return None
    value = number_for(source.attrs["value"] if source.op == "constant" else trace.scalars[source.attrs["slot"]], node.dtype)
    return None if value is None else Memory.of(np.full(node.shape, value, node.dtype.numpy), node.dtype, CPU)


def all_in_memory(tensors: Sequence[object]) -> list[np.ndarray] | None:
    """`values_in_memory` of many tensors of one dtype; None for few, and if a recorded call or a transform may ask for them."""
    state = thread_state
    first = tensors[0] if len(tensors) >= MANY else None
    if not isinstance(first, Tensor) or state.recorder is not None or state.deferred:
        return None
    dtype, found = first._array.node.dtype, []
    if dtype in STORED:
        return None
    with LOCK:
        for tensor in tensors:
            values = values_in_memory(tensor, dtype)
            if values is None:
                return None
            found.append(values)
    return found


def joined_in_memory(join: AnyFunction, tensors: Sequence[Tensor], *settings: Any) -> Tensor | None:
    """What NumPy's `join` makes of tensors, as `all_in_memory` has them; None if it has not, or of other arguments."""
    values = all_in_memory(tensors)
    if values is None or not all([setting.__class__ is int for setting in settings]):
        return None
    try:
        whole = join(values, *settings)
    except (TypeError, ValueError):  # the row says what would be right
        return None
    return from_values(whole, tensors[0].dtype)


def number_for(value: object, dtype: DType) -> Any:
    """The number, if NumPy writes it into arrays of `dtype` as kernels do; None for others."""
    if not isinstance(value, int | float) or value.__class__ not in (bool, int, float):
        return None
    if value in (0, 1):
        return value
    if dtype.category == 1:
        info = np.iinfo(dtype.numpy)
        return value if value.__class__ is int and info.min <= value <= info.max else None
    return value if dtype in _EXACT and not _LEAST_LARGE <= abs(value) < math.inf else None


replayable_module(__name__)
