"""Elements of a tensor in memory are set there at once: no program then depends on which elements a script has picked."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from genesis.execution.realize import realize
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType, bool_, int64
from genesis.ops.registry import OPERATIONS
from genesis.ops.view_gradient import is_injective
from genesis.runtime.devices import CPU
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.in_memory import SMALL, computed_memory, is_chosen_anew, number_for, values_in_memory
from genesis.tensor.in_place import note, takes_writes
from genesis.tensor.owned_memory import FEW, written_at_once
from genesis.tracing.memory import Memory
from genesis.tracing.source_line import user_line
from genesis.tracing.state import open_trace, thread_state
from genesis.tracing.trace import LOCK, Array, Change, nowhere


class Draw(NamedTuple):
    """Random numbers that a `draw_program` draws, times a factor plus a shift."""

    program: AnyFunction
    factor: float
    shift: float


def set_in_memory(tensor: Tensor, index: object, value: object) -> bool:
    """Set elements of a tensor in memory, or of a small one just filled, as `tensor[index] = value`; whether that was done.

    The index is NumPy's: ints and slices, or one tensor. Where a gradient, a recorded call, a transform or the outside may ask,
    nothing is done, nor where something does not fit.
    """
    state = thread_state
    if state.recorder is not None or state.deferred or tensor.__class__ is not Tensor:
        return False
    with LOCK:
        root = root_of(tensor)
        dtype = root._array.node.dtype
        if not _is_plain(tensor, root) or tensor.dtype is not dtype:
            return False
        if isinstance(value, Tensor) and value._base is root:  # `x[i] += y` ends so, and has been written
            return False
        if (at := _index(index)) is None:
            return False
        if _is_set(tensor, root, at, value, SMALL):
            return True
        pending = [t._array for t in (root, value) if isinstance(t, Tensor) and t._array.memory is None]
        if not all(map(_may_be_computed, pending)) or not _is_chosen_anew(at):
            return False
        for array in pending:  # otherwise each choice would be a program, with all that follows
            realize(array)
        return _is_set(tensor, root, at, value, inf)


def _is_set(tensor: Tensor, root: Tensor, at: Any, value: object, limit: float) -> bool:
    """Set elements, of up to `limit` bytes, if the tensor's memory allows it; whether that was done."""
    dtype, layout = root._array.node.dtype, tensor._layout
    if (given := _given(value, dtype, limit)) is None:
        return False

    def assign(memory: Memory, is_known: bool) -> bool:
        target = memory if layout is None else memory.at(layout, dtype, dtype)
        try:
            if isinstance(given, Draw):
                if target.strides is not None or given.program(target, given.factor, given.shift) is not None:
                    return False
            elif at is Ellipsis and isinstance(given, Memory) and given.layout.shape == target.layout.shape:
                target.overwrite(given, dtype)
            elif _is_little(part := target.read(dtype), at) or limit > SMALL:
                part[at] = given.read(dtype) if isinstance(given, Memory) else given
            else:
                return False
        except (ArithmeticError, IndexError, TypeError, ValueError):  # the row says what would be right
            return False
        if is_known:
            change = Change(nowhere, (0, *user_line(), None, (OPERATIONS["index_put"],)))
            note(root._array, change)
            if tensor is not root:
                note(tensor._array, change)
        return True

    return written_at_once(root, tensor, assign)


def _is_little(whole: np.ndarray, at: Any) -> bool:
    """Whether so few elements are set that kernels would not be faster; a mask is searched whole."""
    if whole.nbytes <= FEW:
        return True
    if isinstance(at, np.ndarray):
        return at.dtype != np.bool_ and at.size * (whole[0].nbytes if len(whole) else 0) <= SMALL
    return whole[at].nbytes <= SMALL


def _may_be_computed(array: Array) -> bool:
    """Whether a pending value has no derivation, and an open trace that this thread is not in the middle of."""
    trace = array.trace
    return trace is not None and not trace.closed and trace.device is CPU and not array.node.differentiable


def _is_chosen_anew(at: Any) -> bool:
    """Whether a line sets other elements each time."""
    if isinstance(at, np.ndarray):
        return False
    parts = at if isinstance(at, tuple) else (at,)
    choice = tuple([(p.start, p.stop, p.step) if isinstance(p, slice) else p for p in parts])
    return is_chosen_anew(open_trace(), *user_line(), choice)


def _is_plain(tensor: Tensor, root: Tensor) -> bool:
    """Whether a write to `tensor` changes elements of its root, and nothing else."""
    if root._requires_grad or root._keeps_derivation or root._versions or root._is_inference or root.__class__ is not Tensor:
        return False
    if tensor is root:
        return True
    has_more = tensor._requires_grad or tensor._detached or tensor._versions or tensor._element_map
    return not has_more and is_injective(tensor.layout)


def _index(index: object) -> Any:
    """The index of an array; None for others than ints, slices and single tensors in memory."""
    if isinstance(index, Tensor):
        return values_in_memory(index, index.dtype) if index.dtype in (int64, bool_) and index.shape else None
    if index.__class__ is int or index is Ellipsis:
        return index
    parts = index if isinstance(index, tuple) else (index,)
    return index if all(map(_is_plain_part, parts)) else None


def _is_plain_part(part: object) -> bool:
    """Whether an int, a slice of ints that goes forward, or the ellipsis."""
    if isinstance(part, slice):
        bounds = part.start, part.stop, part.step
        return all([end is None or end.__class__ is int for end in bounds]) and (part.step is None or part.step > 0)
    return part.__class__ is int or part is Ellipsis


def _given(value: object, dtype: DType, limit: float) -> Any:
    """The number as NumPy writes it, a tensor's memory, or a draw; None for what is not in memory, or what NumPy converts
    otherwise. A small pending value is computed now, if few calls lead to it."""
    if not isinstance(value, Tensor):
        return value if isinstance(value, Draw) else number_for(value, dtype)
    array = value._array
    if array.memory is None and not array.node.differentiable and array.node.nbytes <= FEW and takes_writes(array.trace):
        realize(array)
    return computed_memory(value, dtype, limit)
