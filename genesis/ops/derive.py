"""Backward as a pure function on graphs.

Given cotangents of some values, `derive` extends the graph with the cotangents of others. It walks the positions
backwards once; each node's rule is the row in `genesis.ops.PRIMITIVES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from genesis.ir.graph import Graph, Node, Value
from genesis.ops.complex_primitives import HOLOMORPHIC, conjugated
from genesis.ops.registry import PRIMITIVES, cast


class NotDifferentiableError(NotImplementedError):
    """A gradient was requested of an operation that has none."""


class _Result(Value):
    """The result of a node as its rule sees it: the node's attributes, even if the value itself is read from memory."""

    __slots__ = ("origin",)

    def __init__(self, value: Value, origin: Node) -> None:
        super().__init__(value.graph, value.index)
        self.origin = origin

    @property
    def node(self) -> Node:
        return self.origin


def derive(
    nodes: Sequence[Node], cotangents: Mapping[int, Value], graph: Graph, value_of: Callable[[int], Value],
    wanted: Collection[int] = (), above: int = -1, released: Collection[int] = (), adjoint: bool = False,
    within: Collection[int] | None = None,
) -> tuple[dict[int, Value], dict[int, Value], dict[int, tuple[int, ...]]]:
    """Reverse-mode differentiation: from cotangents of some values, those of all values they depend on, as Values of `graph`.

    Args:
        nodes: the source's nodes; those to walk are marked `differentiable`.
        cotangents: positions in `nodes` -> their cotangents in `graph`.
        graph: gradient nodes are added to it (it may hold the source too).
        value_of: maps a position in `nodes` to its Value in `graph`.
        wanted: further positions to report, besides the ends of the walk: variables and inputs.
        above: the walk stops here, at a hook or custom Function, and takes only positions above.
        released: positions whose rules, if they read values, lead no further: these values are gone.
        adjoint: whether to take the rows' `adjoint`, where they have one.
        within: positions whose cotangents are of use; None is all.

    Returns:
        (position -> cotangent of the ends, position -> partial cotangent of the positions not walked,
        position -> the positions whose values its rule read).
    """
    pending: dict[int, Value] = dict(cotangents)
    ends: dict[int, Value] = {}
    reads: dict[int, tuple[int, ...]] = {}
    for index in range(max(pending, default=-1), above, -1):
        g = pending.pop(index, None)
        node = nodes[index]
        if g is None or not node.differentiable:
            continue
        if index in wanted or node.op in ("variable", "input"):
            ends[index] = g
        if node.op in ("variable", "input") or (within is not None and not any(i in within for i in node.inputs)):
            continue
        row = PRIMITIVES[node.op]
        rule = (row.adjoint if adjoint else None) or row.grad
        if rule is None:
            raise NotDifferentiableError(f"{node.op} has no gradient; detach its input, or take another operation")
        read = [_Result(value_of(index), node), *[value_of(i) for i in node.inputs]]
        start = len(graph)
        answer = conjugated(rule, g, *read) if node.dtype.category == 3 and node.op in HOLOMORPHIC else rule(g, *read)
        answers = answer if isinstance(answer, tuple) else (answer,)
        grads = [
            (i, grad) for i, grad in zip(node.inputs, answers, strict=True) if grad is not None and nodes[i].differentiable
        ]
        taken = needed(graph, [grad.index for _, grad in grads], start)  # a rule may add unneeded nodes
        seen = [i for i, value in zip((index, *node.inputs), read, strict=True) if value.index in taken]
        if seen and not (node.op == "where" and seen == [node.inputs[0]] and _is_constant(nodes, seen[0])):  # all is replaced
            reads[index] = tuple(seen)
            if index in released:
                continue
        for i, grad in grads:
            grad = cast(grad, nodes[i].dtype)
            pending[i] = grad if i not in pending else pending[i] + grad
        for added in graph.nodes[start:]:
            added.origin = read[0].index
    return ends, pending, reads


def _is_constant(nodes: Sequence[Node], index: int) -> bool:
    """Whether a value is a constant, or a view of one."""
    while PRIMITIVES[nodes[index].op].kind == "view":
        index = nodes[index].inputs[0]
    return nodes[index].op == "constant"


def needed(graph: Graph, ends: Iterable[int], start: int = 0) -> set[int]:
    """`ends`, and the nodes from `start` on that they depend on."""
    found = set(ends)
    for index in range(len(graph) - 1, start - 1, -1):
        if index in found:
            found.update(graph.nodes[index].inputs)
    return found
