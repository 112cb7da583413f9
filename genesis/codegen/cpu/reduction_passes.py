"""One point of the kept axes, or a vector of them: the passes over the reduced axes, then what depends on their results.

A kernel makes one pass per level of nested reductions, and computes each value in the outermost loop that has bound the axes it
varies over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.addressing import at_each_point
from genesis.codegen.cpu.masked_tail import masked_tail, with_tail
from genesis.codegen.cpu.nest import Nest
from genesis.codegen.cpu.reductions import Accumulator, add_to_columns
from genesis.codegen.cpu.registers import I64
from genesis.codegen.cpu.tiling import tile_rows
from genesis.codegen.cpu.transposing_tiles import through_tiles
from genesis.codegen.cpu.values import effect, hoist, stored, value_of
from genesis.lower.kernel import REDUCTIONS, Instruction

GOLDEN = 0x9E3779B1  # 2^32 by the golden ratio: its multiples modulo 2^32 are spread evenly (Knuth, 6.4)


def emit_row(nest: Nest, totals: dict[int, Accumulator], start: ir.Value, end: ir.Value) -> None:
    """Emit one point of the kept axes, or a vector of points: the passes, then what depends on them."""
    kernel = nest.kernel
    for step in kernel.steps:
        nest.step = step
        _Pass(nest, kernel.targets(step), totals).emit(start, end)

    def after() -> None:
        for n, i in enumerate(kernel.instructions):
            if i.name == "store" and i.level in ("row", "uniform"):
                effect(nest, i)
            elif i.name in REDUCTIONS and i.attr("over") == "row":
                totals[n].add(value_of(nest, i.args[0]), None, nest.mask)

    at_each_point(nest, nest.kept_unrolled, after)


class _Pass:
    """One pass over the reduced axes, for the present kept point: `targets` are its reductions and effects."""

    def __init__(self, nest: Nest, targets: Sequence[int], totals: dict[int, Accumulator]) -> None:
        kernel = nest.kernel
        self.nest, self.targets, self.totals = nest, targets, totals
        self.needed = kernel.needed(targets)
        self.scans = {n: accumulator_of(nest, n) for n in targets if kernel.instructions[n].name == "scan"}
        self.running: dict[tuple[int, ...], Accumulator] = {}  # the reductions of this pass, by value key
        at_each_point(nest, nest.kept_unrolled, self._begin)

    def _begin(self) -> None:
        """An accumulator for each reduction; where no axis is reduced in here, the total itself takes the values in."""
        nest, kernel = self.nest, self.nest.kernel
        # Values go into the total without a stop at a row's end: sums of 4M numbers take 136 us, a loop in C 129.
        nothing_reduced = not kernel.lane_is_reduced and not kernel.inner and len(nest.kept_unrolled) == len(nest.unrolled)
        for n in self.targets:
            if kernel.instructions[n].name in REDUCTIONS and n not in nest.columns and nest.key(n) not in self.running:
                self.running[nest.key(n)] = self.totals[n] if nothing_reduced else accumulator_of(nest, n)

    def emit(self, start: ir.Value, end: ir.Value) -> None:
        nest, kernel = self.nest, self.nest.kernel
        hoist(nest, self.needed)
        tiled = kernel.tiled in kernel.inner
        nest.loops(kernel.inner[:-1] if tiled else kernel.inner, partial(hoist, nest, self.needed),
                   partial(self._blocks if tiled else self._innermost, start, end))
        for (n, *point), accumulator in self.running.items():
            i = kernel.instructions[n]
            if accumulator is self.totals.get(n):
                continue
            if i.level == "final":
                self.totals[n].merge(accumulator, nest.mask)
            else:
                value = accumulator.reduced() if kernel.lane_is_reduced else accumulator.value()
                nest.scopes[-1][n, *point] = nest.lanes.round_to(i.dtype.name, value)

    def _blocks(self, start: ir.Value, end: ir.Value) -> None:
        """The innermost loop around lanes, which is tiled, block by block."""
        nest, kernel = self.nest, self.nest.kernel
        b, rows = nest.builder, I64(tile_rows(kernel))
        extent = nest.words[kernel.axes[kernel.inner[-1]][0]]
        accesses = [kernel.instructions[n] for n in (*self.needed, *self.targets)]
        with nest.loop(I64(0), extent, tile_rows(kernel)) as first:
            limit = first + rows
            last = b.select(limit < extent, limit, extent)
            through_tiles(nest, first, last, accesses, partial(self._innermost, start, end))

    def _innermost(self, start: ir.Value, end: ir.Value) -> None:
        nest, kernel = self.nest, self.nest.kernel
        hoist(nest, self.needed)
        tail = masked_tail(kernel)
        if tail in self.needed:
            with_tail(nest, tail, self.needed, end, self._compute)
        elif kernel.place is not None:
            hashed = value_of(nest, kernel.place) * GOLDEN & (1 << 32) - 1
            with nest.branch(nest.builder.lshr(hashed * nest.words[nest.word_of("blocks")], I64(32)).equals(nest.owner)):
                nest.lane_loop(start, end, partial(_points, nest, self.needed, self._compute))
        elif kernel.lane_is_innermost:
            nest.lane_loop(start, end, partial(_points, nest, self.needed, self._compute))
        else:
            _points(nest, self.needed, self._compute)

    def _compute(self) -> None:
        """The targets at the current point."""
        nest = self.nest
        for n in self.targets:
            i = nest.kernel.instructions[n]
            if n in self.scans:
                _scan(nest, self.scans[n], i)
                stored(nest, i, nest.lanes.round_to(i.dtype.name, self.scans[n].value()))
            elif i.name not in REDUCTIONS:
                effect(nest, i)
            elif n in nest.columns:
                add_to_columns(nest, n)
            # A reduction that does not vary along an unrolled kept axis takes its value in once, at that axis' first point.
            elif i.level == "final" or not any(nest.point.get(axis) for axis in nest.kept_unrolled if axis not in i.varies):
                _reduce(nest, self.running[nest.key(n)], i)


def _points(nest: Nest, needed: Sequence[int], body: Callable[[], None]) -> None:
    """`body` at each point of the unrolled axes, kept ones innermost: what is loaded at a reduced point serves all of them."""
    if nest.unrolled:
        hoist(nest, needed)
    at_each_point(nest, sorted(nest.unrolled, key=lambda axis: not nest.kernel.axes[axis][1]), body)


def _reduce(nest: Nest, accumulator: Accumulator, i: Instruction) -> None:
    """Accumulate the value of reduction `i` at the current point; a product in a block is fused with the sum."""
    source = nest.kernel.instructions[i.args[0]]
    # Convolutions are such sums over windows that are read in place: 205 GFlop/s forward, where first versions had 17 and 128.
    if nest.blocks and i.name == "sum" and source.name == "mul" and i.dtype.name in ("float32", "float64"):
        accumulator.add_product(value_of(nest, source.args[0]), value_of(nest, source.args[1]), nest.mask)
    else:
        accumulator.add(value_of(nest, i.args[0]), _reduced_position(nest, i), nest.mask)


def _scan(nest: Nest, running: Accumulator, i: Instruction) -> None:
    """Take the current element into a running reduction, or into a recurrence, whose first result is its first term."""
    *factors, value = (value_of(nest, a) for a in i.args)
    if not factors:
        running.add(value, None, nest.mask)
        return
    lanes, so_far = nest.lanes, running.value()
    further = lanes.add(lanes.multiply(factors[0], so_far), value)
    running.replace(lanes.select(nest.builder.icmp_unsigned("==", _position(nest), I64(0)), value, further))


def accumulator_of(nest: Nest, n: int) -> Accumulator:
    i = nest.kernel.instructions[n]
    source = nest.kernel.instructions[i.args[0]]
    of_rows = i.attr("over") == "row" and nest.kernel.lane_is_reduced
    varying = nest.kernel.lane is not None and not of_rows
    name = i.attr("mode") if i.name == "scan" else i.name
    name = "sum" if name == "recurrence" else name
    # Unrolled axes are innermost: positions along them come in order if they are the last ones.
    unrolled = [axis in nest.unrolled for axis, (_, reduced) in enumerate(nest.kernel.axes) if reduced]
    return Accumulator(nest.lanes, name, source.dtype.name, varying, i.dtype.name, unrolled == sorted(unrolled))


def _reduced_position(nest: Nest, i: Instruction) -> ir.Value | None:
    """For argmax and argmin, the position along the reduced axes."""
    if not i.name.startswith("arg"):
        return None
    position = _position(nest)
    return nest.lanes.add(position, nest.lanes.lane_index()) if nest.kernel.lane_is_reduced else position


def _position(nest: Nest) -> ir.Value:
    """The position of the current point along the reduced axes; that of the first lane."""
    kernel = nest.kernel
    position: ir.Value = I64(0)
    reduced = [a for a, (_, r) in enumerate(kernel.axes) if r]
    for axis in reduced:
        extent = I64(nest.unrolled[axis]) if axis in nest.unrolled else nest.words[kernel.axes[axis][0]]
        position = position * extent + nest.index[axis]
    return position
