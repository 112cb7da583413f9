"""Collectives: each rank of a group runs the same row and gets its part of the result.

The primitives take and give one axis. Lowering never drops, merges or reorders them: other processes wait for each one, in
program order. `genesis.distributed` imports this file; without it there are no such rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from genesis.ir.dtypes import bool_, uint8
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.derive import NotDifferentiableError
from genesis.ops.elementwise import zeros_like
from genesis.ops.registry import Gradient, cast, composite, expand, primitive
from genesis.ops.views import reshape_value, slice_value
from genesis.runtime.groups import GROUPS, Collective

if TYPE_CHECKING:
    from genesis.runtime.collectives import Group

_OF_BOOLS = {"sum": "max", "prod": "min"}  # "or" and "and": bools are sent as bytes, whose sum would be 2
REDUCTIONS = ("sum", "prod", "min", "max", "band", "bor", "bxor", "avg")


def reference(node: Node, operand: np.ndarray) -> np.ndarray:
    """Runs the collective at once: its result depends on other processes."""
    result = np.zeros(node.shape, node.dtype.numpy)
    GROUPS[node.attrs["group"]].run(Collective.of(node.op, node.attrs), np.ascontiguousarray(operand), result)
    return result


def add_node(
    op: str, x: Value, group: int, count: int, said: str, sends: Sequence[int], receives: Sequence[int], reduce: str = "",
    root: int = -1, is_transient: bool = False,
) -> Value:
    """A node on all of `x`, flat, with `count` result elements. A rank that sends or receives nothing uses one element."""
    flat = reshape_value(x, (x.node.numel,)) if x.node.numel else expand(x.graph.constant(0, x.dtype), (1,))
    if GROUPS[group].size == 1:
        return flat if count else slice_value(flat, 0, 0, 0)
    attrs = {"group": group, "reduce": reduce, "root": root, "sends": (*sends,), "receives": (*receives,), "said": said}
    if is_transient:
        attrs["transient"] = True
    result = x.graph.add(op, (flat,), (max(count, 1),), x.dtype, attrs)
    return result if count else slice_value(result, 0, 0, 0)


def transposed(op: str, g: Value, y: Value, count: int, reduce: str = "") -> Value:
    """The gradient of the collective that computed `y`, itself a collective; it too sums 16-bit floats as float32."""
    at, wide = y.node.attrs, cast(g, g.dtype.compute) if reduce else g
    said = "backward of " + at["said"]
    return cast(add_node(op, wide, at["group"], count, said, at["receives"], at["sends"], reduce, at["root"]), g.dtype)


def _summed(y: Value) -> None:
    if y.node.attrs["reduce"] != "sum":
        raise NotDifferentiableError(f"{y.node.op} of {y.node.attrs['reduce']} has no gradient; that of sum and avg has one")


def _is_root(y: Value) -> bool:
    return GROUPS[y.node.attrs["group"]].rank == y.node.attrs["root"]


def _all_reduce_grad(g: Value, y: Value, x: Value) -> Value:
    """Each rank has its own loss, which depends on every rank's x."""
    _summed(y)
    return transposed("all_reduce", g, y, x.node.numel, "sum")


def _reduce_grad(g: Value, y: Value, x: Value) -> Value:
    """The gradient of the root's sum; on other ranks the result is x itself as well."""
    _summed(y)
    back = transposed("broadcast_from", g, y, x.node.numel)
    return back if _is_root(y) else back + g


def _broadcast_grad(g: Value, y: Value, x: Value) -> Value:
    total = transposed("reduce_to", g, y, x.node.numel, "sum")
    return total if _is_root(y) else total * 0


def _reduce_scatter_grad(g: Value, y: Value, x: Value) -> Value:
    _summed(y)
    return transposed("all_gather", g, y, x.node.numel)


def _gather_grad(g: Value, y: Value, x: Value) -> Value:
    back = transposed("scatter_from", g, y, x.node.numel)
    return back if _is_root(y) else back + g


