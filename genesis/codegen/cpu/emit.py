"""From a Kernel to LLVM IR: one function `void kernel(i64 lo, i64 hi, i64* words, i64 worker)` of explicit vectors.

An item is one point of the outer axes, and a block of the lane axis where that axis is kept. Where the lane axis is
reduced, lanes run along a row and are reduced at its end; where it is kept, each lane is a row of its own. A kernel makes
one pass over the reduced axes per level of nested reductions, and computes each value in the outermost loop that has
bound the axes it varies over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import MappingProxyType

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.addressing import at_each_point
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.masked_tail import masked_tail, with_tail
from genesis.codegen.cpu.nest import Nest
from genesis.codegen.cpu.reductions import Accumulator, add_to_columns, clear_columns, finish_columns
from genesis.codegen.cpu.registers import I1, I64
from genesis.codegen.cpu.tiles import through_tiles
from genesis.codegen.cpu.tiling import tile_rows
from genesis.codegen.cpu.values import effect, hoist, stored, value_of
from genesis.lower.kernel import REDUCTIONS, Instruction, Kernel


def emit_kernel(kernel: Kernel, width: int, blocks: Mapping[int, int] = MappingProxyType({})) -> str:
    """The module of a kernel's main function, which has the kernel's name; `blocks`: kept axis -> neighbours per item."""
    nest = Nest(kernel, kernel.name, width, blocks)
    _leave_copies_in_place(nest)
    hoist(nest, [n for n in kernel.needed(kernel.targets()) if "fault" not in _words_of(kernel, n)])
    if kernel.has_totals:
        # Partial results are per share, not per worker, so scheduling changes no bit.
        with nest.loop(nest.lo, nest.hi) as share:
            _share(nest, share)
    else:
        _items(nest, nest.lo, nest.hi, {})
    if nest.streams:
        nest.builder.fence("seq_cst")  # streaming stores are weakly ordered: visible before the launch is reported done
    nest.builder.ret_void()
    return str(nest.module)


def _words_of(kernel: Kernel, n: int) -> set[str]:
    """The kinds of words that instruction `n` reads."""
    words = dict(kernel.instructions[n].attrs).get("words", "")
    return {kernel.words[int(word[1:])].kind for word in words.split(",") if word}


def _leave_copies_in_place(nest: Nest) -> None:
    """Return immediately from a copy of memory onto itself, as of an input that is donated to a write."""
    kernel = nest.kernel
    moves = [i for i in kernel.instructions if i.name != "clone"]
    if [i.name for i in moves] != ["load", "store"] or moves[0].dtype is not moves[1].dtype:
        return
    b = nest.builder
    (start, *steps), (target, *there) = ((nest.words[i.access.pointer], *map(nest.named, i.access.strides))
                                         for i in moves if i.access is not None)
    same = b.icmp_unsigned("==", start, target)
    for ours, theirs in zip(steps, there, strict=True):
        same = b.and_(same, b.icmp_unsigned("==", ours, theirs))
    with b.if_then(same):
        b.ret_void()


def emit_finish(kernel: Kernel, width: int) -> str:
    """The module of the function that combines the shares' partial results and computes what depends on them."""
    nest = Nest(kernel, kernel.name + "_finish", width, {})
    b = nest.builder
    if nest.columns:
        finish_columns(nest)
        return str(nest.module)
    shares, partials = nest.words[nest.word_of("shares")], nest.words[nest.word_of("partials")]
    nest.lanes = Lanes(b, nest.lanes.width)
    results = {}
    for n in nest.finals:
        i = kernel.instructions[n]
        results[n] = Accumulator(nest.lanes, i.name, kernel.instructions[i.args[0]].dtype.name, False)
    with nest.loop(I64(0), shares) as share:
        for position, n in enumerate(nest.finals):
            slot = b.add(b.mul(share, I64(len(nest.finals))), I64(position))
            at = b.gep(partials, [slot], inbounds=True, source_etype=I64)
            results[n].add(b.load(at, typ=results[n].type), None, None)
    for n in nest.finals:
        nest.scopes[-1][nest.key(n)] = nest.lanes.round_to(kernel.instructions[n].dtype.name, results[n].value())
    stores = [i for i in kernel.instructions if i.name == "store" and i.level == "final"]
    # Reads come first, as a result may alias an input: a loss may have the memory of a one-element bias.
    for i in stores:
        value_of(nest, i.args[0])
    for i in stores:
        effect(nest, i)
    b.ret_void()
    return str(nest.module)


