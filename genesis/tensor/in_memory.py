"""Many small tensors in memory are joined there at once, and elements of a small one set: no program then depends on which
tensors, and which elements, a script has picked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import STORED, DType, bool_, float32, float64, int8, int16, int32, int64, uint8
from genesis.ir.graph import Node
from genesis.ir.replayable import replayable_module
from genesis.ops.registry import OPERATIONS
from genesis.ops.view_gradient import is_injective
from genesis.runtime.devices import CPU
from genesis.tensor.handle import Tensor, from_values, root_of
from genesis.tensor.in_place import note
from genesis.tracing.memory import Memory
from genesis.tracing.source_line import user_line
from genesis.tracing.state import thread_state
from genesis.tracing.trace import LOCK, Array, Change, nowhere

MANY = 8  # of fewer, a script meets each choice soon
_SMALL = 1 << 20  # bytes of one: larger ones are read by the kernels that use them


def values_in_memory(tensors: object) -> list[np.ndarray] | None:
    """Copies of the values of many small tensors of one dtype; None unless all have been computed, on the host.

    None too if a gradient, a recorded call or a transform may ask where the values came from; and for views of a part, whose
    offsets are numbers of a program anyway.
    """
    state = thread_state
    if not isinstance(tensors, list | tuple) or len(tensors) < MANY or state.recorder is not None or state.deferred:
        return None
    found = []
    with LOCK:  # a compiled call in another thread may write them
        dtype = None
        for tensor in tensors:
            if tensor.__class__ is not Tensor or (tensor._requires_grad and state.grad_enabled):
                return None
            root = tensor if tensor._base is None else root_of(tensor)
            node, memory = root._array.node, root._array.memory
            dtype = dtype or node.dtype
            if memory is None or memory.buffer.device is not CPU or node.nbytes > _SMALL or node.dtype is not dtype:
                return None
            if dtype in STORED:
                return None
            if root is not tensor and not _is_whole(tensor, node):
                return None
            found.append(np.frombuffer(memory.values_as_bytes(dtype), dtype.numpy).reshape(tensor._array.node.shape))
    return found


def _is_whole(view: Tensor, root: Node) -> bool:
    """Whether a view has its root's elements, in order: it differs in its shape alone."""
    layout = view.layout
    same = view._element_map is None and view._array.node.dtype is root.dtype
    return same and layout.is_contiguous and not layout.offset and view._array.node.numel == root.numel


def joined_in_memory(join: AnyFunction, tensors: Sequence[Tensor], *settings: Any) -> Tensor | None:
    """What NumPy's `join` makes of tensors, as `values_in_memory` has them; None if it has not, or of other arguments."""
    values = values_in_memory(tensors)
    if values is None or not all([setting.__class__ is int for setting in settings]):
        return None
    try:
        whole = join(values, *settings)
    except (TypeError, ValueError):  # the row says what would be right
        return None
    return from_values(whole, tensors[0].dtype)


# ---- elements ----
_FEW = 1 << 16  # bytes: a write copies the tensor, as arrays are immutable
_EXACT = frozenset((float32, float64, bool_, uint8, int8, int16, int32, int64))  # NumPy rounds numbers as kernels do
_LEAST_LARGE = 1 << 63  # of numbers that rows may refuse, and NumPy warns of


def set_in_memory(tensor: Tensor, index: object, value: object) -> bool:
    """Set elements of a small tensor in memory, or one just filled, as `tensor[index] = value`; whether that was done.

    The index is NumPy's: ints and slices, or one tensor. Where a gradient, a recorded call, a transform or the outside may ask,
    nothing is done, nor where something does not fit.
    """
    state = thread_state
    if state.recorder is not None or state.deferred or tensor.__class__ is not Tensor:
        return False
    with LOCK:
        root = root_of(tensor)
        before, dtype = root._array, root._array.node.dtype
        if before.node.nbytes > _FEW or not _is_plain(tensor, root) or tensor.dtype is not dtype:
            return False
        at, given = _index(index), _given(value, dtype)
        if at is None or given is None:
            return False
        try:
            whole = _whole(before)
            if whole is None:
                return False
            part, layout = whole, tensor._layout
            if layout is not None:
                size = dtype.itemsize
                part = np.ndarray(layout.shape, whole.dtype, whole, layout.offset * size, [s * size for s in layout.strides])
            part[at] = given
        except (ArithmeticError, IndexError, TypeError, ValueError):  # the row says what would be right
            return False
        change = Change(nowhere, (0, *user_line(), None, (OPERATIONS["index_put"],)))
        note(before, change)
        if tensor is not root:
            note(tensor._array, change)
        memory = Memory.of(whole, dtype, CPU)
        root._array = Array.realized(memory.buffer, memory.layout, dtype)
        root._changes += 1
    return True


def _is_plain(tensor: Tensor, root: Tensor) -> bool:
    """Whether a write to `tensor` changes elements of its root, and nothing else."""
    if root._requires_grad or root._keeps_derivation or root._is_inference or root.__class__ is not Tensor:
        return False
    if tensor is root:
        return True
    has_more = tensor._requires_grad or tensor._detached or tensor._untracked or tensor._element_map
    return not has_more and is_injective(tensor.layout)


def _index(index: object) -> Any:
    """The index of an array; None for others than ints, slices and single tensors in memory."""
    if isinstance(index, Tensor):
        return None if index.dtype not in (int64, bool_) or not index.shape else _values(index)
    parts = index if isinstance(index, tuple) else (index,)
    known = all([part.__class__ is int or part is Ellipsis or (
        isinstance(part, slice) and all([end is None or end.__class__ is int for end in (part.start, part.stop, part.step)])
        and (part.step is None or part.step > 0)) for part in parts])
    return index if known else None


def _given(value: object, dtype: DType) -> Any:
    """The value as NumPy writes it; None for what is not in memory, or needs a conversion that NumPy does otherwise."""
    if isinstance(value, Tensor):
        return _values(value) if value.dtype is dtype and not (value._requires_grad and thread_state.grad_enabled) else None
    return number_for(value, dtype)


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


def _values(tensor: Tensor) -> np.ndarray | None:
    """A copy of the values in memory."""
    node, memory = tensor._array.node, tensor._array.memory
    if tensor.__class__ is not Tensor or tensor._base is not None or memory is None or memory.buffer.device is not CPU:
        return None
    return np.frombuffer(memory.values_as_bytes(node.dtype), node.dtype.numpy).reshape(node.shape)


def _whole(array: Array) -> np.ndarray | None:
    """A copy of a root's elements: in memory that is its own, or those of a constant that it is filled with."""
    node, memory = array.node, array.memory
    if memory is not None:
        if memory.buffer.device is not CPU or memory.buffer.shared:
            return None
        return np.frombuffer(bytearray(memory.values_as_bytes(node.dtype)), node.dtype.numpy).reshape(node.shape)
    trace = array.trace
    if trace is None or trace is not thread_state.traces.get(CPU.name) or trace.closed:
        return None
    if node.op != "view" or any(node.attrs["strides"]):
        return None
    source = trace.nodes[node.inputs[0]]
    if source.shape or source.op not in ("constant", "scalar"):
        return None
    value = number_for(source.attrs["value"] if source.op == "constant" else trace.scalars[source.attrs["slot"]], node.dtype)
    return None if value is None else np.full(node.shape, value, node.dtype.numpy)


replayable_module(__name__)
