"""From a Kernel to LLVM IR: one function `void kernel(i64 lo, i64 hi, i64* words, i64 worker)` of explicit vectors.

An item is one point of the outer axes, and a block of the lane axis where that axis is kept. Where the lane axis is
reduced, lanes run along a row and are reduced at its end; where it is kept, each lane is a row of its own. What is computed
for one point is in `reduction_passes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.moved_halves import without_conversions
from genesis.codegen.cpu.nest import Nest
from genesis.codegen.cpu.reduction_passes import accumulator_of, emit_row
from genesis.codegen.cpu.reductions import Accumulator, clear_columns, finish_columns
from genesis.codegen.cpu.registers import I1, I64
from genesis.codegen.cpu.tiling import tile_rows
from genesis.codegen.cpu.transposing_tiles import through_tiles
from genesis.codegen.cpu.values import effect, hoist, value_of
from genesis.lower.kernel import Kernel


def emit_kernel(kernel: Kernel, width: int, blocks: Mapping[int, int] = MappingProxyType({})) -> str:
    """The module of a kernel's main function, which has the kernel's name; `blocks`: kept axis -> neighbours per item."""
    nest = Nest(without_conversions(kernel), kernel.name, width, blocks)
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
        same = same & b.icmp_unsigned("==", ours, theirs)
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
            slot = share * len(nest.finals) + position
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
    first, last = (b.udiv(items * s, shares) for s in (share, share + 1))
    # Four shares per worker: sums of 4M numbers after a pause take 0.47 ms; with one each, 0.60.
    totals = {n: accumulator_of(nest, n) for n in nest.finals}
    clear_columns(nest)
    _items(nest, first, last, totals)
    for position, n in enumerate(nest.finals):
        slot = share * len(nest.finals) + position
        at = b.gep(nest.words[nest.word_of("partials")], [slot], inbounds=True, source_etype=I64)
        b.store(totals[n].reduced(), at)


def _items(nest: Nest, first: ir.Value, last: ir.Value, totals: dict[int, Accumulator]) -> None:
    """Emit the items in order; reductions over all of them go into `totals`."""
    kernel = nest.kernel
    with _item_loops(nest, first, last):
        start, end = nest.lane_range = nest.item_range
        if kernel.lane is None or kernel.lane_is_innermost:
            _tiles_of_item(nest, lambda: emit_row(nest, totals, start, end))
        else:
            running = {n: accumulator_of(nest, n) for n in nest.finals}

            def vectors() -> None:
                hoist(nest, kernel.needed(kernel.targets()))
                nest.lane_loop(start, end, lambda: emit_row(nest, running, start, end))

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
            loops.enter_context(nest.branch(first < last))
            counts = [_count(nest, axis) for axis in order[1:]]
            starts, stops = _digits(nest, first, counts), _digits(nest, last - 1, counts)
            low, high = starts[0], stops[0] + 1
            begins = ends = I1(1)  # whether the outer loops are at the first item's position; at the last's
            for number, axis in enumerate(order):
                position = loops.enter_context(nest.loop(low, high))
                _bind_item(nest, axis, position)
                if number < len(counts):
                    hoist(nest, kernel.needed(kernel.targets()))
                    begins = begins & position.equals(starts[number])
                    ends = ends & position.equals(stops[number])
                    low = b.select(begins, starts[number + 1], I64(0))
                    high = b.select(ends, stops[number + 1] + 1, counts[number])
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
    return extent if size == 1 else b.udiv(extent + (size - 1), I64(size))


def _size(nest: Nest, axis: int) -> int:
    """The number of indices of an outer axis in an item."""
    return tile_rows(nest.kernel) if axis == nest.kernel.tiled else nest.blocks.get(axis, 1)


def _bind_item(nest: Nest, axis: int, position: ir.Value) -> None:
    """Bind an outer axis, or the range of lanes, at an item's position along it."""
    extent = nest.words[nest.kernel.axes[axis][0]]
    if axis == nest.kernel.lane and nest.kernel.place is not None:
        nest.owner = position
    elif axis == nest.kernel.lane:
        size = nest.words[nest.word_of("block")]
        start = position * size
        nest.item_range = start, _least(nest, start + size, extent)
        nest.item_level = len(nest.scopes) - 1
    elif axis == nest.kernel.tiled:
        size = I64(_size(nest, axis))
        position = position * size
        nest.tiled_range = position, _least(nest, position + size, extent)
    elif axis in nest.blocks and axis != nest.folded:  # the last block overlaps the one before, and computes the same
        size = I64(_size(nest, axis))
        nest.block_start[axis] = _least(nest, position * size, extent - size)
        nest.level[axis] = len(nest.scopes) - 1
    else:
        nest.bind_here(axis, position * _size(nest, axis) if axis == nest.folded else position)


def _least(nest: Nest, x: ir.Value, y: ir.Value) -> ir.Value:
    return nest.builder.select(x < y, x, y)
