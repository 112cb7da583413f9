"""Views at varying offsets: where a script takes another part each time, the offset becomes an argument of the program.

A view's offset is part of the program otherwise, as then it folds into the kernels that read it.
"""

from __future__ import annotations

from typing import Any

from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import STORED
from genesis.ops.layout import LAYOUT_RULES, Layout, contiguous_layout
from genesis.ops.registry import OPERATIONS, Operation
from genesis.tensor.handle import CallArguments, Tensor, tensor_of
from genesis.tracing.source_line import user_line
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Trace
from genesis.tracing.trie import Key

_OFTEN = 8  # plans of a place, for two offsets at least, before its offset becomes an argument
_MOST = 4096  # places that are remembered
_planned: dict[Any, list[tuple[Key, int]]] = {}  # place -> keys and offsets of its calls that were new, the last ones


def with_offset_as_argument(
    trace: Trace, key: Key, arguments: CallArguments, attributes: Attributes | None
) -> tuple[Operation, CallArguments, None] | None:
    """The call that takes a view's offset as an argument of the program, for a call that is new in the trie.

    None unless the offset varies at its place, and for other operations. The place is the user's instruction and the number of
    calls before it, so unrolled loops are no variation.
    """
    operation = key[0]
    if not (operation.is_view or operation.name == "put") or thread_state.recorder is not None or thread_state.deferred:
        return None
    first = arguments[0]
    if not isinstance(first, Tensor) or first.dtype in STORED:
        return None
    at = _layout(operation, first, arguments, attributes or {})
    if at is None:
        return None
    place = (user_line(), len(trace.lines), operation, first.shape, at.shape, at.strides)
    planned = _planned.setdefault(place, [])
    if len(planned) < _OFTEN or len({offset for _, offset in planned}) == 1:
        planned[:] = *planned[-_OFTEN + 1 :], (key, at.offset)
        if len(_planned) > _MOST:
            _planned.clear()
        return None
    for former, _ in planned:  # otherwise what follows would be planned for each of them
        trace.step.children.pop(former, None)
    offset = tensor_of(trace.handle(trace.enter_scalar(at.offset)))  # so 0 and 1 are arguments too
    if operation.name == "put":
        return OPERATIONS["dynamic_put"], (first, arguments[1], offset, at.shape, at.strides), None
    return OPERATIONS["dynamic_view"], (first, offset, at.shape, at.strides), None


def _layout(operation: Operation, first: Tensor, arguments: CallArguments, attributes: Attributes) -> Layout | None:
    """The elements that a view or a write refers to; None where its definition raises."""
    if operation.name == "put":
        return Layout(*arguments[2:], **attributes)
    if operation.name == "view_at":
        return arguments[1]  # type: ignore[no-any-return]
    try:
        return LAYOUT_RULES[operation.name](contiguous_layout(first.shape), *arguments[1:], **attributes)
    except (ValueError, TypeError, IndexError):
        return None
