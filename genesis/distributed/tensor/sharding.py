"""Sharding rules, one per kind of primitive: how a node on one axis of a mesh computes with parts, and what its value is then.

A value on the axis is whole on each rank (None), has a `Cut`, or is the reduction of the ranks' values (its name). A rule says
how a node takes its inputs, which may be whole and are then cut where it wants parts, and what its result is. Where there is no
rule, it raises `NoRuleError`, and the inputs of the operation are redistributed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.ir.shapes import Shape, numel
from genesis.ops.layout import Layout, layout_in
from genesis.ops.registry import PRIMITIVES


class Cut(NamedTuple):
    """Axis `dim`, seen as `outer` equal blocks, each in equal parts: a rank has its part of each block."""

    dim: int
    outer: int = 1


class NoRuleError(Exception):
    """A node cannot be computed with inputs held in this way."""


State = Cut | str | None
Taken = tuple[State, list[State]]  # the result's state, and the states in which a node takes its inputs
_SUMS: dict[str, set[tuple[bool, ...]]] = {  # which inputs of linear functions may be terms of sums; the others are whole
    **{name: {(True,)} for name in ("cast", "clone", "conj", "detach", "imag", "neg", "real")},
    "add": {(True, True)}, "sub": {(True, True)}, "mul": {(True, False), (False, True)}, "div": {(True, False)},
    "where": {(False, True, True)},
}
_OF_PARTS = {"sum": "sum", "max": "max", "min": "min", "any": "max", "all": "min"}  # reductions of all parts, by those of one


def taken(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    """The state of a node's value and those of its inputs. Raises NoRuleError."""
    if not any(states):
        return None, [None] * len(states)
    rule = _RULES.get(PRIMITIVES[node.op].kind)
    if rule is None:
        raise NoRuleError
    return rule(node, states, inputs, parts)


def even(shape: Shape, cut: Cut, parts: int) -> Cut:
    """The cut of a value of `shape`. Raises NoRuleError unless its parts are equal."""
    if shape[cut.dim] % (cut.outer * parts):
        raise NoRuleError
    return cut


