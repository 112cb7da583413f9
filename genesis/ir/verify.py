"""The verifier: what must hold of a graph between any two passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from genesis.ir.graph import Node


class VerificationError(AssertionError):
    """A pass left a graph that breaks the IR's rules."""


def verify(nodes: Sequence[Node], outputs: Iterable[int], check: Callable[[Node, Sequence[Node]], None] | None = None) -> None:
    """Raise VerificationError unless inputs point backwards, shapes are tuples of extents and outputs exist.

    `check(node, its inputs)` adds an operation's own rule.
    """
    for index, node in enumerate(nodes):
        for i in node.inputs:
            if not 0 <= i < index:
                raise VerificationError(f"%{index} {node.op} reads %{i}, which does not come before it")
        if not isinstance(node.shape, tuple) or any(not isinstance(e, int) or e < 0 for e in node.shape):
            raise VerificationError(f"%{index} {node.op} has shape {node.shape!r}")
        if check is not None:
            check(node, [nodes[i] for i in node.inputs])
    for index in outputs:
        if not 0 <= index < len(nodes):
            raise VerificationError(f"output %{index} does not exist")
