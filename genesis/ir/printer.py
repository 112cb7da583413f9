"""A graph as text, one node a line, and as a networkx graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.ir.graph import Node


def format_node(index: int, node: Node) -> str:
    """`%3 = add(%1, %2) : float32[4, 8]`"""
    parts = [f"%{i}" for i in node.inputs]
    parts += [f"{name}={value!r}" for name, value in node.attrs.items() if name not in ("weak", "label")]
    label = node.attrs.get("label", node.op)
    return f"%{index} = {label}({', '.join(parts)}) : {node.dtype.name}{list(node.shape)}"


def format_nodes(
    nodes: Sequence[Node], indices: Sequence[int] | None = None, note: Callable[[int], str] | None = None
) -> str:
    """The nodes at `indices` (all, if None), each followed by `note(index)` as a comment."""
    chosen = range(len(nodes)) if indices is None else indices
    lines = [format_node(i, nodes[i]) for i in chosen]
    if note is not None:
        width = max(map(len, lines), default=0)
        lines = [f"{line:<{width}}  # {note(i)}" if note(i) else line for line, i in zip(lines, chosen, strict=True)]
    return "\n".join(lines)


def to_networkx(nodes: Sequence[Node], indices: Sequence[int] | None = None) -> Any:
    """A networkx.DiGraph with an edge from each input to its consumer; nodes carry op, shape, dtype and attrs."""
    import networkx  # takes 0.2 s, which nothing else needs

    graph = networkx.DiGraph()
    for i in range(len(nodes)) if indices is None else indices:
        node = nodes[i]
        graph.add_node(i, op=node.op, shape=node.shape, dtype=node.dtype.name, attrs=dict(node.attrs))
        for position, j in enumerate(node.inputs):
            graph.add_edge(j, i, position=position)
    return graph
