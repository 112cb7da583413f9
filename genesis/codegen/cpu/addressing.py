"""Addresses of memory accesses: the first lane's element, the stride between lanes, and the wide accesses of unrolled axes.

Unrolled axes are short axes, whose points are unrolled in the innermost loop, and blocks of contractions. A short axis covers
the elements that a strided vector skips, such as the 2 x 2 of a pooling or the 3 of a colour: its points share one wide load,
which is deinterleaved, and one wide store. So do accesses that are neighbours: each to elements that the others skip. A block
is a few neighbours along a kept axis of a sum of products, which share loads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import product

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.nest import LINE, Nest, PendingStore
from genesis.codegen.cpu.registers import I32, I64, constants
from genesis.codegen.cpu.tiling import spreads_lanes
from genesis.codegen.cpu.vectors import joined
from genesis.ir.annotations import Key
from genesis.lower.kernel import Access, Instruction

# From so many accesses with equal strides on, all share one offset register, beside a base each. With a pointer for each, a
# transform with 16 loads and 16 stores kept 32 of them on the stack, and advanced them all in every loop.
MANY = 8


def address(nest: Nest, access: Access, without: Collection[int] = ()) -> ir.Value:
    """The address of the first lane's element; axes in `without` are left out.

    Each loop's term is added where its index is bound, outside of inner loops.
    """
    pointer = nest.words[access.pointer]
    terms: dict[int, list[tuple[int, int | str]]] = {}
    for axis, stride in enumerate(access.strides):
        if stride != 0 and axis not in without and (axis not in nest.point or axis in nest.block_start):
            terms.setdefault(nest.level[axis], []).append((axis, stride))
    if nest.access_counts[access.strides] >= MANY:
        pointer = nest.lanes.element_pointer(pointer, _whole_offset(nest, terms), access.dtype.name)
        terms = {}
    for level in sorted(terms):  # one offset for all accesses with equal strides
        offset = nest.once(level, ("offset", *terms[level]), partial(_sum_of, nest, terms[level]))
        moved = partial(nest.lanes.element_pointer, pointer, offset, access.dtype.name)
        pointer = nest.once(level, ("start", id(access)), moved)
    for axis, position in nest.point.items():
        stride = access.strides[axis]
        if position and stride != 0 and axis not in without:
            times = partial(nest.builder.mul, nest.named(stride), I64(position))
            offset = nest.once(0, ("times", stride, position), times)
            pointer = nest.lanes.element_pointer(pointer, offset, access.dtype.name)
    return pointer


def _whole_offset(nest: Nest, terms: Mapping[int, Sequence[tuple[int, int | str]]]) -> ir.Value:
    """The sum of all terms, each loop's added where its index is bound."""
    key: tuple[Key, ...] = ()
    total: ir.Value = I64(0)
    for level in sorted(terms):
        key = *key, *terms[level]
        total = nest.once(level, ("whole offset", *key), partial(_moved, nest, total, terms[level]))
    return total


def _moved(nest: Nest, offset: ir.Value, terms: Sequence[tuple[int, int | str]]) -> ir.Value:
    return offset + _sum_of(nest, terms)


def _sum_of(nest: Nest, terms: Sequence[tuple[int, int | str]]) -> ir.Value:
    """The sum of index times stride over axes."""
    total = I64(0)
    for number, (axis, stride) in enumerate(terms):
        index = nest.block_start[axis] if axis in nest.point else nest.index[axis]
        term = index if stride == 1 else index * nest.named(stride)
        total = total + term if number else term
    return total


def lane_stride(nest: Nest, access: Access) -> int | str:
    """The stride between the lanes' elements: a number, or the name of the word that has it."""
    lane = nest.kernel.lane
    return 0 if lane is None or lane not in nest.bound else access.strides[lane]


def known_stride(nest: Nest, access: Access) -> int:
    """The stride between the lanes' elements, if it is known when the kernel is compiled; else 0."""
    stride = lane_stride(nest, access)
    return stride if isinstance(stride, int) else 0


def lane_offsets(nest: Nest, stride: int | str) -> ir.Value:
    return nest.lanes.multiply(nest.lanes.lane_index(), nest.named(stride))


def flat_index(nest: Nest, access: Access) -> ir.Value:
    """The element's number, for each lane."""
    first = nest.words[access.pointer] + _offset(nest, access)
    stride = lane_stride(nest, access)
    return first if stride == 0 else nest.lanes.add(first, lane_offsets(nest, stride))


def _offset(nest: Nest, access: Access) -> ir.Value:
    """The uniform part of the element's number."""
    total: ir.Value | None = None
    for axis, stride in enumerate(access.strides):
        if stride == 0:
            continue
        term = nest.index[axis] if stride == 1 else nest.index[axis] * nest.named(stride)
        total = term if total is None else total + term
    return I64(0) if total is None else total


def at_each_point(nest: Nest, axes: Sequence[int], body: Callable[[], None]) -> None:
    """Run `body` at each point of the unrolled `axes`, then emit the wide stores that the points have filled."""
    for point in product(*(range(nest.unrolled[axis]) for axis in axes)):
        nest.point = dict(zip(axes, point, strict=True))
        for axis, position in nest.point.items():
            first = nest.block_start.get(axis)
            nest.index[axis] = I64(position) if first is None else first + position
        nest.bound.update(axes)
        body()
    nest.bound.difference_update(axes)
    nest.point = {}
    for at in nest.pending_stores.values():
        _store_rows(nest, at)
    nest.pending_stores.clear()


