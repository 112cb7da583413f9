"""The autograd graph as recorded in traces: calls with their arguments, and leaves at the ends.

A call's nodes (casts, expansions, the parts of a composite) are the positions from its first to the next call's first; its key
has the operation and the positions of its arguments.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable
from operator import itemgetter

from genesis.ops.registry import Operation
from genesis.ops.signatures import operand_names
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tracing.token import arguments_in, is_number, members_in
from genesis.tracing.trace import ENTERED, Array, CallLine, Trace


def derived_at(trace: Trace, index: int) -> tuple[Trace, int]:
    """The trace and position that define a value's gradient. An unrecorded write keeps the gradient from before it."""
    while True:
        origin = trace.input_at.get(index)
        if origin is not None and origin.trace is not None:
            trace, index = origin.trace, origin.index
        elif trace.nodes[index].op == "with_value":
            index = trace.nodes[index].inputs[0]
        else:
            return trace, index


def call_at(trace: Trace, index: int) -> range:
    """The positions of the call that added the node at `index`. Nodes recorded by derive are calls of their own."""
    first, *_, key = _line_at(trace, index)
    return range(index, index + 1) if key[0] in ("copy", "derive") else span_of(trace, first)


def span_of(trace: Trace, first: int) -> range:
    """The positions of the nodes that the call beginning at `first` added."""
    following = bisect.bisect_right(trace.lines, first, key=itemgetter(0))
    end = trace.lines[following][0] if following < len(trace.lines) else len(trace.nodes)
    while end > first and trace.nodes[end - 1].op in ENTERED:
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


def operation_at(trace: Trace, index: int) -> tuple[str, tuple[object, ...]] | None:
    """(the called operation's name, its arguments as recorded); None for another kind of call."""
    operation, *tokens = _line_at(trace, index)[-1]
    return (operation.name, tuple(tokens[1:])) if isinstance(operation, Operation) else None


def arguments_of(trace: Trace, index: int) -> list[int | None]:
    """The positions of a call's arguments, in order; None for arguments without a gradient."""
    key = _line_at(trace, index)[-1]
    if key[0] == "custom":
        return list(key[2])
    if not isinstance(key[0], Operation):  # a gradient recorded by derive: node by node
        return list(trace.nodes[index].inputs)
    tokens, named = arguments_in(key)
    given = [(token, k in key[0].operands) for k, token in enumerate(tokens)]
    given += [(token, name in operand_names(key[0])) for name, token in named.items()]
    return [p for token, operand in given for p in _positions(token, operand)]


def _line_at(trace: Trace, index: int) -> CallLine:
    line = trace.call_at(index)
    assert line is not None
    return line


def _positions(token: object, operand: bool) -> list[int | None]:
    """The positions of the tensors in one argument of a call; None for a number as an operand."""
    found = [member if type(member) is int else None for member in members_in(token)]
    return found if found != [None] or (operand and is_number(token)) else []


def derivation(arrays: Iterable[Array], until: Collection[tuple[Trace | None, int]] = ()) -> dict[Trace, set[int]]:
    """Trace -> positions of the values that `arrays` depend on, excluding `until` and what these depend on."""
    reached: dict[Trace, set[int]] = {}
    waiting = [(array.trace, array.index) for array in arrays if array.node.differentiable]
    while waiting:
        trace, index = value = waiting.pop()
        if trace is None or value in until or index in reached.setdefault(trace, set()):
            continue
        reached[trace].add(index)
        origin = trace.input_at.get(index)
        if origin is not None:
            waiting.append((origin.trace, origin.index))
        waiting += [(trace, i) for i in trace.nodes[index].inputs if trace.nodes[i].differentiable]
    return reached


def leaves_of(tensor: Tensor) -> list[Tensor]:
    """The leaves that `backward` from `tensor` would reach, in the order of their first use."""
    uses = [
        (trace.number, index, trace.variables[index])
        for trace, reached in derivation([array_of(tensor)]).items() for index in reached if index in trace.variables
    ]
    return list({id(leaf): leaf for *_, leaf in sorted(uses, key=itemgetter(0, 1))}.values())
