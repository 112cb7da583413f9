"""A max pool takes what a relu takes, and the relu what the pool gives: max(relu(x)) is relu(max(x)).

Before: a simplified graph. After: the same values, where nothing else reads the relu and no element is in two windows. Backward
then masks the pool's gradient, in place of the image's: the relu's operand, which a convolution has computed, is read by the
pool alone and need not be kept. Where all of a window is below 0, another position is its greatest, but no gradient goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape
from genesis.lower.index_map import Unmappable, contiguous_map, layout_at, pull_splitting
from genesis.lower.rewriting import Rewriting, Simplified, base_of
from genesis.lower.simplify import replaced
from genesis.ops.elementwise import where
from genesis.ops.layout import Layout
from genesis.ops.registry import expand
from genesis.ops.views import reshape_value, view_node


class _Pool(NamedTuple):
    """A pool of a relu: the greatest of each window, and of backward, if it is in the graph: the windows' gradients, the views
    that make an image of them, and the image where the relu's mask is applied."""

    greatest: int
    gradients: int = -1
    views: Sequence[int] = ()
    masked: int = -1


def pool_first(graph: Simplified) -> Simplified:
    """The graph with relus after max pools."""
    relus = [index for index, node in enumerate(graph.nodes) if node.op == "relu"]
    if not relus:
        return graph
    read = _Reading(graph)
    pools = {relu: pool for relu in relus if (pool := read.pool_of(relu))}
    instead: dict[int, Callable[[Rewriting, Node], Value]] = {}
    for relu, pool in pools.items():
        if pool.masked >= 0:
            instead[pool.masked] = partial(_masked, pool)
        instead[pool.greatest] = lambda result, node: result.add("relu", (result.append(node),), node.shape, node.dtype)
        instead[relu] = lambda result, node: result.value(node.inputs[0])
    return replaced(graph, instead)


def _masked(pool: _Pool, result: Rewriting, node: Node) -> Value:
    """The image of the windows' gradients, those of windows whose greatest element is not above 0 left out."""
    nodes = result.source.nodes
    gradients, greatest = (result.value(result.new_index[i]) for i in (pool.gradients, pool.greatest))
    at = expand(reshape_value(greatest, (*greatest.shape, 1)), gradients.shape)
    image = where(at <= 0, 0, gradients)
    for view in pool.views:
        image = view_node(image, layout_at(nodes[view]), nodes[view].attrs["label"])
    return image


class _Reading:
    """A graph and who reads each of its values."""

    def __init__(self, graph: Simplified) -> None:
        self.nodes = graph.nodes
        self.readers = graph.readers
        self.outputs = {*graph.outputs}

    def pool_of(self, relu: int) -> _Pool | None:
        """The pool that reads a relu, if it may come first."""
        masks = [r for r in self._of(relu) if self.nodes[r].op == "le"]
        windows = self._views([r for r in self._of(relu) if r not in masks])
        readers = self._of(windows[-1]) if windows else []
        found = {self.nodes[r].op: r for r in readers}
        greatest, at = (found.get(op, -1) for op in ("max", "argmax"))
        if greatest < 0 or "first" not in self.nodes[greatest].attrs:
            return None
        if not masks and readers == [greatest]:
            return _Pool(greatest)
        gradients = self._gradients(at)
        views = self._views(self._of(gradients))
        masked = self._of(views[-1]) if views else []
        fits = len(masks) == len(masked) == 1 and sorted(readers) == sorted((greatest, at)) and gradients > greatest and \
            self.nodes[at].attrs["axes"] == self.nodes[greatest].attrs["axes"] and \
            self._masks(masks[0], relu, masked[0], views[-1]) and self._restore(gradients, [*views, *windows]) and \
            self.nodes[gradients].numel == self.nodes[relu].numel
        return _Pool(greatest, gradients, views, masked[0]) if fits else None

    def _of(self, index: int) -> list[int]:
        """The readers of a value; none of one that is wanted itself."""
        return [] if index in self.outputs else self.readers.get(index, [])

    def _views(self, readers: list[int]) -> list[int]:
        """The chain of views that starts with the only one of `readers`."""
        found: list[int] = []
        while len(readers) == 1 and self.nodes[readers[0]].op == "view":
            found += readers
            readers = self._of(found[-1])
        return found

    def _gradients(self, at: int) -> int:
        """The value that alone reads the positions `at` of windows: a gradient there, and 0 elsewhere; -1 if there is none."""
        views = self._views(self._of(at))
        chosen = self._of(views[0]) if len(views) == 1 else []
        found = self._of(chosen[0]) if len(chosen) == 1 else []
        if len(found) != 1:
            return -1
        eq, where = self.nodes[chosen[0]], self.nodes[found[0]]
        counted = eq.op == "eq" and _repeats(self.nodes[views[0]], self.nodes[at].shape) and any(map(self._counts, eq.inputs))
        return found[0] if counted and where.op == "where" and self._is_zero(where.inputs[2]) else -1

    def _masks(self, mask: int, relu: int, masked: int, image: int) -> bool:
        """Whether `masked`, and nothing else, is `image` with 0 where `mask` says that the relu is."""
        le, where = self.nodes[mask], self.nodes[masked]
        return le.inputs[0] == relu and self._is_zero(le.inputs[1]) and self._of(mask) == [masked] and \
            where.op == "where" and where.inputs[::2] == (mask, image) and self._is_zero(where.inputs[1])

    def _is_zero(self, index: int) -> bool:
        base = self.nodes[base_of(self.nodes, index)]
        return base.op == "constant" and base.attrs["value"] == 0

    def _counts(self, index: int) -> bool:
        """Whether a value is 0, 1, 2, .. along its last axis, and repeats that along others."""
        node = self.nodes[index]
        return node.op == "view" and self.nodes[node.inputs[0]].op == "iota" and \
            node.attrs["strides"] == (*(0,) * (len(node.shape) - 1), 1) and not node.attrs["offset"]

    def _restore(self, value: int, views: Sequence[int]) -> bool:
        """Whether `views` one after the other show a value's elements in their own order."""
        extents = [*self.nodes[value].shape]
        at, axes = contiguous_map(extents), [*range(len(extents))]
        try:
            for view in reversed(views):
                at = pull_splitting(at, extents, axes, layout_at(self.nodes[view]))
        except Unmappable:
            return False
        return not at.offset and Layout(tuple(extents), at.strides, 0).is_contiguous


def _repeats(view: Node, shape: Shape) -> bool:
    """Whether a node shows each element of a value of `shape` along a last axis."""
    outer = Layout(view.shape[:-1], view.attrs["strides"][:-1], view.attrs["offset"])
    return outer.shape == shape and outer.is_contiguous and not outer.offset and not view.attrs["strides"][-1]