def part_of(shape: Shape, state: State, parts: int) -> Shape:
    """The shape on each rank of a value of `shape`."""
    if not isinstance(state, Cut):
        return shape
    return (*shape[: state.dim], shape[state.dim] // parts, *shape[state.dim + 1 :])


def _one_cut(states: Sequence[State]) -> Cut:
    cuts = {state for state in states if state is not None}
    if len(cuts) != 1 or not isinstance(found := cuts.pop(), Cut):
        raise NoRuleError
    return found


def _elementwise(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    if any(isinstance(state, str) for state in states):
        is_real = node.op != "cast" or min(node.dtype.category, inputs[0].dtype.category) >= 2
        if {*states} <= {None, "sum"} and is_real and tuple(map(bool, states)) in _SUMS.get(node.op, ()):
            return "sum", [*states]
        spread = [x.op == "view" and 0 in x.attrs["strides"] for x in inputs]
        if node.op in ("add", "sub") and {*states} == {None, "sum"} and spread[states.index(None)]:
            return "sum", ["sum", "sum"]  # one rank adds the bias
        raise NoRuleError
    cut = even(node.shape, _one_cut(states), parts)
    sums_gradients = cut.dim - len(node.shape) in node.attrs.get("axes", ())  # of a normalization
    if node.op == "custom" or sums_gradients or any(x.shape != node.shape for x in inputs):
        raise NoRuleError
    return cut, [cut] * len(states)


def _reduce(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    (state,), axes = states, node.attrs["axes"]
    if not isinstance(state, Cut):
        if node.op != "sum" or state != "sum":
            raise NoRuleError
        return state, [state]
    if state.dim not in axes:
        return Cut(state.dim - sum(axis < state.dim for axis in axes), state.outer), [state]
    if node.op not in _OF_PARTS or (node.op != "sum" and node.differentiable):
        raise NoRuleError
    return _OF_PARTS[node.op], [state]


def _contract(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    (a, b), last = states, len(node.shape) - 1
    if "sum" in states:
        if None in states:
            return "sum", [a, b]
        raise NoRuleError
    within = isinstance(a, Cut) and a.dim == last, isinstance(b, Cut) and b.dim == last - 1
    if any(within):  # along the inner extent
        outers = {state.outer for state in states if isinstance(state, Cut)}
        if len(outers) > 1 or (None not in states and not all(within)) or node.attrs.get("only"):
            raise NoRuleError
        outer = outers.pop()
        return "sum", [Cut(last, outer), Cut(last - 1, outer)]
    cut = _one_cut(states)
    if cut.dim < last - 1:
        return cut, [cut, cut]
    if node.attrs.get("only") or None not in states:
        raise NoRuleError
    return cut, [a, b]


def _view(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    if not isinstance(states[0], Cut):
        return states[0], [*states]
    return cut_view(inputs[0].shape, states[0], layout_in(node), parts)[0], [*states]


def _put(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    base, x = states
    if base is None and isinstance(x, Cut):  # the axis of the base that has the stride
        at, stride = layout_in(node).strides[x.dim], numel(node.shape)
        for dim, extent in enumerate(node.shape):
            stride //= max(extent, 1)
            if stride == at and extent == inputs[1].shape[x.dim]:
                base = Cut(dim, x.outer)
    if not isinstance(base, Cut):
        raise NoRuleError
    within, _ = cut_view(node.shape, even(node.shape, base, parts), layout_in(node), parts)
    if x not in (None, within):
        raise NoRuleError
    return base, [base, within]


def _gather(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    x, index = states
    dim = node.attrs["dim"]
    if node.attrs.get("shared") or isinstance(index, str):
        raise NoRuleError
    if index is None and x == Cut(dim):
        return "sum", [x, None]  # zeros where another rank has the row
    if x == "sum" and index is None:
        return "sum", [x, None]
    cut = _one_cut(states)
    if cut.dim == dim and x is None:
        return cut, [None, cut]
    if cut.dim == dim or inputs[0].shape[cut.dim] != node.shape[cut.dim]:
        raise NoRuleError
    return cut, [cut, cut]


def _same(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    """One cut of all, along another axis than the operation's own."""
    cut, dim = _one_cut(states), node.attrs.get("dim")
    is_free = dim is not None and (cut.dim < dim if PRIMITIVES[node.op].kind == "host" else cut.dim != dim)
    extents = {x.shape[cut.dim : cut.dim + 1] for x in (node, *inputs)}
    if not is_free or len(extents) != 1:
        raise NoRuleError
    return cut, [cut] * len(states)


def _cat(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    return ("sum", [*states]) if {*states} == {"sum"} else _same(node, states, inputs, parts)


def _collective(node: Node, states: Sequence[State], inputs: Sequence[Node], parts: int) -> Taken:
    if node.op != "all_reduce":
        raise NoRuleError
    return _one_cut(states), [*states]


_RULES: dict[str, Callable[[Node, Sequence[State], Sequence[Node], int], Taken]] = {
    "elementwise": _elementwise, "reduce": _reduce, "contract": _contract, "view": _view, "put": _put, "gather": _gather,
    "scatter": _same, "host": _same, "cat": _cat, "collective": _collective,
}


def cut_view(shape: Shape, cut: Cut, at: Layout, parts: int) -> tuple[Cut, Layout]:
    """The cut of a view, and the view of a rank's part, of a value of `shape` with a cut. Raises NoRuleError.

    Elements are numbered row by row. Those of a block follow each other, and so do those of its parts: one axis of the view
    must go through parts and blocks, the axes beside it through elements of a part, or from block to block.
    """
    inner = numel(shape[cut.dim + 1 :])
    block = inner * (shape[cut.dim] // cut.outer)
    part = block // parts
    if not block:
        raise NoRuleError
    axes = [(dim, extent, stride) for dim, (extent, stride) in enumerate(zip(at.shape, at.strides, strict=True))
            if stride and extent > 1]
    if parts == 1 and shape[cut.dim] == cut.outer:  # nothing moves along the axis
        axes.append((next((d for d, e in enumerate(at.shape) if e == 1), -1), 1, inner))
    within = [axis for axis in axes if axis[2] % block or axis[1] == 1]
    dim, extent, stride = max(within, key=lambda axis: axis[2], default=(-1, 0, 1))
    reach = sum(abs(step) * (count - 1) for other, count, step in within if other != dim)
    backwards = sum(-step * (count - 1) for _, count, step in within if step < 0)
    if dim < 0 or stride < 1 or part % stride or extent * stride % block or at.offset % block + reach - backwards >= stride or (
            at.offset % block < backwards):
        raise NoRuleError
    strides = tuple([step if step % block else step // parts for step in at.strides])
    offset = at.offset // block * part + at.offset % block
    made = Cut(dim, extent * stride // block)
    return made, Layout(part_of(at.shape, made, parts), strides, offset)
