"""The first pass: dead code, constants, identities, views of views, common subexpressions. Graph in, graph out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import compress
from typing import Any

import numpy as np

from genesis.ir.graph import Node
from genesis.lower.index_map import IndexMap, SplitAxis, Unmappable, pull
from genesis.ops.contraction import exchanged
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import PRIMITIVES

__all__ = ["FORWARDED", "Simplified", "live_nodes", "simplify", "without_dead"]

# Which of its inputs an operation is, of those that compute nothing.
FORWARDED = {"custom": 0, "detach": 0, "variable": 0, "clone": 0, "normalized": 0, "rewritten": 1, "with_value": 1}
_UNIT_OPERAND: dict[str, tuple[int, float]] = {"mul": (2, 1), "div": (1, 1), "sub": (1, 0), "pow": (1, 1)}


class Simplified:
    """A graph without dead nodes: `nodes`, the positions of the wanted values, and where each node came from."""

    __slots__ = ("nodes", "origins", "outputs")

    def __init__(self, nodes: list[Node], outputs: list[int], origins: list[int]) -> None:
        self.nodes = nodes
        self.outputs = outputs
        self.origins = origins


def simplify(nodes: Sequence[Node], outputs: Sequence[int]) -> Simplified:
    """Keep what `outputs` need.

    Before: any graph. After: no dead nodes, no two equal nodes, no node that is its input under another name, no
    arithmetic among constants, no view of a view (unless only a copy makes it one), nothing computed of no elements, no
    matrix product that is only read transposed.
    """
    graph = _rewritten(nodes, outputs)
    live = live_nodes(graph.nodes, graph.outputs)
    turned = _only_read_transposed(graph, live)
    return without_dead(_products_turned(graph, turned, live)) if turned else _parts(graph, live)


class _Kept:
    """The nodes of a graph under construction, of equal ones the first, and where each came from."""

    __slots__ = ("nodes", "origins", "seen")

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.origins: list[int] = []
        self.seen: dict[Any, int] = {}

    def add(self, node: Node, origin: int) -> int:
        """The position of `node`, or of the one that is equal to it; inputs are equal to none."""
        nodes = self.nodes
        found = self.seen.setdefault(("input", origin) if node.op == "input" else node.key(), len(nodes))
        if found == len(nodes):
            nodes.append(node)
            self.origins.append(origin)
        return found

    def add_view(self, view: Node, origin: int) -> int:
        """The position of what `view` shows: of its input, if that is all of it as it lies."""
        view = _seen_through(view, self.nodes)
        (source,) = view.inputs
        if self.nodes[source].shape == view.shape and _is_identity(view):
            return source
        return self.add(view, origin)


def _rewritten(nodes: Sequence[Node], outputs: Sequence[int]) -> Simplified:
    """One walk over the graph, each node rewritten by what its inputs have become. What nobody reads any more stays."""
    live = live_nodes(nodes, outputs)
    kept = _Kept()
    place = [-1] * len(nodes)
    moved = place.__getitem__
    for index, node in enumerate(nodes):
        if not live[index]:
            continue
        if 0 in node.shape:
            place[index] = kept.add(_spread(node, kept.add(_zero(node), index)), index)
            continue
        node = node.renumbered(tuple(map(moved, node.inputs)))
        if node.op == "view":
            place[index] = kept.add_view(node, index)
            continue
        same = _forwarded(node, kept.nodes)
        place[index] = kept.add(node if node.shape else _folded(node, kept.nodes), index) if same is None else same
    return Simplified(kept.nodes, [place[o] for o in outputs], kept.origins)


def _zero(node: Node) -> Node:
    return Node("constant", (), {"value": 0, "weak": False}, (), node.dtype)


def _spread(node: Node, number: int) -> Node:
    """A view of a 0-d value in the shape of `node`: all there is to compute of a node without elements."""
    attrs = {"shape": node.shape, "strides": (0,) * len(node.shape), "offset": 0, "label": "expand"}
    return Node("view", (number,), attrs, node.shape, node.dtype, node.differentiable)


def live_nodes(nodes: Sequence[Node], outputs: Sequence[int]) -> bytearray:
    """For each node, 1 if the outputs need it."""
    live = bytearray(len(nodes))
    for o in outputs:
        live[o] = 1
    for node, needed in zip(reversed(nodes), reversed(live), strict=True):  # by whoever comes after it
        if needed:
            for i in node.inputs:
                live[i] = 1
    return live


def without_dead(graph: Simplified) -> Simplified:
    """The nodes that the outputs need."""
    return _parts(graph, live_nodes(graph.nodes, graph.outputs))


def _parts(graph: Simplified, live: bytearray) -> Simplified:
    """The nodes that are `live`."""
    if all(live):
        return graph
    place = [-1] * len(live)
    moved = place.__getitem__
    nodes: list[Node] = []
    for index, node in enumerate(graph.nodes):
        if live[index]:
            place[index] = len(nodes)
            nodes.append(node.renumbered(tuple(map(moved, node.inputs))))
    return Simplified(nodes, [place[o] for o in graph.outputs], list(compress(graph.origins, live)))


def _only_read_transposed(graph: Simplified, live: bytearray) -> set[int]:
    """The matrix products that are live, and that nobody live reads as they stand.

    From the last product to the first: an operand of a product that is turned will itself be read the other way round.
    """
    products = [index for index, node in enumerate(graph.nodes) if node.op == "matmul" and live[index]]
    if not products:
        return set()
    readers: dict[int, list[int]] = {}
    for index, node in enumerate(graph.nodes):
        if live[index]:
            for i in node.inputs:
                readers.setdefault(i, []).append(index)
    outputs = set(graph.outputs)
    turned: set[int] = set()

    def all_turned(index: int) -> bool:
        return index not in outputs and all(r in turned for r in readers[index])

    def reads_turned(r: int, product: Node) -> bool:
        if r in turned or _swaps(graph.nodes[r], product):
            return r in turned or not all_turned(r)
        return _goes_down(graph.nodes[r], product) and not any(graph.nodes[k].op == "matmul" for k in readers.get(r, ()))

    for index in reversed(products):
        if index not in outputs and all(reads_turned(r, graph.nodes[index]) for r in readers[index]):
            turned.add(index)
    return turned


def _products_turned(graph: Simplified, turned: Collection[int], live: bytearray) -> Simplified:
    """What is live, the products `turned` computed transposed: (A B)^T = B^T A^T. Each is read through a view that turns it
    back.

    Gradients of weights are such products; they come out in the layout of the weight.
    """
    kept = _Kept()
    place = [-1] * len(live)
    moved = place.__getitem__
    for index, node in enumerate(graph.nodes):
        if not live[index]:
            continue
        inputs, origin = tuple(map(moved, node.inputs)), graph.origins[index]
        if index in turned:
            swapped = tuple([kept.add_view(_swapped(kept.nodes[i], i), origin) for i in reversed(inputs)])
            shape = (*node.shape[:-2], node.shape[-1], node.shape[-2])
            attrs = dict(node.attrs)
            if "only" in attrs:
                attrs["only"] = exchanged(attrs["only"], "mn")
            product = kept.add(Node("matmul", swapped, attrs, shape, node.dtype, node.differentiable), origin)
            place[index] = kept.add_view(_swapped(kept.nodes[product], product), origin)
        else:
            node = node.renumbered(inputs)
            place[index] = kept.add_view(node, origin) if node.op == "view" else kept.add(node, origin)
    return Simplified(kept.nodes, [place[o] for o in graph.outputs], kept.origins)


def _swaps(view: Node, product: Node) -> bool:
    """Whether a node views all of `product` with its last two axes exchanged."""
    return view.op == "view" and (view.shape, view.attrs["strides"], view.attrs["offset"]) == _exchange(product.shape)


def _goes_down(view: Node, product: Node) -> bool:
    """Whether a node views all of `product`, and its last axis goes down the columns, of one matrix or several."""
    return view.op == "view" and view.shape[-1:] > (1,) and view.numel == product.numel and (
        view.shape[-1] % product.shape[-2], view.attrs["strides"][-1], view.attrs["offset"]) == (0, product.shape[-1], 0)


def _exchange(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    strides = contiguous_layout(shape).strides
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    return tuple(shape[o] for o in order), tuple(strides[o] for o in order), 0


def _swapped(node: Node, index: int) -> Node:
    shape, strides, offset = _exchange(node.shape)
    attrs = {"shape": shape, "strides": strides, "offset": offset, "label": "transpose"}
    return Node("view", (index,), attrs, shape, node.dtype, node.differentiable)


def _seen_through(view: Node, kept: Sequence[Node]) -> Node:
    """A view of a view as a view of what that one views, where there is such a view."""
    inner = kept[view.inputs[0]]
    if inner.op != "view":
        return view
    try:
        strides = contiguous_layout(view.shape).strides
        at = pull(IndexMap(0, strides), view.shape, view.shape, view.attrs["strides"], view.attrs["offset"])
        at = pull(at, view.shape, inner.shape, inner.attrs["strides"], inner.attrs["offset"])
    except (SplitAxis, Unmappable):
        return view
    attrs = {**inner.attrs, **view.attrs, "strides": at.strides, "offset": at.offset}
    return Node("view", inner.inputs, attrs, view.shape, view.dtype, view.differentiable)


def _forwarded(node: Node, kept: Sequence[Node]) -> int | None:
    """The value that `node` equals, if it computes nothing."""
    op, inputs = node.op, node.inputs
    if op in FORWARDED:
        return inputs[FORWARDED[op]]
    if op == "cast" and kept[inputs[0]].dtype is node.dtype:
        return inputs[0]
    if op in _UNIT_OPERAND:
        last, unit = _UNIT_OPERAND[op]
        for position in range(1, -1, -1) if last == 2 else (1,):
            value = _constant(kept, inputs[position])
            if value == unit and str(value) != "-0.0":  # -0.0 - -0.0 is 0.0
                return inputs[1 - position]
    return None


def _is_identity(node: Node) -> bool:
    at, barrier = node.attrs, "barrier" in node.attrs
    return not barrier and tuple(at["strides"]) == contiguous_layout(node.shape).strides and not at["offset"]


def _constant(kept: Sequence[Node], index: int) -> float | None:
    """The number that a value has everywhere, if it is a literal or a view of one."""
    node = kept[index]
    while node.op == "view":
        node = kept[node.inputs[0]]
    return node.attrs["value"] if node.op == "constant" else None


def _folded(node: Node, kept: Sequence[Node]) -> Node:
    """A 0-d `node`, or the literal that it is if its inputs are."""
    if node.inputs and PRIMITIVES[node.op].kind == "elementwise" and node.op != "check_index":
        values = [_constant(kept, i) for i in node.inputs]
        if all(v is not None for v in values):
            return _literal(node, values, [kept[i] for i in node.inputs])
    return node


def _literal(node: Node, values: Sequence[Any], inputs: Sequence[Node]) -> Node:
    reference: Callable[..., Any] | None = PRIMITIVES[node.op].reference
    assert reference is not None
    with np.errstate(all="ignore"):
        arrays = [np.asarray(v, i.dtype.numpy) for v, i in zip(values, inputs, strict=True)]
        value = np.asarray(reference(node, *arrays)).astype(node.dtype.numpy).item()
    return Node("constant", (), {"value": value, "weak": False}, (), node.dtype)