def _scatter_grad(g: Value, y: Value, x: Value) -> Value:
    back = transposed("gather_to", g, y, x.node.numel if _is_root(y) else g.node.numel)
    return back if _is_root(y) else zeros_like(x)


def sent_back(op: str, reduce: str = "") -> Gradient:
    """The gradient of what a rank sends; one that sends nothing has a padding element, whose gradient is zero."""
    def grad(g: Value, y: Value, x: Value) -> Value:
        back = transposed(op, g, y, sum(y.node.attrs["sends"]), reduce)
        return back if back.shape == x.shape else zeros_like(x)

    return grad


_GRADIENTS = {
    "all_reduce": _all_reduce_grad, "reduce_to": _reduce_grad, "broadcast_from": _broadcast_grad,
    "all_gather": sent_back("reduce_scatter", "sum"), "reduce_scatter": _reduce_scatter_grad, "gather_to": _gather_grad,
    "scatter_from": _scatter_grad, "all_to_all": sent_back("all_to_all"),
}
for _name, _gradient in _GRADIENTS.items():
    primitive(_name, "collective", grad=_gradient, reference=reference)


# ---- operations ----
row_of = partial(composite, method=False, public=False, takes_complex=True)


def named(x: Value) -> str:
    return f"{x.dtype.name}{[*x.shape]}"


def _described(x: Value, *how: str) -> str:
    return " ".join([*how, "of", named(x)])


def checked_group(op: str, number: int, root: int | None = None) -> Group:
    group = GROUPS[number]
    if root is not None and not 0 <= root < group.size:
        raise ArgumentError(f"{op}: the group has no rank {root}; want 0 to {group.size - 1}")
    return group


def _reducible(op: str, x: Value, reduce: str) -> tuple[Value, str]:
    """`x` in a dtype that MPI reduces, and MPI's name of the reduction; 16-bit floats are summed as float32."""
    if reduce not in REDUCTIONS:
        raise ArgumentError(f"{op}: there is no reduction {reduce!r}; want one of {', '.join(REDUCTIONS)}")
    category = x.dtype.category
    if (category >= 2 and reduce.startswith("b")) or (category == 3 and reduce in ("min", "max")) or (
            category < 2 and reduce == "avg"):
        problem = ArgumentError if category == 3 else ArgumentTypeError
        raise problem(f"{op}: {x.dtype.name} has no {reduce}; want another reduction, or another dtype")
    if x.dtype is bool_:
        return cast(x, uint8), _OF_BOOLS.get(reduce, reduce)
    return cast(x, x.dtype.compute), "sum" if reduce == "avg" else reduce


def _reduced(total: Value, x: Value, reduce: str, size: int, shape: Shape) -> Value:
    """The reduced result of `_reducible`, converted back to the dtype of `x`."""
    mean = total * (1.0 / size) if reduce == "avg" else total
    return reshape_value(cast(mean, x.dtype), shape)


@row_of("all_reduce")
def all_reduce(input: Value, reduce: str = "sum", group: int = 0) -> Value:
    """The sum, or another reduction, of all ranks' tensors, on every rank. Its gradient is the sum of all ranks' gradients."""
    wide, known = _reducible("all_reduce", input, reduce)
    size, count = checked_group("all_reduce", group).size, input.node.numel
    total = add_node("all_reduce", wide, group, count, _described(input, reduce), [count or 1], [count or 1], known)
    return _reduced(total, input, reduce, size, input.shape)


@row_of("reduce_to")
def reduce_to(input: Value, dst: int = 0, reduce: str = "sum", group: int = 0) -> Value:
    """The reduction of all ranks' tensors on rank `dst`; on others their own tensor. Its gradient is a broadcast."""
    wide, known = _reducible("reduce", input, reduce)
    own, count = checked_group("reduce", group, dst), input.node.numel
    said = _described(input, reduce, f"to {dst}")
    total = add_node("reduce_to", wide, group, count, said, [count or 1], [count or 1], known, dst)
    return _reduced(total, input, reduce, own.size if own.rank == dst else 1, input.shape)


