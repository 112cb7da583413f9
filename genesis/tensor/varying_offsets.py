"""Views at varying offsets: where a script takes another part each time, the offset becomes an argument of the program.

A view's offset is part of the program otherwise, as then it folds into the kernels that read it.
"""

from __future__ import annotations

import weakref
from functools import lru_cache
from types import CodeType
from typing import Any

from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import STORED
from genesis.ir.shapes import Shape, numel
from genesis.ops.layout import LAYOUT_RULES, Layout, contiguous_layout
from genesis.ops.registry import OPERATIONS, Operation
from genesis.tensor.handle import CallArguments, Tensor, tensor_of
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Trace
from genesis.tracing.trie import Key, TrieNode

# A gather and its gradient take some 8 us more than a view and its, less than a thousandth of a plan, and with large tensors a
# quarter of a step. So a view's offset becomes an argument at its place's first fork for a tensor of up to _FEW elements, and
# at the seventh for others: of up to eight parts that a script picks each has its plan.
_FEW = 64
_FORKS = 7

_MOST = 4096  # places that are remembered

_Place = tuple[int, int, Operation, Shape, Shape, Shape]  # code, instruction, operation, and what part of what it takes

# Steps after which an offset has made programs fork, by place; None where the offset is an argument by now.
_forks: dict[_Place, list[weakref.ref[TrieNode]] | None] = {}


def with_offset_as_argument(
    trace: Trace, key: Key, arguments: CallArguments, attributes: Attributes | None, code: CodeType | None, instruction: int
) -> tuple[Operation, CallArguments, None] | None:
    """The call that takes a view's offset as an argument of the program, for a call that is new in the trie.

    None unless the offset varies at its place: after the same calls, so what loops take that are unrolled does not.
    """
    operation = key[0]
    if not (operation.is_view or operation.name == "put") or thread_state.recorder is not None or thread_state.deferred:
        return None
    first = arguments[0]
    if code is None or attributes or not isinstance(first, Tensor) or first.dtype in STORED:
        return None
    try:
        at = _layout(operation, first.shape, *arguments[2 if operation.name == "put" else 1 :])
    except (ValueError, TypeError, IndexError):  # which the definition raises, too, or lists
        return None
    if at is None:
        return None
    place = id(code), instruction, operation, first.shape, at.shape, at.strides
    if not _varies(place, at.offset, trace.step, key):
        return None
    offset = tensor_of(trace.handle(trace.enter_scalar(at.offset)))  # so 0 and 1 are arguments too
    if operation.name == "put":
        return OPERATIONS["dynamic_put"], (first, arguments[1], offset, at.shape, at.strides), None
    return OPERATIONS["dynamic_view"], (first, offset, at.shape, at.strides), None


def _varies(place: _Place, offset: int, step: TrieNode, key: Key) -> bool:
    """Whether the offset varies at a place, where the call `key` with this one is new after `step`."""
    if len(_forks) > _MOST:
        _forks.clear()
    shape, forks = place[3], _forks.setdefault(place, [])
    if forks is None:
        return True
    if step.offsets is None:
        step.offsets = {}
    planned = step.offsets.setdefault(place, {})
    if planned and offset not in planned.values():
        forks.append(weakref.ref(step))
    planned[key] = offset
    if len(forks) < (1 if numel(shape) <= _FEW else _FORKS):
        return False
    for reference in forks:  # otherwise what follows would be planned for each of the offsets
        if (forked := reference()) is not None and forked.offsets is not None:
            for former in forked.offsets.pop(place, ()):
                forked.children.pop(former, None)
    _forks[place] = None
    return True


@lru_cache(maxsize=4096)
def _layout(operation: Operation, shape: Shape, *arguments: Any) -> Layout | None:
    """The elements of a tensor of this shape that a view or a write refers to."""
    if operation.name in ("put", "view_at"):
        return Layout(*arguments) if operation.name == "put" else arguments[0]
    return LAYOUT_RULES[operation.name](contiguous_layout(shape), *arguments)
