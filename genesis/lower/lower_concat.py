"""Values that are added up, each a slice among zeros, are joined: the gradient of what was read in slices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

from genesis.ir.graph import Graph, Node, Value
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.simplify import Simplified, live_nodes
from genesis.ops.registry import expand
from genesis.ops.views import reshape_value

__all__ = ["lower_concat"]


class _Slices(NamedTuple):
    """Of a value as a matrix of `rows`: (first column, columns, the value there), in order; elsewhere it is zero."""

    rows: int
    parts: tuple[tuple[int, int, int], ...]


def lower_concat(graph: Simplified) -> Simplified:
    """Before: a simplified graph. After: no sum of slices among zeros that lie side by side; it is a `cat` of them."""
    nodes = graph.nodes
    found: dict[int, _Slices] = {}
    for index, node in enumerate(nodes):
        slices = _slice(nodes, node) if node.op == "put" else None
        if node.op == "add" and all(i in found for i in node.inputs):
            slices = _side_by_side(*(found[i] for i in node.inputs))
        if slices is not None:
            found[index] = slices
    sums = {index: axis for index, slices in found.items()
            if nodes[index].op == "add" and (axis := _axis(nodes[index].shape, slices)) is not None}
    return _written(graph, found, sums) if sums else graph


def _slice(nodes: Sequence[Node], node: Node) -> _Slices | None:
    """A `put` among zeros of what takes the same columns in every row."""
    base = nodes[node.inputs[0]]
    while base.op == "view":
        base = nodes[base.inputs[0]]
    if base.op != "constant" or base.attrs["value"] != 0:
        return None
    shape, strides, offset = node.attrs["shape"], node.attrs["strides"], node.attrs["offset"]
    run, axis = 1, len(shape)
    while axis and strides[axis - 1] == run:
        axis, run = axis - 1, run * shape[axis - 1]
    rows = numel(shape[:axis])
    if not rows or node.numel % rows or offset + run > node.numel // rows:
        return None
    pitch = node.numel // rows
    if strides[:axis] != tuple(pitch * s for s in contiguous_strides(shape[:axis])):
        return None
    return _Slices(rows, ((offset, run, node.inputs[1]),))


def _side_by_side(one: _Slices, other: _Slices) -> _Slices | None:
    parts = sorted((*one.parts, *other.parts))
    apart = all(a[0] + a[1] <= b[0] for a, b in pairwise(parts))
    return _Slices(one.rows, tuple(parts)) if apart and one.rows == other.rows else None


def _axis(shape: tuple[int, ...], slices: _Slices) -> int | None:
    """The axis of `shape` along which they are slices."""
    strides = contiguous_strides(shape)
    rows = [1, *accumulate(shape, mul)]
    fits = (axis for axis in range(len(shape)) if rows[axis] == slices.rows and shape[axis] > 1
            and all(start % strides[axis] == 0 == columns % strides[axis] for start, columns, _ in slices.parts))
    return next(fits, None)


def _written(graph: Simplified, found: dict[int, _Slices], sums: dict[int, int]) -> Simplified:
    """The graph with the `sums` (along an axis each) as concatenations, zeros between the slices."""
    nodes = list(graph.nodes)
    for index, axis in sums.items():
        node, values = nodes[index], tuple([value for _, _, value in found[index].parts])
        nodes[index] = Node("cat", values, {"dim": axis}, node.shape, node.dtype)
    live = live_nodes(nodes, graph.outputs)
    result = Graph()
    origins: list[int] = []
    place = [-1] * len(nodes)
    moved = place.__getitem__
    for index, node in enumerate(nodes):
        if not live[index]:
            continue
        if index in sums:
            axis, end, pieces = sums[index], 0, list[Value]()
            inner, width = contiguous_strides(node.shape)[axis], node.numel // found[index].rows
            zero = result.constant(0, node.dtype) if sum(part[1] for part in found[index].parts) < width else None

            def shape(columns: int, node: Node = node, axis: int = axis, inner: int = inner) -> tuple[int, ...]:
                return (*node.shape[:axis], columns // inner, *node.shape[axis + 1 :])

            for start, columns, value in (*found[index].parts, (width, 0, -1)):
                if start > end and zero is not None:
                    pieces.append(expand(zero, shape(start - end)))
                if columns:
                    pieces.append(reshape_value(result.value(place[value]), shape(columns)))
                end = start + columns
            node = node.renumbered(tuple([piece.index for piece in pieces]))
        else:
            node = node.renumbered(tuple(map(moved, node.inputs)))
        place[index] = len(result.nodes)
        result.nodes.append(node)
        origins += [graph.origins[index]] * (len(result.nodes) - len(origins))
    return Simplified(result.nodes, [place[o] for o in graph.outputs], origins)
