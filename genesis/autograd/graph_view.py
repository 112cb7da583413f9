"""`grad_fn`: a read-only view of the trace, one node for each call that a user made.

What a call added to the trace - casts, expansions, the parts of a composite - lies between the position where it began
and the position where the next one began; its `key` names the operation and the positions of its arguments.
"""

from __future__ import annotations

import bisect
from typing import Any

from genesis.ops.registry import Operation
from genesis.tensor import Tensor, array_of, attribute
from genesis.trace import Trace

__all__ = ["GradientNode"]


class GradientNode:
    """The step of backward that belongs to one call, or the accumulation into a leaf.

    >>> import genesis
    >>> x = genesis.tensor(1., requires_grad=True)
    >>> y = x * 2 + 3
    >>> y.grad_fn, y.grad_fn.next_functions
    (<AddBackward>, ((<MulBackward>, 0), (None, 0)))
    """

    __slots__ = ("_index", "_trace")

    def __init__(self, trace: Trace, index: int) -> None:
        while (origin := trace.input_at.get(index)) is not None and origin.trace is not None:
            trace, index = origin.trace, origin.index
        self._trace = trace
        self._index = index

    @property
    def variable(self) -> Tensor | None:
        """The leaf whose gradient is accumulated here; None for a call."""
        return self._trace.variables.get(self._index)

    def name(self) -> str:
        """`AddBackward` for a call of `add`; `AccumulateGrad` for a leaf."""
        if self.variable is not None:
            return "AccumulateGrad"
        operation = self._call()[0]
        name = operation.name if isinstance(operation, Operation) else self._trace.nodes[self._index].op
        return "".join(part.capitalize() for part in name.split("_")) + "Backward"

    @property
    def next_functions(self) -> tuple[tuple[GradientNode | None, int], ...]:
        """Where the gradient goes on to, argument by argument: (node, 0), or (None, 0) where none flows."""
        if self.variable is not None:
            return ()
        operation, *rest = self._call()
        if not isinstance(operation, Operation):  # a gradient that derive recorded: its nodes, one by one
            positions: list[int | None] = list(self._trace.nodes[self._index].inputs)
        else:
            _, *tokens = rest
            positions = [p for place, token in enumerate(tokens) for p in _positions(token, place in operation.operands)]
        return tuple([(self._at(p), 0) for p in positions])

    def _at(self, position: int | None) -> GradientNode | None:
        if position is None or not self._trace.nodes[position].differentiable:
            return None
        return GradientNode(self._trace, position)

    def _call(self) -> tuple[Any, ...]:
        """The key of the call that added this node."""
        lines = self._trace.lines
        key: tuple[Any, ...] = lines[bisect.bisect_right(lines, self._index, key=lambda line: line[0]) - 1][-1]
        return key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GradientNode) and self._trace is other._trace and self._index == other._index

    def __hash__(self) -> int:
        return hash((id(self._trace), self._index))

    def __repr__(self) -> str:
        return f"<{self.name()}>"


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


@attribute
def grad_fn(self: Tensor) -> GradientNode | None:
    """The node of backward that made this tensor; None for a leaf."""
    array = array_of(self)
    if not array.node.differentiable or array.trace is None:
        return None
    return GradientNode(array.trace, array.index)
