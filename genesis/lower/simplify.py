"""Simplification: dead code, constants, identities, views of views, common subexpressions.

Before: any graph. After: no dead nodes, no two equal nodes, no node that is its input under another name, no arithmetic
among constants, no view of a view (unless only a copy makes it one) or of just what a write has put there, nothing computed of
no elements, no matrix product that is only read transposed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from genesis.ir.annotations import Key, Scalar
from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.ir.unguarded import computed
from genesis.lower.index_map import IndexMap, SplitAxis, Unmappable, pull
from genesis.lower.rewriting import (
    Replacements, Simplified, base_of, live_nodes, only_live, readers_of, with_replaced, without_dead,
)
from genesis.ops.contraction import exchanged
from genesis.ops.layout import Layout
from genesis.ops.reference import widened_arrays
from genesis.ops.registry import PRIMITIVES
from genesis.ops.transient import FORWARDED

# The neutral operand and its argument position (2: either). x + 0 is not among them, as -0.0 + 0 is 0.0; nor is x * 0 zero, as
# x may be NaN.
_UNIT_OPERAND: dict[str, tuple[int, float]] = {"mul": (2, 1), "div": (1, 1), "sub": (1, 0), "pow": (1, 1)}


def simplify(nodes: Sequence[Node], outputs: Sequence[int]) -> Simplified:
    """The nodes that `outputs` need, in the form stated above."""
    graph = _rewritten(nodes, outputs)
    live = live_nodes(graph.nodes, graph.outputs)
    transposed = _only_read_transposed(graph, live)
    return without_dead(_products_transposed(graph, transposed, live)) if transposed else only_live(graph, live)


def replaced(graph: Simplified, instead: Replacements) -> Simplified:
    """The graph with other values in place of the nodes at some positions, simplified again."""
    if not instead:
        return graph
    graph = with_replaced(graph, instead)
    again = simplify(graph.nodes, graph.outputs)
    return again._replace(origins=[graph.origins[i] for i in again.origins])


class _NumberedNodes:
    """The nodes of a graph under construction, without duplicates, and the origin of each."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.origins: list[int] = []
        self.seen: dict[Key, int] = {}

    def add(self, node: Node, origin: int) -> int:
        """The position of `node` or of an equal one (value numbering); inputs and collectives are equal to none."""
        nodes = self.nodes
        alone = node.op == "input" or PRIMITIVES[node.op].kind == "collective"
        found = self.seen.setdefault(("alone", origin) if alone else node.key(), len(nodes))
        return self.append(node, origin) if found == len(nodes) else found

    def append(self, node: Node, origin: int) -> int:
        """The position of a node that is equal to no other."""
        self.nodes.append(node)
        self.origins.append(origin)
        return len(self.nodes) - 1

    def add_view(self, view: Node, origin: int) -> int:
        """The position of a view: that of its input if it is the identity."""
        view = _seen_through(view, self.nodes)
        (source,) = view.inputs
        # What a write has left alone is not read from what was there before: that could not be written over then.
        if self.nodes[source].op == "put" and "barrier" not in view.attrs and _shows(view, source, self.nodes[source].attrs):
            return self.nodes[source].inputs[1]
        if _is_identity(view) and self.nodes[source].shape == view.shape:  # layouts first, which sizes seldom decide
            return source
        return self.add(view, origin)


def _rewritten(nodes: Sequence[Node], outputs: Sequence[int]) -> Simplified:
    """One forward walk that rewrites each node by its rewritten inputs. Nodes that lose their readers stay."""
    live = live_nodes(nodes, outputs)  # a quarter of a training step's nodes are dead
    kept = _NumberedNodes()
    new_index = [-1] * len(nodes)
    moved = new_index.__getitem__
    for index, node in enumerate(nodes):
        if not live[index]:
            continue
        if 0 in node.shape:
            zero = kept.add(Node("constant", (), {"value": 0, "weak": False}, (), node.dtype), index)
            new_index[index] = kept.add(_view(node, zero, node.shape, (0,) * len(node.shape), "expand"), index)
            continue
        node = node.renumbered(tuple(map(moved, node.inputs)))
        if node.op == "view":
            new_index[index] = kept.add_view(node, index)
            continue
        if "axes" in node.attrs:
            node = _over_one_axis(node, kept.nodes)
        same = _forwarded(node, kept.nodes)
        new_index[index] = kept.add(node if node.shape else _constant_folded(node, kept.nodes), index) if same is None else same
    return Simplified(kept.nodes, [new_index[o] for o in outputs], kept.origins)