def _store_rows(nest: Nest, at: PendingStore) -> None:
    """Emit a wide store for each row of a vector."""
    lanes, values = nest.lanes, {offset: nest.lanes.splat(x) for offset, x in at.values.items()}
    starts, width = _row_starts(nest, at.instruction, at.start)
    for n, start in enumerate(starts):
        here = constants(I32, range(n * width, (n + 1) * width))
        own = values if width == lanes.width else {k: nest.builder.shuffle_vector(x, x, here) for k, x in values.items()}
        with lanes.narrowed(width):
            lanes.wide_store(own, start, at.instruction.dtype.name, at.stride, nest.mask)


def load_strided(nest: Nest, i: Instruction, stride: int) -> ir.Value:
    """Load `i` at the present point, lanes `stride` apart: a part of a wide load, which its first point emits."""
    key, start, offset, offsets = _wide_access(nest, i, stride)
    wide = next((scope[key] for scope in reversed(nest.scopes) if key in scope), None)
    if wide is None:
        starts, width = _row_starts(nest, i, start)
        with nest.lanes.narrowed(width):
            rows = [nest.lanes.wide_load(at, i.dtype.name, stride, offsets, nest.mask) for at in starts]
        wide = nest.scopes[-1][key] = joined(nest.builder, rows)
        _prefetch_next_item(nest, i, start, stride)
    return nest.lanes.strided(wide, i.dtype.name, stride, offset)


def _row_starts(nest: Nest, i: Instruction, start: ir.Value) -> tuple[list[ir.Value], int]:
    """Where the rows of a vector begin in memory, and how many lanes each has."""
    if nest.folded is None:
        return [start], nest.lanes.width
    assert i.access is not None
    count, distance = nest.blocks[nest.folded], nest.named(i.access.strides[nest.folded])
    starts = [nest.lanes.element_pointer(start, distance * n, i.dtype.name) for n in range(count)]
    return starts, nest.lanes.width // count


def _prefetch_next_item(nest: Nest, i: Instruction, start: ir.Value, stride: int) -> None:
    """Prefetch what the next item accesses where this one does from `start` on, if items are points of two axes or more."""
    # Rows are short and far apart, which no hardware prefetcher predicts. Zen 4, one thread, 8 images of 32 channels of 64 x 64
    # with both gradients 11.1 to 10.1 ms, 32 images of 64 channels of 32 x 32 34.0 to 31.2; what is stored, too, forward alone
    # 2.9 to 2.7 and 9.8 to 9.5. Stores of a line a row, and windows that unrolled axes read, gain nothing.
    kernel = nest.kernel
    if not spreads_lanes(kernel) or len(kernel.outer) < 2 or kernel.tiled is not None or nest.blocks:
        return
    assert i.access is not None
    lanes, next_item = nest.lanes, nest.lanes.element_pointer(start, _distance_of_next_item(nest, i.access), i.dtype.name)
    for element in range(0, stride * lanes.width, LINE // i.dtype.itemsize):
        lanes.prefetch(lanes.element_pointer(next_item, element, i.dtype.name), to_write=i.name == "store")


def _distance_of_next_item(nest: Nest, access: Access) -> ir.Value:
    """The elements from an item's access to the next one's, which is the first of the next row of items at the end of one."""
    b, (*_, row, column) = nest.builder, nest.kernel.outer

    def distance() -> ir.Value:
        step, last = nest.named(access.strides[column]), nest.words[nest.kernel.axes[column][0]] - 1
        to_next_row = nest.named(access.strides[row]) - last * step
        return b.select(nest.index[column] < last, step, to_next_row)

    return nest.once(nest.level[column], ("distance of next item", access.strides[row], access.strides[column]), distance)


def store_strided(nest: Nest, i: Instruction, value: ir.Value, stride: int) -> None:
    """Store `value` at the present point, lanes `stride` apart; the last point of the wide store emits it."""
    key, start, offset, _ = _wide_access(nest, i, stride)
    if key not in nest.pending_stores and stride * nest.lanes.width * i.dtype.itemsize > LINE:
        _prefetch_next_item(nest, i, start, stride)
    nest.pending_stores.setdefault(key, PendingStore(start, stride, i, {})).values[offset] = value


def _wide_access(nest: Nest, i: Instruction, stride: int) -> tuple[Key, ir.Value, int, list[int]]:
    """The wide access of the present point and its neighbours: its key and start, the point's offset, all offsets."""
    first, shift = nest.neighbours[id(i)]
    access = nest.kernel.instructions[first].access
    assert access is not None
    beside = [axis for axis in nest.kernel.unrolled if axis in nest.point and access.strides[axis] == 1]
    group, offset = divmod(sum(nest.point[axis] for axis in beside) + shift, stride)
    points = {sum(point) for point in product(*(range(nest.unrolled[axis]) for axis in beside))}
    reached = {point + further for point in points for other, further in nest.neighbours.values() if other == first}
    offsets = [n for n in range(stride) if group * stride + n in reached]
    start = nest.lanes.element_pointer(address(nest, access, beside), I64(group * stride), i.dtype.name)
    elsewhere = (position for axis, position in nest.point.items() if axis in i.varies and axis not in beside)
    return ("wide", first, group, *elsewhere), start, offset, offsets
