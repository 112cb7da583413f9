"""Elements of a tensor in memory are set there at once: no program then depends on which elements a script has picked."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from math import inf
from typing import Any

import numpy as np

from genesis.execution.realize import realize
from genesis.ir.dtypes import DType, bool_, int64
from genesis.ops.registry import OPERATIONS, Operation
from genesis.ops.view_gradient import is_injective
from genesis.runtime.devices import CPU
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.in_memory import EXACT, SMALL, computed_memory, is_chosen_anew, number_for, values_in_memory
from genesis.tensor.in_place import in_place, note, takes_writes
from genesis.tensor.known_calls.calls import KnownCalls
from genesis.tensor.owned_memory import FEW, written_at_once
from genesis.tracing.memory import Memory
from genesis.tracing.source_line import user_line
from genesis.tracing.state import open_trace, thread_state
from genesis.tracing.trace import LOCK, Change, nowhere


# NumPy's functions that round as kernels do; they run in a context without its warnings.
ROUNDED_ALIKE = frozenset((np.add, np.subtract, np.multiply, np.divide))
_quiet = copy_context()
_quiet.run(np.seterr, all="ignore")


def set_in_memory(tensor: Tensor, index: object, value: object, write: Callable[[Memory, DType], bool] | None = None) -> bool:
    """Set elements of a tensor in memory, or of a small one just filled, as `tensor[index] = value`, or have `write` change
    all that it can; whether that was done.

    The index is of ints, slices and tensors. Where a gradient, a recorded call, a transform or the outside may ask,
    nothing is done, nor where something does not fit.
    """
    state = thread_state
    if state.recorder is not None or state.deferred or tensor.__class__ is not Tensor:
        return False
    with LOCK:
        root = root_of(tensor)
        if not _is_plain(tensor, root) or tensor.dtype is not root.dtype:
            return False
        if isinstance(value, Tensor) and value._base is root:  # `x[i] += y` ends so, and has been written
            return False
        if (at := _index(index)) is None:
            return False
        if _is_set(tensor, root, at, value, SMALL, write):
            return True
        pending = [t._array for t in (root, value) if isinstance(t, Tensor) and t._array.memory is None]
        is_open = all([(t := a.trace) and not t.closed and t.device is CPU and not a.node.differentiable for a in pending])
        is_same = write is not None or isinstance(at, np.ndarray) or not is_open
        is_near = pending and all([a.node.nbytes <= FEW and takes_writes(a.trace) for a in pending])  # few calls lead to it
        if is_same or not (is_near or is_chosen_anew(open_trace(), *user_line(), repr(at))):
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
    if whole.nbytes <= FEW or not isinstance(at, np.ndarray):
        return whole.nbytes <= FEW or whole[at].nbytes <= SMALL
    return at.dtype != np.bool_ and at.size * (whole[0].nbytes if len(whole) else 0) <= SMALL


def _is_plain(tensor: Tensor, root: Tensor) -> bool:
    """Whether a write to `tensor` changes elements of its root, and nothing else."""
    if root._requires_grad or root._keeps_derivation or root._versions or root._is_inference or root.__class__ is not Tensor:
        return False
    if tensor is root:
        return True
    has_more = tensor._requires_grad or tensor._detached or tensor._versions or tensor._element_map
    return not has_more and is_injective(tensor.storage_layout)


def _index(index: object) -> Any:
    """The index as NumPy takes it; None for others than ints, slices and tensors in memory, and if slices separate these."""
    if index.__class__ is int or index is Ellipsis:
        return index
    if not isinstance(index, tuple):
        return _part_of_index(index)
    parts = tuple(map(_part_of_index, index))
    kinds = [*map(type, parts)]
    taken = [k for k, kind in enumerate(kinds) if kind in (int, np.ndarray)]
    is_apart = np.ndarray in kinds and taken[-1] - taken[0] >= len(taken)  # PyTorch then orders axes otherwise
    return None if is_apart or type(None) in kinds else parts


def _part_of_index(part: object) -> Any:
    """An int, an ellipsis, a slice of ints that goes forward, or a tensor's values, an int if it is 0-d; None for others."""
    if isinstance(part, slice):
        bounds = part.start, part.stop, part.step
        if not all([end is None or end.__class__ is int for end in bounds]) or (part.step is not None and part.step <= 0):
            return None
    if isinstance(part, Tensor):
        values = values_in_memory(part, part.dtype) if part.dtype is int64 or (part.dtype is bool_ and part.shape) else None
        return values if part.shape or values is None else int(values)
    return part if part.__class__ in (int, slice) or part is Ellipsis else None


def _given(value: object, dtype: DType, limit: float) -> Any:
    """The number as NumPy writes it, or a tensor's memory; None for what is not in memory, or what NumPy converts
    otherwise. A small pending value is computed now, if few calls lead to it."""
    if not isinstance(value, Tensor):
        return number_for(value, dtype)
    array = value._array
    if array.memory is None and not array.node.differentiable and array.node.nbytes <= FEW and takes_writes(array.trace):
        realize(array)
    return computed_memory(value, dtype, limit)


def known_writes(by_python: Callable[..., Tensor | None]) -> KnownCalls:
    """Writes of (tensor, index, value, how): a value by an index if `how` is None, the result of an operation, or a draw."""
    return KnownCalls("genesis_write", by_python, _index, number_for, _quiet.run)


def _combined(tensor: Tensor, _: object, operand: object, operation: Operation) -> Tensor:
    """Put the result of an operation on a view and a number or tensor in the view's place: in memory, as `set_in_memory` does,
    where that can be."""

    def compute(part: Memory, dtype: DType) -> bool:
        known = values_in_memory(operand, dtype) if isinstance(operand, Tensor) else number_for(operand, dtype)
        values = part.read(dtype)
        if known is None or dtype not in EXACT or dtype is bool_ or values.nbytes > FEW:
            return False
        _quiet.run(operation.reference, values, known, values)  # type: ignore[arg-type]
        return True

    if not set_in_memory(tensor, ..., None, compute):
        return in_place(tensor, operation, (operand,))
    array_of(tensor)  # `x[i] += y` goes on with a view that is up to date
    return tensor


combined = known_writes(_combined)