def _view(like: Node, source: int, shape: Shape, strides: Shape, label: str) -> Node:
    """A view of value `source` from its first element on, with the dtype of `like`."""
    attrs = {"shape": shape, "strides": strides, "offset": 0, "label": label}
    return Node("view", (source,), attrs, shape, like.dtype, like.differentiable)


# ---- products that are only read transposed ----
def _only_read_transposed(graph: Simplified, live: bytearray) -> set[int]:
    """The matrix products that are live, and that no live node reads in their own layout.

    Walks backwards: the operands of a transposed product are read transposed in turn.
    """
    nodes = graph.nodes
    products = [index for index, node in enumerate(nodes) if node.op == "matmul" and live[index]]
    if not products:
        return set()
    readers = readers_of(compress(enumerate(nodes), live))
    outputs = set(graph.outputs)
    found: set[int] = set()

    def all_transposed(index: int) -> bool:
        return index not in outputs and all(r in found for r in readers[index])

    def reads_transposed(r: int, product: Node) -> bool:
        if r in found or _swaps(nodes[r], product):
            return r in found or not all_transposed(r)
        return _goes_down(nodes[r], product) and not any(nodes[k].op == "matmul" for k in readers.get(r, ()))

    # This order needs no recursion, and takes time linear in the graph for chains of any length.
    for index in reversed(products):
        if index not in outputs and all(reads_transposed(r, nodes[index]) for r in readers[index]):
            found.add(index)
    return found


def _products_transposed(graph: Simplified, products: Collection[int], live: bytearray) -> Simplified:
    """The live nodes, with `products` computed as (A B)^T = B^T A^T and read through a transposing view.

    Weight gradients are such products: they then come out in the weight's layout, without a copy.
    """
    kept = _NumberedNodes()
    new_index = [-1] * len(live)
    moved = new_index.__getitem__
    for index, node in enumerate(graph.nodes):
        if not live[index]:
            continue
        inputs, origin = tuple(map(moved, node.inputs)), graph.origins[index]
        if index in products:
            swapped = tuple([kept.add_view(_swapped(kept.nodes[i], i), origin) for i in reversed(inputs)])
            shape = (*node.shape[:-2], node.shape[-1], node.shape[-2])
            attrs = dict(node.attrs)
            if "only" in attrs:
                attrs["only"] = exchanged(attrs["only"], "mn")
            product = kept.add(Node("matmul", swapped, attrs, shape, node.dtype, node.differentiable), origin)
            new_index[index] = kept.add_view(_swapped(kept.nodes[product], product), origin)
        else:
            node = node.renumbered(inputs)
            # What is new are views and products: others are still equal to none.
            add = kept.add_view if node.op == "view" else kept.add if node.op == "matmul" else kept.append
            new_index[index] = add(node, origin)
    return Simplified(kept.nodes, [new_index[o] for o in graph.outputs], kept.origins)


def _swaps(view: Node, product: Node) -> bool:
    """Whether a node views all of `product` with its last two axes exchanged."""
    return view.op == "view" and not view.attrs["offset"] and (view.shape, view.attrs["strides"]) == _exchange(product.shape)


def _goes_down(view: Node, product: Node) -> bool:
    """Whether a node views all of `product` with its last axis along the columns, of one matrix or several."""
    return view.op == "view" and not view.attrs["offset"] and view.attrs["strides"][-1:] == product.shape[-1:] and (
        view.shape[-1] > 1 and view.numel == product.numel and not view.shape[-1] % product.shape[-2])


def _exchange(shape: Shape) -> tuple[Shape, Shape]:
    """The shape and the strides of a contiguous value with its last two axes exchanged."""
    *outer, row, column = contiguous_strides(shape)
    return (*shape[:-2], shape[-1], shape[-2]), (*outer, column, row)


def _swapped(node: Node, index: int) -> Node:
    return _view(node, index, *_exchange(node.shape), "transpose")