def _share(nest: Nest, share: ir.Value) -> None:
    """A share of the items, with its own partial results, which do not depend on the worker that computes it."""
    b = nest.builder
    nest.share = share
    # The bounds of a share depend on its number alone.
    items, shares = (nest.words[nest.word_of(kind)] for kind in ("items", "shares"))
    first, last = (b.udiv(b.mul(items, s), shares) for s in (share, b.add(share, I64(1))))
    # Four shares per worker: sums of 4M numbers after a pause take 0.47 ms; with one each, 0.60.
    totals = {n: _accumulator(nest, n) for n in nest.finals}
    clear_columns(nest)
    _items(nest, first, last, totals)
    for position, n in enumerate(nest.finals):
        slot = b.add(b.mul(share, I64(len(nest.finals))), I64(position))
        at = b.gep(nest.words[nest.word_of("partials")], [slot], inbounds=True, source_etype=I64)
        b.store(totals[n].reduced(), at)


def _items(nest: Nest, first: ir.Value, last: ir.Value, totals: dict[int, Accumulator]) -> None:
    """Emit the items in order; reductions over all of them go into `totals`."""
    kernel = nest.kernel
    with _item_loops(nest, first, last):
        start, end = nest.lane_range = nest.item_range
        if kernel.lane is None or kernel.lane_is_innermost:
            _tiles_of_item(nest, lambda: _row(nest, totals, start, end))
        else:
            running = {n: _accumulator(nest, n) for n in nest.finals}

            def vectors() -> None:
                hoist(nest, kernel.needed(kernel.targets()))
                nest.lane_loop(start, end, lambda: _row(nest, running, start, end))

            _tiles_of_item(nest, vectors)
            for n, total in running.items():
                totals[n].merge(total)
        for axis in kernel.outer:
            nest.bound.discard(axis)


def _tiles_of_item(nest: Nest, body: Callable[[], None]) -> None:
    """Run `body` at each point of an item: one, or several along a tiled kept axis."""
    if nest.kernel.tiled in nest.kernel.outer:
        through_tiles(nest, *nest.tiled_range, nest.kernel.instructions, body)
    else:
        body()


@contextmanager
def _item_loops(nest: Nest, first: ir.Value, last: ir.Value) -> Iterator[None]:
    """A loop for each axis that items are divided along, over the items in [`first`, `last`).

    What does not vary along inner axes is hoisted out of their loops.
    """
    # Rows of 32 numbers took 60 instructions each when items decoded their number and computed all addresses anew.
    kernel, b = nest.kernel, nest.builder
    order = [*kernel.outer]
    if kernel.lane is not None and not kernel.lane_is_reduced:  # divided into blocks, which are innermost if they are tiles
        order.insert(len(order) if kernel.tiled in order else max(0, len(order) - 1), kernel.lane)
    with ExitStack() as loops:
        if not order:
            loops.enter_context(nest.loop(first, last))
        else:
            loops.enter_context(nest.branch(b.icmp_signed("<", first, last)))
            counts = [_count(nest, axis) for axis in order[1:]]
            starts, stops = _digits(nest, first, counts), _digits(nest, b.sub(last, I64(1)), counts)
            low, high = starts[0], b.add(stops[0], I64(1))
            begins = ends = I1(1)  # whether the outer loops are at the first item's position; at the last's
            for number, axis in enumerate(order):
                position = loops.enter_context(nest.loop(low, high))
                _bind_item(nest, axis, position)
                if number < len(counts):
                    hoist(nest, kernel.needed(kernel.targets()))
                    begins = b.and_(begins, b.icmp_signed("==", position, starts[number]))
                    ends = b.and_(ends, b.icmp_signed("==", position, stops[number]))
                    low = b.select(begins, starts[number + 1], I64(0))
                    high = b.select(ends, b.add(stops[number + 1], I64(1)), counts[number])
        yield


def _digits(nest: Nest, number: ir.Value, counts: Sequence[ir.Value]) -> list[ir.Value]:
    """A number in mixed radix: its digits, of which all but the first have a count."""
    digits: list[ir.Value] = []
    for count in reversed(counts):
        digits.insert(0, nest.builder.urem(number, count))
        number = nest.builder.udiv(number, count)
    return [number, *digits]


def _count(nest: Nest, axis: int) -> ir.Value:
    """The number of items along an axis."""
    if axis == nest.kernel.lane:
        return nest.words[nest.word_of("blocks")]
    b, extent, size = nest.builder, nest.words[nest.kernel.axes[axis][0]], _size(nest, axis)
    return extent if size == 1 else b.udiv(b.add(extent, I64(size - 1)), I64(size))


