"""A graph of an exported program as JSON. Reading checks that its nodes exist and fit their inputs, whatever the file says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.ir.dtypes import NAMED, DType
from genesis.ir.graph import Node, VerificationError, format_node, verify
from genesis.ir.shapes import numel
from genesis.ops.registry import PRIMITIVES

Json = Any  # None, a truth, a number, a string, or a list or dict of these
_ATOMS = frozenset((type(None), bool, int, float, str))


def write_nodes(nodes: Sequence[Node]) -> Json:
    """A graph as JSON's lists. Raises TypeError for a node with other attributes than numbers, names, dtypes and tuples."""
    return [
        [node.op, [*node.inputs], [[name, _write_any(value)] for name, value in node.attrs.items()], [*node.shape],
         node.dtype.name]
        for node in nodes
    ]


def read_nodes(content: Json) -> list[Node]:
    """The graph. Raises ValueError for other lists."""
    try:
        nodes = [
            Node(op, tuple(inputs), {name: _read_any(value) for name, value in attrs}, tuple(shape), NAMED[dtype])
            for op, inputs, attrs, shape, dtype in content
        ]
        verify(nodes, [])
        verify_layouts(nodes)
    except Exception as problem:
        raise ValueError(f"no graph: {problem or type(problem).__name__}") from problem
    return nodes


def verify_layouts(nodes: Sequence[Node]) -> None:
    """Raise VerificationError for a node whose shape, strides or offset lead beyond what it reads."""
    for index, node in enumerate(nodes):
        shapes, kind = [nodes[i].shape for i in node.inputs], PRIMITIVES[node.op].kind
        fits = True
        if node.op in ("view", "put"):
            shape, strides, offset = (node.attrs[name] for name in ("shape", "strides", "offset"))
            steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
            last = offset + sum(max(step, 0) for step in steps)
            fits = 0 in shape or (offset + sum(min(step, 0) for step in steps) >= 0 and last < numel(shapes[0]))
            fits = fits and (node.shape == shape if node.op == "view" else (node.shape, shape) == tuple(shapes))
        elif kind == "elementwise":
            fits = all(shape == node.shape for shape in shapes)
        elif node.op == "matmul":
            (*batch, m, k), (*other, terms, n) = shapes
            fits = (batch, k, node.shape) == (other, terms, (*batch, m, n))
        if not fits:
            raise VerificationError(f"{format_node(index, node)} does not fit its inputs of {shapes}", index)


def _write_any(part: Any) -> Json:
    if type(part) in _ATOMS:
        return part
    if type(part) is tuple:
        return tuple([_write_any(one) for one in part])
    if type(part) is DType:
        return {"dtype": part.name}
    raise TypeError(f"{part!r:.80} is none of {_ATOMS}")


def _read_any(cell: Json) -> Any:
    if type(cell) is list:
        return tuple([_read_any(one) for one in cell])
    return NAMED[cell["dtype"]] if type(cell) is dict else cell