# ---- single nodes ----
def _seen_through(view: Node, kept: Sequence[Node]) -> Node:
    """A view of a view as one view, where strides can express it."""
    inner = kept[view.inputs[0]]
    if inner.op != "view":
        return view
    try:
        at = IndexMap(0, contiguous_strides(view.shape))
        at = pull(at, view.shape, view.shape, view.attrs["strides"], view.attrs["offset"])
        at = pull(at, view.shape, inner.shape, inner.attrs["strides"], inner.attrs["offset"])
    except (SplitAxis, Unmappable):
        return view
    attrs = {**inner.attrs, **view.attrs, "strides": at.strides, "offset": at.offset}
    return Node("view", inner.inputs, attrs, view.shape, view.dtype, view.differentiable)


def _forwarded(node: Node, kept: Sequence[Node]) -> int | None:
    """The value that `node` forwards, if it computes nothing."""
    op, inputs = node.op, node.inputs
    if op in FORWARDED and "materialize" not in node.attrs and "operands" not in node.attrs:
        return inputs[FORWARDED[op]]
    if op == "cast" and kept[inputs[0]].dtype is node.dtype:
        return inputs[0]
    if op == "put" and _shows(kept[inputs[1]], inputs[0], node.attrs):  # `x[0] += 1` puts twice
        return inputs[0]
    if op in _UNIT_OPERAND:
        last, unit = _UNIT_OPERAND[op]
        for position in range(1, -1, -1) if last == 2 else (1,):
            value = _constant(kept, inputs[position])
            if value == unit and str(value) != "-0.0":  # x - -0.0 is not x: -0.0 - -0.0 is 0.0
                return inputs[1 - position]
    return None


def _over_one_axis(node: Node, kept: Sequence[Node]) -> Node:
    """A reduction over leading axes that its input view splits from one axis, as a reduction over that axis."""
    axes, view = node.attrs["axes"], kept[node.inputs[0]]
    if len(axes) < 2 or axes != tuple(range(len(axes))) or view.op != "view" or not _is_identity(view):
        return node
    rows = numel(view.shape[: len(axes)]), *view.shape[len(axes) :]
    if PRIMITIVES[node.op].kind != "reduce" or kept[view.inputs[0]].shape != rows:
        return node
    return Node(node.op, view.inputs, {**node.attrs, "axes": (0,)}, node.shape, node.dtype, node.differentiable)


def _shows(node: Node, base: int, at: Mapping[str, Any]) -> bool:
    """Whether a node is the view of `base` with this layout."""
    return node.op == "view" and node.inputs == (base,) and all(node.attrs[name] == at[name] for name in Layout._fields)


def _is_identity(node: Node) -> bool:
    """Whether a view of a value of its own shape is the identity. A barrier must not be seen through."""
    at = node.attrs
    return "barrier" not in at and not at["offset"] and Layout(node.shape, tuple(at["strides"]), 0).is_contiguous


def _constant(kept: Sequence[Node], index: int) -> Scalar | None:
    """The number that all elements of a value have, if it is a literal or a view of one."""
    node = kept[base_of(kept, index)]
    return node.attrs["value"] if node.op == "constant" else None


def _constant_folded(node: Node, kept: Sequence[Node]) -> Node:
    """Fold a 0-d `node` whose inputs are literals into a literal, by its NumPy reference."""
    row = PRIMITIVES[node.op]
    # An index out of range and a division by 0 fail when the program runs, with the user's line.
    if not node.inputs or row.kind != "elementwise" or row.fault is not None or node.dtype.is_complex:
        return node
    values = [_constant(kept, i) for i in node.inputs]
    if any(value is None for value in values):
        return node
    result = computed(partial(_folded, node, [kept[i].dtype for i in node.inputs]), *values)
    return Node("constant", (), {"value": result, "weak": False}, (), node.dtype)


def _folded(node: Node, dtypes: Sequence[DType], *values: Scalar) -> Scalar:
    """What a node computes of literals."""
    reference = PRIMITIVES[node.op].reference
    assert reference is not None
    with np.errstate(all="ignore"):
        arrays = widened_arrays([np.asarray(value, dtype.numpy) for value, dtype in zip(values, dtypes, strict=True)])
        result: Scalar = np.asarray(reference(node, *arrays)).astype(node.dtype.numpy).item()
    return result
