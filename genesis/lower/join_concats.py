"""Nested concatenations are flattened, so that each part is copied once.

Before: a graph. After: no `cat` reads boxes of another one that nothing else reads. The inner one's parts are written to the
outer one directly, as `put`s, the largest first. Circular and reflected pads become boxes of their image: each is copied once,
those of one shape by one kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import mul
from typing import NamedTuple

from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.lower.rewriting import Rewriting, Simplified, base_of, with_replaced, without_dead
from genesis.ops.layout import Layout
from genesis.ops.views import assembled, view_node

MOST_BOXES = 27  # the faces, edges and corners of a volume, and itself


class _Box(NamedTuple):
    """A part of a concatenation, at `position`: its element k is element `starts` + `steps` * k of `value`."""

    value: int
    starts: tuple[int, ...]
    steps: tuple[int, ...]
    position: tuple[int, ...]
    shape: Shape


def join_concats(graph: Simplified) -> Simplified:
    """The graph with nested concatenations flattened."""
    if sum(node.op == "cat" for node in graph.nodes) < 2:
        return graph
    nodes = graph.nodes
    boxes: dict[int, list[_Box]] = {}
    inner: set[int] = set()
    for index, node in enumerate(nodes):
        if node.op != "cat" or not node.numel:
            continue
        found, taken = _boxes(graph, index, boxes)
        if len(found) <= MOST_BOXES:
            boxes[index] = found
            inner |= taken
        else:
            boxes[index], _ = _boxes(graph, index, {})
    outer = {i for i, found in boxes.items() if i not in inner and any(base_of(nodes, x) in inner for x in nodes[i].inputs)}
    return without_dead(with_replaced(graph, {i: partial(_written, boxes[i]) for i in outer})) if outer else graph


def _readers(graph: Simplified, value: int) -> set[int]:
    """The nodes that read a value or its views; -1 is for outputs."""
    found = {-1} if value in graph.outputs else set()
    for reader in graph.readers.get(value, ()):
        found |= _readers(graph, reader) if graph.nodes[reader].op == "view" else {reader}
    return found


def _boxes(graph: Simplified, index: int, boxes: dict[int, list[_Box]]) -> tuple[list[_Box], set[int]]:
    """The parts of a `cat`, and the concatenations that it alone reads."""
    nodes, node, start = graph.nodes, graph.nodes[index], 0
    found: list[_Box] = []
    taken: set[int] = set()
    kept: set[int] = set()  # read other than by boxes
    for i in node.inputs:
        base, shape = base_of(nodes, i), nodes[i].shape
        parts = _through(nodes, i, boxes[base]) if base in boxes and _readers(graph, base) == {index} else None
        if parts is None:
            kept.add(base)
            parts = [_Box(i, (0,) * len(shape), (1,) * len(shape), (0,) * len(shape), shape)]
        else:
            taken.add(base)
        for part in parts:
            position = tuple([p + start * (axis == node.attrs["dim"]) for axis, p in enumerate(part.position)])
            found.append(part._replace(position=position))
        start += shape[node.attrs["dim"]]
    return found, taken - kept


def _through(nodes: Sequence[Node], index: int, parts: list[_Box]) -> list[_Box] | None:
    """The parts of a value through its views; None if a view is not a box, forwards or backwards, of what it views."""
    views = []
    while nodes[index].op == "view":
        views.append(nodes[index])
        index = nodes[index].inputs[0]
    shape = nodes[index].shape
    for view in reversed(views):
        window = _window(view, shape)
        if window is None:
            return None
        parts = [*_seen(parts, *window, view.shape)]
        shape = view.shape
    return parts


def _window(view: Node, shape: Shape) -> tuple[list[int], list[int]] | None:
    """A view's start and step (1, -1 or 0) along each axis of `shape`; None if it has none."""
    starts, steps, rest = [], [], view.attrs["offset"]
    if len(view.shape) != len(shape) or not view.numel:
        return None
    for extent, whole, stride, own in zip(view.shape, shape, view.attrs["strides"], contiguous_strides(shape), strict=True):
        start, rest = divmod(rest, own)
        step = 0 if extent == 1 or not stride else 1 if stride == own else -1
        if (step and stride != step * own) or not (0 <= start < whole and 0 <= start + step * (extent - 1) < whole):
            return None
        starts.append(start)
        steps.append(step)
    return starts, steps


def _seen(parts: Sequence[_Box], starts: Sequence[int], steps: Sequence[int], shape: Shape) -> Iterator[_Box]:
    """The parts as seen through a window: clipped, shifted and perhaps reversed."""
    for part in parts:
        found = []
        for at, own, low, extent, start, step, count in zip(
            part.starts, part.steps, part.position, part.shape, starts, steps, shape, strict=True
        ):
            first, last = 0, count if low <= start < low + extent else 0
            if step:
                ends = (low - start, low + extent - start) if step > 0 else (start - low - extent + 1, start - low + 1)
                first, last = max(0, ends[0]), min(count, ends[1])
            found.append((at + own * (start + step * first - low), own * step, first, last - first))
        if all(count > 0 for *_, count in found):
            yield _Box(part.value, *zip(*found, strict=True))  # type: ignore[arg-type]


def _written(boxes: list[_Box], result: Rewriting, node: Node) -> Value:
    """A concatenation as `put`s of its boxes."""
    # The largest first: it streams whole cache lines. Edges that came first would wait for each line.
    strides = contiguous_strides(node.shape)
    parts = [(_shown(result, box), Layout(box.shape, strides, sum(map(mul, box.position, strides))))
             for box in sorted(boxes, key=lambda box: -numel(box.shape))]
    return assembled(parts, node.shape)


def _shown(result: Rewriting, box: _Box) -> Value:
    x = result.value(result.new_index[box.value])
    own = contiguous_strides(x.shape)
    if box.shape == x.shape and all(step == 1 or extent == 1 for step, extent in zip(box.steps, box.shape, strict=True)):
        return x
    strides = tuple(map(mul, box.steps, own))
    return view_node(x, Layout(box.shape, strides, sum(map(mul, box.starts, own))), "box")
