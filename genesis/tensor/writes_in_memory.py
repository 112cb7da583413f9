"""Elements of a tensor in memory are set there at once: no program then depends on which elements a script has picked."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from math import inf
from typing import Any

import numpy as np

from genesis.execution.realize import realize
from genesis.ir.dtypes import DType, bool_, int64
from genesis.ops.registry import OPERATIONS
from genesis.ops.view_gradient import is_injective
from genesis.runtime.devices import CPU
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.in_memory import EXACT, SMALL, computed_memory, is_chosen_anew, number_for, values_in_memory
from genesis.tensor.in_place import note, takes_writes
from genesis.tensor.owned_memory import FEW, written_at_once
from genesis.tracing.memory import Memory
from genesis.tracing.source_line import user_line
from genesis.tracing.state import open_trace, thread_state
from genesis.tracing.trace import LOCK, Array, Change, nowhere


# NumPy's functions that round as kernels do; they run in a context without its warnings.
ROUNDED_ALIKE = frozenset((np.add, np.subtract, np.multiply, np.divide))
_quiet = copy_context()
_quiet.run(np.seterr, all="ignore")


def computed_in_memory(tensor: Tensor, function: np.ufunc, operand: object) -> bool:
    """Put `function` of a view and a number or tensor in the view's place, as `set_in_memory` does; whether that was done."""

    def compute(part: Memory, dtype: DType) -> bool:
        known = values_in_memory(operand, dtype) if isinstance(operand, Tensor) else number_for(operand, dtype)
        values = part.read(dtype)
        if known is None or dtype not in EXACT or dtype is bool_ or values.nbytes > FEW:
            return False
        _quiet.run(function, values, known, values)
        return True

    if tensor.__class__ is not Tensor or tensor._base is None or not set_in_memory(tensor, ..., None, compute):
        return False
    array_of(tensor)  # `x[i] += y` goes on with a view that is up to date
    return True


def set_in_memory(tensor: Tensor, index: object, value: object, write: Callable[[Memory, DType], bool] | None = None) -> bool:
    """Set elements of a tensor in memory, or of a small one just filled, as `tensor[index] = value`, or have `write` change
    all that it can; whether that was done.

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
        if _is_set(tensor, root, at, value, SMALL, write):
            return True
        pending = [t._array for t in (root, value) if isinstance(t, Tensor) and t._array.memory is None]
        is_same = write is not None or isinstance(at, np.ndarray)
        if is_same or not all(map(_may_be_computed, pending)) or not is_chosen_anew(open_trace(), *user_line(), repr(at)):
            return False
        for array in pending:  # otherwise each choice would be a program, with all that follows
            realize(array)
        return _is_set(tensor, root, at, value, inf)


def _is_set(
    tensor: Tensor, root: Tensor, at: Any, value: object, limit: float, write: Callable[[Memory, DType], bool] | None = None
) -> bool:
    """Set elements, of up to `limit` bytes, if the tensor's memory allows it; whether that was done."""
    dtype = root._array.node.dtype
    if (given := write or _given(value, dtype, limit)) is None:
        return False

    def assign(target: Memory, is_known: bool) -> bool:
        try:
            if write is not None:
                if not write(target, dtype):
                    return False
            elif at is Ellipsis and isinstance(given, Memory) and given.layout.shape == target.layout.shape:
                target.overwrite(given, dtype)
            elif _is_little(part := target.read(dtype), at) or limit > SMALL:
                part[at] = given.read(dtype) if isinstance(given, Memory) else given
            else:
                return False
        except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError):  # the row says what would be right
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


def _is_plain(tensor: Tensor, root: Tensor) -> bool:
    """Whether a write to `tensor` changes elements of its root, and nothing else."""
    if root._requires_grad or root._keeps_derivation or root._versions or root._is_inference or root.__class__ is not Tensor:
        return False
    if tensor is root:
        return True
    has_more = tensor._requires_grad or tensor._detached or tensor._versions or tensor._element_map
    return not has_more and is_injective(tensor.storage_layout)


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
    """The number as NumPy writes it, or a tensor's memory; None for what is not in memory, or what NumPy converts
    otherwise. A small pending value is computed now, if few calls lead to it."""
    if not isinstance(value, Tensor):
        return number_for(value, dtype)
    array = value._array
    if array.memory is None and not array.node.differentiable and array.node.nbytes <= FEW and takes_writes(array.trace):
        realize(array)
    return computed_memory(value, dtype, limit)
