"""The first pass: dead code, constants, identities, views of views, common subexpressions. Graph in, graph out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from genesis.ir.graph import Node
from genesis.lower.index_map import IndexMap, SplitAxis, Unmappable, pull
from genesis.ops.contraction import exchanged
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import PRIMITIVES

__all__ = ["Simplified", "simplify", "without_dead"]

_FORWARDED = {"custom": 0, "detach": 0, "variable": 0, "clone": 0, "normalized": 0, "rewritten": 1, "with_value": 1}
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
    graph = _rewritten(Simplified(list(nodes), list(outputs), list(range(len(nodes)))))
    turned = _only_read_transposed(graph)
    return _rewritten(_products_turned(graph, turned)) if turned else graph


def _rewritten(graph: Simplified) -> Simplified:
    """One walk over the graph, each node rewritten by what its inputs have become."""
    live = _live(graph.nodes, graph.outputs)
    kept: list[Node] = []
    origins: list[int] = []
    place: dict[int, int] = {}
    seen: dict[Any, int] = {}

    def keep(node: Node, index: int) -> int:
        key: Any = ("input", index) if node.op == "input" else node.key()
        found = seen.get(key)
        if found is None:
            found = seen[key] = len(kept)
            kept.append(node)
            origins.append(graph.origins[index])
        return found

    for index, node in enumerate(graph.nodes):
        if not live[index]:
            continue
        if 0 in node.shape:
            place[index] = keep(_spread(node, keep(_zero(node), index)), index)
            continue
        node = node.renumbered(tuple([place[i] for i in node.inputs]))
        if node.op == "view":
            node = _seen_through(node, kept)
        same = _forwarded(node, kept)
        place[index] = keep(_folded(node, kept), index) if same is None else same
    return without_dead(Simplified(kept, [place[o] for o in graph.outputs], origins))


def _zero(node: Node) -> Node:
    return Node("constant", (), {"value": 0, "weak": False}, (), node.dtype)


def _spread(node: Node, number: int) -> Node:
    """A view of a 0-d value in the shape of `node`: all there is to compute of a node without elements."""
    attrs = {"shape": node.shape, "strides": (0,) * len(node.shape), "offset": 0, "label": "expand"}
    return Node("view", (number,), attrs, node.shape, node.dtype, node.differentiable)


def _live(nodes: Sequence[Node], outputs: Sequence[int]) -> bytearray:
    live = bytearray(len(nodes))
    for o in outputs:
        live[o] = 1
    for index in range(len(nodes) - 1, -1, -1):
        if live[index]:
            for i in nodes[index].inputs:
                live[i] = 1
    return live


def without_dead(graph: Simplified) -> Simplified:
    """The nodes that the outputs need."""
    live = _live(graph.nodes, graph.outputs)
    if all(live):
        return graph
    place: dict[int, int] = {}
    nodes: list[Node] = []
    origins: list[int] = []
    for index, node in enumerate(graph.nodes):
        if live[index]:
            place[index] = len(nodes)
            nodes.append(node.renumbered(tuple([place[i] for i in node.inputs])))
            origins.append(graph.origins[index])
    return Simplified(nodes, [place[o] for o in graph.outputs], origins)


def _only_read_transposed(graph: Simplified) -> set[int]:
    """The matrix products that nobody reads as they stand.

    From the last product to the first: an operand of a product that is turned will itself be read the other way round.
    """
    products = [index for index, node in enumerate(graph.nodes) if node.op == "matmul"]
    if not products:
        return set()
    readers: dict[int, list[int]] = {}
    for index, node in enumerate(graph.nodes):
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


def _products_turned(graph: Simplified, turned: Collection[int]) -> Simplified:
    """The products `turned` computed transposed: (A B)^T = B^T A^T. Each is then read through a view that turns it back.

    Gradients of weights are such products; they come out in the layout of the weight.
    """
    nodes: list[Node] = []
    origins: list[int] = []
    place: list[int] = []

    def add(node: Node, index: int) -> int:
        nodes.append(node)
        origins.append(graph.origins[index])
        return len(nodes) - 1

    for index, node in enumerate(graph.nodes):
        inputs = tuple([place[i] for i in node.inputs])
        if index in turned:
            swapped = tuple([add(_swapped(nodes[i], i), index) for i in reversed(inputs)])
            shape = (*node.shape[:-2], node.shape[-1], node.shape[-2])
            attrs = dict(node.attrs)
            if "only" in attrs:
                attrs["only"] = exchanged(attrs["only"], "mn")
            product = add(Node("matmul", swapped, attrs, shape, node.dtype, node.differentiable), index)
            place.append(add(_swapped(nodes[product], product), index))
        else:
            place.append(add(node.renumbered(inputs), index))
    return Simplified(nodes, [place[o] for o in graph.outputs], origins)


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
    if op in _FORWARDED:
        return inputs[_FORWARDED[op]]
    if op == "cast" and kept[inputs[0]].dtype is node.dtype:
        return inputs[0]
    if op == "view" and kept[inputs[0]].shape == node.shape and _is_identity(node):
        return inputs[0]
    if op in _UNIT_OPERAND:
        last, unit = _UNIT_OPERAND[op]
        for position in range(1, -1, -1) if last == 2 else (1,):
            value = _constant(kept, inputs[position])
            if value == unit and str(value) != "-0.0":  # -0.0 - -0.0 is 0.0
                return inputs[1 - position]
    return None


def _is_identity(node: Node) -> bool:
    at, fence = node.attrs, "fence" in node.attrs
    return not fence and tuple(at["strides"]) == contiguous_layout(node.shape).strides and not at["offset"]


def _constant(kept: Sequence[Node], index: int) -> float | None:
    """The number that a value has everywhere, if it is a literal or a view of one."""
    node = kept[index]
    while node.op == "view":
        node = kept[node.inputs[0]]
    return node.attrs["value"] if node.op == "constant" else None


def _folded(node: Node, kept: Sequence[Node]) -> Node:
    """`node`, or the literal that it is if its inputs are."""
    if PRIMITIVES[node.op].kind == "elementwise" and node.inputs and not node.shape and node.op != "check_index":
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