@row_of("broadcast_from")
def broadcast_from(input: Value, src: int = 0, group: int = 0) -> Value:
    """The tensor of rank `src`, on every rank. Its gradient is the sum of all ranks' gradients there, and zeros elsewhere."""
    checked_group("broadcast", group, src)
    count = input.node.numel
    said = _described(input, f"from {src}")
    whole = add_node("broadcast_from", input, group, count, said, [count or 1], [count or 1], "", src)
    return reshape_value(whole, input.shape)


@row_of("all_gather")
def all_gather(input: Value, sizes: tuple[int, ...] | None = None, group: int = 0) -> Value:
    """All ranks' tensors, joined along axis 0; `sizes` are their lengths, if they differ. Its gradient is a reduce_scatter."""
    return _gathered(input, sizes, group, False)


@row_of("all_gather_transient")
def all_gather_transient(input: Value, sizes: tuple[int, ...] | None = None, again: int | None = None, group: int = 0) -> Value:
    """`all_gather` whose result is not saved for backward: backward gathers it again, from the same ranks, or from the parts
    that the ranks of group `again` keep.
    """
    whole = _gathered(input, sizes, group, True)
    return whole if again is None or GROUPS[group].size == 1 else _kept_in_parts(whole, again)


def _kept_in_parts(whole: Value, group: int) -> Value:
    """`whole`; backward gathers it from the group's ranks, each of which keeps a copy of its own part."""
    own, row = GROUPS[group], numel(whole.shape[1:])
    counts = [size * row for size in chunks(whole.shape[0], own.size)]
    flat, start, count = reshape_value(whole, (whole.node.numel,)), sum(counts[: own.rank]), counts[own.rank]
    part = slice_value(flat, 0, start, start + count) if count else expand(whole.graph.constant(0, whole.dtype), (1,))
    copy = "clone" if whole.dtype.is_complex else "kept_part"
    kept = whole.graph.add(copy, (part,), part.shape, part.dtype, {"materialize": True})
    said = f"again of {whole.dtype.name}{[*whole.shape]}"
    attrs = {"group": group, "reduce": "", "root": -1, "sends": (count,), "receives": (*counts,), "said": said,
             "transient": True}
    return reshape_value(whole.graph.add("kept_in_parts", (flat, kept), flat.shape, flat.dtype, attrs), whole.shape)


primitive("kept_part", "elementwise", reference=lambda node, part: part.copy(), emit=lambda k, part: part, cost=0)
primitive("kept_in_parts", "elementwise", reference=lambda node, whole, part: whole, emit=lambda k, whole, part: whole, cost=0)


