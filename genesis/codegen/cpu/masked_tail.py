"""Rows with a masked tail: from some lane on, a comparison of lanes' positions with a number of the row is false.

In the tail `where` gives one number, and what depends on it is uniform: computed once, not lane by lane. Causal attention's
scores are such rows, of which half is -inf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.nest import Nest
from genesis.codegen.cpu.registers import I1, I64
from genesis.codegen.cpu.values import computed, value_of
from genesis.lower.kernel import Instruction, Kernel
from genesis.ops.registry import PRIMITIVES

LARGEST = (1 << 31) - 1


def masked_tail(kernel: Kernel) -> int | None:
    """The comparison that masks tails, if there is one: lanes' positions <= a number of the row, as the condition of a
    `where`."""
    if not kernel.lane_is_reduced or kernel.inner or kernel.unrolled or kernel.tiled is not None:
        return None
    if any(i.name == "scan" for i in kernel.instructions):
        return None
    for i in kernel.instructions:
        if i.name == "where" and kernel.lane not in kernel.instructions[i.args[2]].varies and _ends_rows(kernel, i.args[0]):
            return i.args[0]
    return None


def _ends_rows(kernel: Kernel, n: int) -> bool:
    comparison = kernel.instructions[n]
    if comparison.name != "le" or dict(comparison.attrs).get("operand") != "int32":
        return False
    position, limit = (kernel.instructions[a] for a in comparison.args)
    if position.name != "index" or position.access is None or kernel.lane in limit.varies:
        return False
    return all(stride == (axis == kernel.lane) for axis, stride in enumerate(position.access.strides))


def with_tail(nest: Nest, n: int, needed: Sequence[int], end: ir.Value, body: Callable[[], None]) -> None:
    """Run `body` for each vector of a row of `end` lanes, in two loops; in the second one comparison `n` is false."""
    # Causal attention of 8 heads of 1024 tokens of 64 numbers, one Cascade Lake core: 27.3 to 23.4 ms.
    b, width = nest.builder, nest.lanes.width
    first = _first_behind(nest, nest.kernel.instructions[n], end)
    first = (first + (width - 1)) & -width
    first = b.select(first < end, first, end)
    nest.lane_loop(I64(0), first, body)
    with nest.branch(first < end):
        _compute_once(nest, n, needed)
        nest.lane_loop(first, end, body)
    nest.lane_range = I64(0), end


def _first_behind(nest: Nest, comparison: Instruction, end: ir.Value) -> ir.Value:
    """The first lane for which the comparison is false, at most `end`."""
    b = nest.builder
    position, limit = comparison.args
    access = nest.kernel.instructions[position].access
    assert access is not None
    start, last = nest.words[access.pointer], b.sext(value_of(nest, limit), I64)
    first = last - start + 1
    first = b.select(first < 0, I64(0), first)
    # Positions beyond 32 bits wrap: then there is no tail.
    fits = start + end <= LARGEST
    return b.select(fits & (first < end), first, end)


def _compute_once(nest: Nest, n: int, needed: Sequence[int]) -> None:
    """Compute here the values that are uniform when comparison `n` is false."""
    known = nest.scopes[-1]
    known[nest.key(n)] = I1(0)
    for m in needed:
        i = nest.kernel.instructions[m]
        if nest.is_computed(m):
            continue
        if i.name == "where" and i.args[0] == n:
            if nest.is_computed(i.args[2]):
                known[nest.key(m)] = value_of(nest, i.args[2])
        elif i.args and i.access is None and "words" not in dict(i.attrs) and i.name in PRIMITIVES and all(
            nest.is_computed(a) for a in i.args
        ):
            known[nest.key(m)] = computed(nest, i)
