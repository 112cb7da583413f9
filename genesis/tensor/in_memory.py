"""Values of small tensors in the host's memory, read by NumPy: no program then depends on which tensors a script has picked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import STORED, DType, bool_, float32, float64, int8, int16, int32, int64, uint8
from genesis.ir.shapes import numel
from genesis.ops.reference import evaluate_all
from genesis.runtime.devices import CPU
from genesis.tensor.handle import Tensor, from_values, new_root, root_of
from genesis.tracing.memory import Memory, joined_rows
from genesis.tracing.source_line import user_line
from genesis.tracing.state import open_trace, thread_state
from genesis.tracing.trace import LOCK, Array, Trace, critical

MANY = 8  # of fewer, a script meets each choice soon
SMALL = 1 << 18  # bytes of one: larger ones are read by the kernels that use them
LITTLE = 1 << 10  # bytes of one that is made at once: kernels need not read what they can make
_NODES = 16  # that lead to a pending value which is computed at once
EXACT = frozenset((float32, float64, bool_, uint8, int8, int16, int32, int64))  # NumPy rounds numbers as kernels do
_EXACT_NODES = frozenset(("input", "constant", "scalar", "iota", "view", "cast"))
_LEAST_LARGE = 1 << 63  # of numbers that rows may refuse, and NumPy warns of

_OFTEN = 3  # choices that a line has made, before it is known to make others each time
_MOST = 4096  # lines that are remembered
VARYING: set[tuple[int, int]] = set()  # the lines that do
_chosen: dict[tuple[int, int], dict[Any, Any]] = {}  # by the code's address and instruction: codes are compared word by word


def values_in_memory(tensor: object, dtype: DType) -> np.ndarray | None:
    """The values of a small tensor, as `computed_memory` has them, to be read at once."""
    memory = computed_memory(tensor, dtype)
    return None if memory is None else memory.read(dtype)


def computed_memory(tensor: object, dtype: DType, limit: float = SMALL) -> Memory | None:
    """The memory of a tensor of `dtype` of at most `limit` bytes; None unless its values have been computed, on the host.

    None too if a gradient may ask where they came from. The caller holds LOCK, as a compiled call in another thread may write
    them.
    """
    if tensor.__class__ is not Tensor or tensor._element_map is not None:  # type: ignore[attr-defined]
        return None
    node = tensor._array.node  # type: ignore[attr-defined]
    if node.dtype is not dtype or (tensor._requires_grad and thread_state.grad_enabled):  # type: ignore[attr-defined]
        return None
    root = tensor if tensor._base is None else root_of(tensor)  # type: ignore[attr-defined, arg-type]
    whole = root._array  # type: ignore[attr-defined]
    memory = whole.memory
    if memory is None or (buffer := memory.buffer).device is not CPU or whole.node.dtype is not dtype:
        return None
    if buffer.nbytes > limit and node.nbytes > limit:
        return None
    if root is not tensor:
        part, is_seen = tensor._array.memory, tensor._seen == root._changes  # type: ignore[attr-defined]
        if is_seen and part is not None and part.buffer is buffer:
            return part  # type: ignore[no-any-return]
        is_derived = thread_state.grad_enabled and tensor.requires_grad  # type: ignore[attr-defined]
        return None if is_derived else memory.at(tensor.storage_layout, dtype, dtype)  # type: ignore[attr-defined, no-any-return]
    return memory  # type: ignore[no-any-return]


def all_in_memory(tensors: Sequence[object]) -> list[Memory] | None:
    """`computed_memory` of many tensors of one dtype, or of few of other shapes each time; None for others, and if a recorded
    call or a transform may ask for them. The caller holds LOCK.
    """
    state = thread_state
    nodes = [tensor._array.node for tensor in tensors if tensor.__class__ is Tensor]  # type: ignore[attr-defined]
    if not nodes or len(nodes) < len(tensors) or nodes[0].dtype in STORED or state.recorder is not None or state.deferred:
        return None
    if len(nodes) < MANY and (any([node.differentiable or node.nbytes > LITTLE for node in nodes]) or not is_chosen_anew(
            open_trace(), *user_line(), tuple([node.shape for node in nodes]))):
        return None
    dtype, found = nodes[0].dtype, []
    for tensor in tensors:
        memory = computed_memory(tensor, dtype) or _evaluated_memory(tensor, dtype)
        if memory is None:
            return None
        found.append(memory)
    return found


def is_chosen_anew(trace: Trace, code: CodeType | None, instruction: int, choice: Any) -> bool:
    """Whether a line chooses otherwise each time: the first of a trace, as the loop of an unrolled program does not count."""
    if code is None or critical.running:
        return False
    if len(_chosen) > _MOST:
        _chosen.clear()
        VARYING.clear()
    place = id(code), instruction
    choices = _chosen.setdefault(place, {})
    if len(choices) < _OFTEN and trace.reference not in choices.values():
        choices[choice] = trace.reference
        if len(choices) == _OFTEN:
            VARYING.add(place)
    return place in VARYING


def _evaluated_memory(tensor: Any, dtype: DType) -> Memory | None:
    """The memory of a little pending tensor to which few calls lead that never round, as NumPy computes it."""
    array: Array = tensor._array
    trace, needed, waiting = array.trace, dict[int, Any](), [array.index]
    is_pending = array.memory is None and trace is thread_state.traces.get(CPU.name)
    if not is_pending or array.node.dtype is not dtype or tensor._base is not None or tensor._requires_grad:
        return None
    while waiting:
        if (index := waiting.pop()) not in needed:
            needed[index] = node = trace.nodes[index]  # type: ignore[union-attr]
            rounds = node.dtype.category >= 2 if node.op in ("add", "mul") else node.op not in _EXACT_NODES
            if rounds or node.differentiable or node.nbytes > LITTLE or len(needed) > _NODES:
                return None
            waiting += node.inputs
    given = {k: trace.input_at[k].memory.read(node.dtype) for k, node in needed.items() if node.op == "input"}  # type: ignore[union-attr]
    values = evaluate_all(needed, [array.index], given, trace.scalars)[array.index]  # type: ignore[arg-type, union-attr]
    tensor._array = Array.over(memory := Memory.of(values, dtype, CPU), dtype)
    return memory


def filled_in_memory(trace: Trace, arguments: Sequence[Any], code: CodeType | None, instruction: int) -> Tensor | None:
    """The tensor of a new call of a row that `fills`, where its line makes other sizes each time."""
    (value, shape, dtype), state = arguments, thread_state
    is_free = state.recorder is None and not state.deferred and trace.device is CPU
    if not is_free or number_for(value, dtype) is None or numel(shape) * dtype.itemsize > LITTLE:
        return None
    return from_values(np.full(shape, value, dtype.numpy), dtype) if is_chosen_anew(trace, code, instruction, shape) else None


def joined_in_memory(join: AnyFunction, tensors: Sequence[Tensor], *settings: Any) -> Tensor | None:
    """What NumPy's `join` makes of tensors, as `all_in_memory` has them; None if it has not, or of other arguments."""
    if not all([setting.__class__ is int for setting in settings]):
        return None
    with LOCK:
        memories = all_in_memory(tensors)
        if memories is None:
            return None
        dtype, part = tensors[0].dtype, memories[0].layout.shape
        if join in (np.stack, np.concatenate) and not any(settings) and part:
            extents = (len(memories), *part) if join is np.stack else (len(memories) * part[0], *part[1:])
            if (rows := joined_rows(memories, extents, dtype)) is not None:
                return new_root(Array.over(rows, dtype))
        try:
            return from_values(join([memory.read(dtype) for memory in memories], *settings), dtype)
        except (TypeError, ValueError):  # the row says what would be right
            return None