def chunks(count: int, parts: int) -> list[int]:
    """The rows of each part, as `chunk` cuts: all as long as the first until the rows are used up."""
    most = -(-count // parts)
    return [max(0, min(most, count - k * most)) for k in range(parts)]


def _gathered(input: Value, sizes: tuple[int, ...] | None, group: int, is_transient: bool) -> Value:
    own = checked_group("all_gather", group)
    if not input.shape:
        input = reshape_value(input, (1,))
    sizes = _checked("all_gather", own, sizes or (input.shape[0],) * own.size, input.shape[0])
    row = numel(input.shape[1:])
    said = f"of {input.dtype.name}{[*sizes]} x {[*input.shape[1:]]}"
    counts = [size * row for size in sizes]
    joined = add_node("all_gather", input, group, sum(counts), said, [input.node.numel], counts, is_transient=is_transient)
    return reshape_value(joined, (sum(sizes), *input.shape[1:]))


@row_of("reduce_scatter")
def reduce_scatter(input: Value, reduce: str = "sum", sizes: tuple[int, ...] | None = None, group: int = 0) -> Value:
    """The reduction of all ranks' tensors, cut along axis 0: each rank gets its part. The gradient is an all_gather."""
    wide, known = _reducible("reduce_scatter", input, reduce)
    own = checked_group("reduce_scatter", group)
    if not input.shape or (sizes is None and input.shape[0] % own.size):
        raise ArgumentError(f"reduce_scatter: shape {input.shape} has no {own.size} equal parts along axis 0; give sizes")
    sizes = sizes or (input.shape[0] // own.size,) * own.size
    if len(sizes) != own.size or sum(sizes) != input.shape[0]:
        raise ArgumentError(f"reduce_scatter: sizes {[*sizes]} are not {own.size} numbers whose sum is {input.shape[0]}")
    row = numel(input.shape[1:])
    counts = [size * row for size in sizes]
    said = f"{reduce} of {input.dtype.name}{[*sizes]} x {[*input.shape[1:]]}"
    mine = counts[own.rank]
    part = add_node("reduce_scatter", wide, group, mine, said, counts, [mine], known)
    return _reduced(part, input, reduce, own.size, (sizes[own.rank], *input.shape[1:]))


@row_of("gather_to")
def gather_to(input: Value, dst: int = 0, group: int = 0) -> Value:
    """All ranks' tensors, of one shape, stacked on rank `dst`; other ranks get their own. Its gradient is a scatter."""
    own, count = checked_group("gather", group, dst), input.node.numel
    here = own.rank == dst
    said = _described(input, f"to {dst}")
    total = count * own.size if here else count
    joined = add_node("gather_to", input, group, total, said, [count], [count] * own.size, "", dst)
    return reshape_value(joined, (own.size, *input.shape) if here else input.shape)


@row_of("scatter_from")
def scatter_from(input: Value, src: int = 0, group: int = 0) -> Value:
    """The rows of rank `src`'s tensor, one per rank. Other ranks pass any tensor of a row's shape. Its gradient is a gather."""
    own = checked_group("scatter", group, src)
    here = own.rank == src
    if here and input.shape[:1] != (own.size,):
        raise ArgumentError(f"scatter: rank {src} has shape {input.shape}; want {own.size} rows, one a rank")
    shape = input.shape[1:] if here else input.shape
    said, count = f"from {src} of {input.dtype.name}{[*shape]}", numel(shape)
    return reshape_value(add_node("scatter_from", input, group, count, said, [count] * own.size, [count], "", src), shape)


@row_of("all_to_all")
def all_to_all(
    input: Value, sends: tuple[int, ...] | None = None, receives: tuple[int, ...] | None = None, group: int = 0
) -> Value:
    """Sends part k of axis 0 to rank k and joins what it receives along axis 0. Its gradient is the reverse exchange.

    The parts are equal unless `sends` and `receives` give the rows for each rank.
    """
    own = checked_group("all_to_all", group)
    if not input.shape or (sends is None and input.shape[0] % own.size):
        raise ArgumentError(f"all_to_all: shape {input.shape} has no {own.size} equal parts along axis 0; give sizes")
    even = (input.shape[0] // own.size,) * own.size
    row = numel(input.shape[1:])
    sends, receives = sends or even, receives or even
    if len(sends) != own.size or len(receives) != own.size or sum(sends) != input.shape[0]:
        raise ArgumentError(
            f"all_to_all: sizes {[*sends]}, {[*receives]} are not {own.size} numbers each, the first with sum {input.shape[0]}")
    if sends[own.rank] != receives[own.rank]:
        raise ArgumentError(f"all_to_all: rank {own.rank} sends itself {sends[own.rank]} rows, not {receives[own.rank]}")
    said = f"of {input.dtype.name} rows of {[*input.shape[1:]]}"
    counts = [size * row for size in sends], [size * row for size in receives]
    there = add_node("all_to_all", input, group, sum(counts[1]), said, *counts)
    return reshape_value(there, (sum(receives), *input.shape[1:]))


def _checked(op: str, group: Group, sizes: tuple[int, ...], own: int) -> tuple[int, ...]:
    if len(sizes) != group.size or sizes[group.rank] != own:
        raise ArgumentError(f"{op}: sizes {[*sizes]} are not {group.size} numbers, of which {own} is rank {group.rank}'s")
    return sizes
