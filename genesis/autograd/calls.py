"""The calls of a trace as backward sees them.

What a call added to the trace - casts, expansions, the parts of a composite - lies between the position where it began
and the position where the next one began; its key names the operation and the positions of its arguments.
"""

from __future__ import annotations

import bisect
from typing import Any

from genesis.ops.registry import Operation
from genesis.tracing.trace import CallLine, Trace

__all__ = ["arguments_of", "call_at", "derived_at", "node_name", "span_of"]

_PLACED = {"input", "scalar", "variable"}  # put down as arguments of the call that comes next


def call_at(trace: Trace, index: int) -> range:
    """The positions of the call that the node at `index` belongs to. What derive recorded counts node by node."""
    first, *_, key = _line_at(trace, index)
    return range(index, index + 1) if key[0] in ("copy", "derive") else span_of(trace, first)


def derived_at(trace: Trace, index: int) -> tuple[Trace, int]:
    """Where the derivation of a value stands. What was written without recording has that of what was there before."""
    while True:
        origin = trace.input_at.get(index)
        if origin is not None and origin.trace is not None:
            trace, index = origin.trace, origin.index
        elif trace.nodes[index].op == "with_value":
            index = trace.nodes[index].inputs[0]
        else:
            return trace, index


def _line_at(trace: Trace, index: int) -> CallLine:
    line = trace.call_at(index)
    assert line is not None
    return line


def span_of(trace: Trace, first: int) -> range:
    """The positions of the nodes that the call beginning at `first` added."""
    place = bisect.bisect_right(trace.lines, first, key=lambda line: line[0])
    end = trace.lines[place][0] if place < len(trace.lines) else len(trace.nodes)
    while end > first and trace.nodes[end - 1].op in _PLACED:
        end -= 1
    return range(first, end)


def node_name(trace: Trace, index: int) -> str:
    """`AddBackward` for a call of `add`, `ExpBackward` for one of a custom `Exp`."""
    custom = trace.backward.custom_calls.get(index)
    if custom is not None:
        return f"{custom.name}Backward"
    key = _line_at(trace, index)[-1]
    if key[0] == "custom":
        return f"{key[1]}Backward"
    name = key[0].name if isinstance(key[0], Operation) else trace.nodes[index].op
    return "".join(part.capitalize() for part in name.split("_")) + "Backward"


def arguments_of(trace: Trace, index: int) -> list[int | None]:
    """The positions of a call's arguments, in order; None for one where no gradient could flow."""
    operation, *tokens = _line_at(trace, index)[-1]
    if operation == "custom":
        return list(tokens[1])
    if not isinstance(operation, Operation):  # a gradient that derive recorded: its nodes, one by one
        return list(trace.nodes[index].inputs)
    return [p for place, token in enumerate(tokens[1:]) for p in _positions(token, place in operation.operands)]


def _positions(token: Any, operand: bool) -> list[int | None]:
    """The positions of the tensors in one argument of a call; None for a number that stands for a tensor."""
    if isinstance(token, int):
        return [token]
    if not isinstance(token, tuple) or not token:
        return []
    if token[0] == "tensors":
        return [t if isinstance(t, int) else None for t in token[1:]]
    if operand and isinstance(token[0], type):
        return [None]
    named: list[int | None] = [
        pair[1] for pair in token if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], int)
    ]
    return named if all(isinstance(pair, tuple) and isinstance(pair[0], str) for pair in token) else []