def selected_in_memory(tensor: Tensor, index: Tensor | list[int]) -> Tensor | None:
    """What NumPy selects with one mask or list of ints; None if not both are in memory, or it does not fit."""
    state, dtype = thread_state, tensor._array.node.dtype
    if state.recorder is not None or state.deferred or dtype in STORED:
        return None
    with LOCK:
        values = values_in_memory(tensor, dtype)
        at = values_in_memory(index, bool_) if isinstance(index, Tensor) else index
        try:
            return None if values is None or at is None else from_values(values[at], dtype)
        except IndexError:  # the row says what would be right
            return None


@cache
def _limits(dtype: DType) -> np.iinfo[Any]:
    return np.iinfo(dtype.numpy)


def number_for(value: Any, dtype: DType) -> Any:
    """The number, if NumPy writes it into arrays of `dtype` as kernels do; None for others."""
    if type(value) not in (bool, int, float):  # a traced number says that its class is int
        return None
    if value in (0, 1):
        return value
    if dtype.category == 1:
        info = _limits(dtype)
        return value if type(value) is int and info.min <= value <= info.max else None
    if type(value) is int and abs(value) > 1 << 53:  # NumPy would round it twice
        return None
    return value if dtype in EXACT and not _LEAST_LARGE <= abs(value) < math.inf else None