def _size(nest: Nest, axis: int) -> int:
    """The number of indices of an outer axis in an item."""
    return tile_rows(nest.kernel) if axis == nest.kernel.tiled else nest.blocks.get(axis, 1)


def _bind_item(nest: Nest, axis: int, position: ir.Value) -> None:
    """Bind an outer axis, or the range of lanes, at an item's position along it."""
    b, extent = nest.builder, nest.words[nest.kernel.axes[axis][0]]
    if axis == nest.kernel.lane:
        size = nest.words[nest.word_of("block")]
        start = b.mul(position, size)
        nest.item_range = start, _least(nest, b.add(start, size), extent)
        nest.item_level = len(nest.scopes) - 1
    elif axis == nest.kernel.tiled:
        size = I64(_size(nest, axis))
        position = b.mul(position, size)
        nest.tiled_range = position, _least(nest, b.add(position, size), extent)
    elif axis in nest.blocks:  # the last block overlaps the previous one, and recomputes the same values
        size = I64(_size(nest, axis))
        nest.block_start[axis] = _least(nest, b.mul(position, size), b.sub(extent, size))
        nest.level[axis] = len(nest.scopes) - 1
    else:
        nest.bind_here(axis, position)


def _least(nest: Nest, x: ir.Value, y: ir.Value) -> ir.Value:
    return nest.builder.select(nest.builder.icmp_signed("<", x, y), x, y)


def _row(nest: Nest, totals: dict[int, Accumulator], start: ir.Value, end: ir.Value) -> None:
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
        self.scans = {n: _accumulator(nest, n) for n in targets if kernel.instructions[n].name == "scan"}
        self.running: dict[tuple[int, ...], Accumulator] = {}  # the reductions of this pass, by value key
        at_each_point(nest, nest.kept_unrolled, self._begin)

    def _begin(self) -> None:
        """An accumulator for each reduction; where no axis is reduced in here, the total itself takes the values in."""
        nest, kernel = self.nest, self.nest.kernel
        # Values go into the total without a stop at a row's end: sums of 4M numbers take 136 us, a loop in C 129.
        nothing_reduced = not kernel.lane_is_reduced and not kernel.inner and len(nest.kept_unrolled) == len(nest.unrolled)
        for n in self.targets:
            if kernel.instructions[n].name in REDUCTIONS and n not in nest.columns and nest.key(n) not in self.running:
                self.running[nest.key(n)] = self.totals[n] if nothing_reduced else _accumulator(nest, n)

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
            limit = b.add(first, rows)
            last = b.select(b.icmp_signed("<", limit, extent), limit, extent)
            through_tiles(nest, first, last, accesses, partial(self._innermost, start, end))

    def _innermost(self, start: ir.Value, end: ir.Value) -> None:
        hoist(self.nest, self.needed)
        tail = masked_tail(self.nest.kernel)
        if tail in self.needed:
            with_tail(self.nest, tail, self.needed, end, self._compute)
        elif self.nest.kernel.lane_is_innermost:
            self.nest.lane_loop(start, end, partial(_points, self.nest, self.needed, self._compute))
        else:
            _points(self.nest, self.needed, self._compute)

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


def _accumulator(nest: Nest, n: int) -> Accumulator:
    i = nest.kernel.instructions[n]
    source = nest.kernel.instructions[i.args[0]]
    of_rows = i.attr("over") == "row" and nest.kernel.lane_is_reduced
    varying = nest.kernel.lane is not None and not of_rows
    name = i.name
    if name == "scan":
        name = "prod" if i.attr("mode") == "prod" else "sum"
    return Accumulator(nest.lanes, name, source.dtype.name, varying)


def _reduced_position(nest: Nest, i: Instruction) -> ir.Value | None:
    """For argmax and argmin, the position along the reduced axes."""
    if not i.name.startswith("arg"):
        return None
    position = _position(nest)
    return nest.lanes.add(position, nest.lanes.lane_index()) if nest.kernel.lane_is_reduced else position


def _position(nest: Nest) -> ir.Value:
    """The position of the current point along the reduced axes; that of the first lane."""
    kernel, b = nest.kernel, nest.builder
    position: ir.Value = I64(0)
    reduced = [a for a, (_, r) in enumerate(kernel.axes) if r]
    for axis in reduced:
        extent = I64(nest.unrolled[axis]) if axis in nest.unrolled else nest.words[kernel.axes[axis][0]]
        position = b.add(b.mul(position, extent), nest.index[axis])
    return position
