"""Binding: instructions with numeric index maps become a Kernel, whose strides and extents are words.

Before: the instructions of a loop nest, in order. After: a kernel without sizes, and the contents of its words. Kernels of one
structure share one text: 100, 101 and 500 rows are one kernel. Also chosen here: the lane axis, unrolled axes and tiles.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.shapes import Shape, numel
from genesis.ir.unguarded import minimum
from genesis.lower.group import COLUMN, FINAL, FULL, Axis
from genesis.lower.index_map import IndexMap
from genesis.lower.kernel import REDUCTIONS, Access, Instruction, InstructionAttrs, Kernel, KernelArg, shared_word

# The stride up to which a wide load, deinterleaved by shuffles, beats a gather. Pooling with windows of 2 x 2 takes 0.6 ms a
# layer instead of 2.3 with gathers.
MOST_STRIDE = 4
MOST_UNROLLED = 256  # instructions of a kernel at all points of its short axes
LEAST_TILE = 8  # elements along each side
SCANNED_ROWS = 16  # rows that are scanned side by side rather than one by one, each by any worker
LONGEST_TILE = 1 << 14  # elements of a row: 16 such rows of float32 are a megabyte
HORIZONTAL_REDUCE = 16  # elements of a row that take as long as one horizontal reduction
# The worth of an access along an axis, by its stride: backwards it is a load and a shuffle, of every other element a wide load
# and a shuffle; of every third or fourth, wide loads of which most may be for nothing; other strides are gathers.
_ACCESS_SCORE, GATHERED = {1: 3, -1: 2, 2: 2, 0: 1}, -1 / 2
_COPIES = frozenset(("load", "store", "clone"))
# The weight of an access per row relative to one per point, when the lane axis is chosen. With equal weights, mean and variance
# of rows would gather down the rows: 13.0 ms (2048 x 2048) instead of 0.25. The four numbers per channel of batch norm must not
# outweigh the image: it would be transposed to channels last and back.
ROW_WEIGHT = 1 / 16


class UnboundInstruction(NamedTuple):
    """An instruction with a numeric map, not yet words; `origin` is the value that it belongs to."""

    name: str
    args: tuple[int, ...]
    dtype: DType
    level: str
    step: int
    origin: int
    map: IndexMap | None = None
    storage: int | None = None
    attrs: InstructionAttrs = ()
    words: tuple[KernelArg, ...] = ()
    along: int | None = None  # the stride along the axis that the first argument indexes


def bind(
    nest: Sequence[Axis], instructions: Sequence[UnboundInstruction], unroll: bool = True
) -> tuple[Kernel, tuple[int, ...]]:
    """The kernel that computes `instructions` at the points of `nest`, and its axes' extents; `unroll`: see `Target`."""
    axes, maps = _merged(nest, [i.map for i in instructions])
    vectors = _vectorized(axes, instructions, maps, unroll)
    if unroll:
        vectors = _tiled(axes, instructions, maps, vectors)
    kernel, extents = _bound(axes, instructions, maps, vectors)
    if vectors.tiled is not None and kernel.is_product:  # its blocks of sums read few elements per product anyway
        kernel, extents = _bound(axes, instructions, maps, vectors._replace(tiled=None, tiled_accesses=()))
    return kernel, extents


def _bound(
    axes: Sequence[Axis], instructions: Sequence[UnboundInstruction], maps: Sequence[IndexMap | None], vectors: _Vectors
) -> tuple[Kernel, tuple[int, ...]]:
    """The kernel vectorized so, and its axes' extents."""
    lane, tiled = vectors.lane, vectors.tiled
    # A tile covers the lanes and the loop around them: the tiled axis is the last of the kept axes.
    order = sorted([a for a in range(len(axes)) if a != lane], key=lambda a: (axes[a][1], a == tiled))
    order += [lane] if lane is not None else []
    axes = [axes[a] for a in order]
    binder = _Binder(axes, order, vectors)
    for instruction, at in zip(instructions, maps, strict=True):
        binder.add(instruction, at)
    words, innermost = binder.words, None if lane is None else len(axes) - 1
    if any(i.level in (COLUMN, FINAL) for i in instructions):
        words += [KernelArg("partials"), KernelArg("items"), KernelArg("shares")]
    numbered = [(n, reduced) for n, (_, reduced) in enumerate(axes)]
    rest = binder.unrolled, None if tiled is None else order.index(tiled), [i.origin for i in instructions]
    kernel = Kernel(numbered, innermost, binder.instructions, words, *rest)
    if kept := kernel.kept():
        words += [KernelArg("scratch", n, binder.instructions[n].dtype.compute) for n in kept]
        kernel = Kernel(numbered, innermost, binder.instructions, words, *rest)
    return kernel, tuple(extent for extent, _ in axes)


def _merged(axes: Sequence[Axis], maps: Sequence[IndexMap | None]) -> tuple[list[Axis], list[IndexMap | None]]:
    """Merge neighbouring axes that have a common stride in every map, and drop axes of extent 1."""
    keep = [a for a, (extent, _) in enumerate(axes) if extent != 1]
    result = [axes[a] for a in keep]
    strides = [None if m is None else [m.strides[a] for a in keep] for m in maps]
    a = len(result) - 2
    while a >= 0:
        (outer, kind), (inner, other) = result[a], result[a + 1]
        if kind == other and all(s is None or s[a] == s[a + 1] * inner for s in strides):
            result[a : a + 2] = [(outer * inner, kind)]
            for s in strides:
                if s is not None:
                    del s[a]
        a -= 1
    return result, [None if m is None else IndexMap(m.offset, tuple(s or ())) for m, s in zip(maps, strides, strict=True)]


# ---- vectors ----
_Access = tuple[float, Shape]  # its weight in the choice of the lane axis, and its strides


class _Vectors(NamedTuple):
    """The lane axis, the unrolled axes, whether vectors interleave, and the axis tiled together with the lanes (see
    `Kernel`)."""

    lane: int | None
    unrolled: Collection[int] = ()
    strided: bool = False
    tiled: int | None = None
    tiled_accesses: Collection[int] = ()  # the instructions whose accesses go through tiles


def _vectorized(
    axes: Sequence[Axis], instructions: Sequence[UnboundInstruction], maps: Sequence[IndexMap | None], unroll: bool
) -> _Vectors:
    """Choose the lane axis: the one along which most accesses are contiguous.

    A short axis is unrolled if some access, at every point, is contiguous along it and strided by its extent along the lanes:
    the elements that one vector skips are those of the others, and one wide load serves all.
    """
    names = {i.name for i in instructions}
    in_order, columns = not names.isdisjoint(("scatter", "scan")), any(i.level == COLUMN for i in instructions)
    accesses = _weighted(axes, instructions, maps, unroll)
    candidates = _lane_axes(axes, names, in_order, columns)
    stepping = set() if in_order or columns or not unroll else _stepping(axes, candidates, accesses)
    short = {(lane, axis) for lane, axis in stepping if axes[axis][0] <= MOST_STRIDE}
    score = partial(_lane_score, axes, accesses, unroll, {lane for lane, _ in stepping})
    lane = max((axis for axis in candidates if all(axis != other for _, other in short)), key=score, default=None)
    if lane is not None and in_order and (unroll or "scan" in names) and all(strides[lane] != 1 for _, strides in accesses):
        side_by_side = _tiled(axes, instructions, maps, _Vectors(lane))
        waits = any(i.name == "scan" and i.dtype.category == 2 for i in instructions)  # an integer takes a cycle or two
        enough = unroll and waits and axes[lane][0] >= SCANNED_ROWS and side_by_side.tiled is not None
        return side_by_side if enough else _Vectors(None)  # or row by row: each row is contiguous
    if lane is not None and unroll and names <= _COPIES and axes[lane][0] <= MOST_STRIDE and len(axes) > 1:
        # 18,432 edges of two columns took 150 us of a pad, and 40 to 50 as scalars.
        return _Vectors(None, {lane})  # scalar: a masked vector takes longer than so few elements
    apart = unroll and lane is not None and not in_order and any(1 < strides[lane] <= MOST_STRIDE for _, strides in accesses)
    unrolled = _with_neighbours(axes, lane, {axis for of, axis in short if of == lane}, len(instructions))
    return _Vectors(lane, unrolled, apart or any(of == lane for of, _ in stepping))


def _with_neighbours(axes: Sequence[Axis], lane: int | None, unrolled: set[int], instructions: int) -> set[int]:
    """The unrolled axes, if there are any, and short ones right outside of them and of the lanes, up to so much code."""
    # A loop around short rows takes as long as they do. Windows of 2 x 2 in images of 32 x 32 on one thread: places of maxima
    # 240 to 195 us, their gradient 480 to 330.
    further = set(unrolled)
    for axis in reversed([a for a in range(min(unrolled, default=0)) if a != lane]):
        points = numel(axes[a][0] for a in (axis, *further))
        if axes[axis][0] > MOST_STRIDE or points * instructions > MOST_UNROLLED:
            break
        further.add(axis)
    return further


def _weighted(
    axes: Sequence[Axis], instructions: Sequence[UnboundInstruction], maps: Sequence[IndexMap | None], unroll: bool
) -> list[_Access]:
    """The accesses at each point."""
    touching = [(i, at) for i, at in zip(instructions, maps, strict=True)
                if i.storage is not None and at is not None and i.level not in (COLUMN, FINAL)]
    varied = [frozenset(axis for axis, stride in enumerate(at.strides) if stride) for _, at in touching]
    return [(_weight(axes, i, at, unroll, any(own < other for other in varied)), at.strides)
            for (i, at), own in zip(touching, varied, strict=True)]


def _stepping(axes: Sequence[Axis], lanes: Sequence[int], accesses: Sequence[_Access]) -> set[tuple[int, int]]:
    """Pairs of an axis for lanes and another along which an access is contiguous, while it is strided along the lanes.

    No others for which an access is strided along the other axis, too, but far apart along the lanes.
    """
    found = [strides for weight, strides in accesses if weight == 1]
    return {(lane, short) for short, (extent, _) in enumerate(axes) if extent > 1 for strides in found if strides[short] == 1
            for lane in lanes if lane != short and 1 < strides[lane] <= MOST_STRIDE
            and not any(1 < other[short] <= MOST_STRIDE < other[lane] for other in found)}


def _lane_score(axes: Sequence[Axis], accesses: Sequence[_Access], unroll: bool, stepping: Collection[int], axis: int) -> float:
    """The score of `axis` as lanes: by contiguous accesses, and by short strides if it is `stepping` over a short axis."""
    extent, reduced = axes[axis]
    steps = [(weight, strides[axis]) for weight, strides in accesses]
    score = sum(weight * _ACCESS_SCORE.get(s, GATHERED) for weight, s in steps)
    score = (score + 1 / 3) * minimum(extent, 16) / 16  # an axis shorter than a vector does not fill it
    if reduced and unroll:
        row = numel(extent for extent, reduced in axes if reduced)
        score *= row / (row + HORIZONTAL_REDUCE)
    if axis in stepping:
        score += 2 * sum(weight for weight, s in steps if 1 < s <= MOST_STRIDE)
    return score


def _lane_axes(axes: Sequence[Axis], names: Collection[str], in_order: bool, columns: bool) -> list[int]:
    """The axes that may be lanes, innermost first.

    Scatters and scans go along reduced axes in order. A position among several reduced axes (argmax) counts the last one
    fastest. Column sums accumulate while lanes run along rows.
    """
    reduced = [axis for axis, (_, r) in enumerate(axes) if r]
    barred = reduced if in_order else reduced[:-1] if any(name.startswith("arg") for name in names) else ()
    return [axis for axis in reversed(range(len(axes))) if axis not in barred and (axes[axis][1] or not columns)]


def _tiled(
    axes: Sequence[Axis], instructions: Sequence[UnboundInstruction], maps: Sequence[IndexMap | None], vectors: _Vectors
) -> _Vectors:
    """Choose the tiled axis: the one along which most accesses that are strided along lanes are contiguous, if any.

    Tiles pay from a few rows on; where lanes are reduced, whole rows have to fit into a cache.
    """
    lane = vectors.lane
    if lane is None or vectors.strided or axes[lane][0] < LEAST_TILE or (axes[lane][1] and axes[lane][0] > LONGEST_TILE):
        return vectors
    if vectors.tiled is not None or any(i.name == "scatter" for i in instructions):
        return vectors
    inner = [a for a, (_, reduced) in enumerate(axes) if reduced and a != lane]
    accesses = {
        axis: [n for n, (i, at) in enumerate(zip(instructions, maps, strict=True))
               if at is not None and i.name in ("load", "store", "scan") and i.level == FULL
               and at.strides[axis] in (1, -1) and at.strides[lane] not in (0, 1, -1)
               and (axes[axis][1] or not any(at.strides[a] for a in inner))]  # a tile has two axes
        for axis, (extent, reduced) in enumerate(axes)
        if axis != lane and extent >= LEAST_TILE and (not reduced or axis == inner[-1])}
    tiled = max(accesses, key=lambda axis: (len(accesses[axis]), not axes[axis][1], axis), default=None)
    return vectors if tiled is None or not accesses[tiled] else vectors._replace(tiled=tiled, tiled_accesses=accesses[tiled])


def _weight(axes: Sequence[Axis], instruction: UnboundInstruction, at: IndexMap, unroll: bool, repeated: bool) -> float:
    """The weight of an access in the choice of the lane axis; it is `repeated` if another one varies over its axes and more.

    Without unrolling, lanes are a GPU's threads: the weight is the access' share of all points, as caches serve repetitions.
    """
    if unroll or instruction.name not in ("load", "store"):
        return ROW_WEIGHT if repeated or instruction.level != FULL else 1.0
    varied = numel(extent for (extent, _), stride in zip(axes, at.strides, strict=True) if stride)
    return varied / max(1, numel(extent for extent, _ in axes))


# ---- words ----
_NOWHERE = frozenset[int]()


class _Binder:
    """Instructions with words instead of numbers, over `axes` in the `order` that they have among those of the maps."""

    def __init__(self, axes: Sequence[Axis], order: Sequence[int], vectors: _Vectors) -> None:
        self.order, self.strided, self.tiled_accesses = order, vectors.strided, frozenset(vectors.tiled_accesses)
        self.reduced = frozenset(a for a, (_, reduced) in enumerate(axes) if reduced)
        self.unrolled: Mapping[int, int] = {order.index(a): int(axes[order.index(a)][0]) for a in sorted(vectors.unrolled)}
        self.instructions: list[Instruction] = []
        self.words = [shared_word("extent", extent) for extent, _ in axes]
        self.words += [KernelArg("block"), KernelArg("blocks")] if vectors.lane is not None else []
        self.stride_words: dict[tuple[object, ...], tuple[int | str, ...]] = {}  # a value and its strides -> the strides' words
        self.wide_accesses: dict[tuple[object, ...], dict[int, int]] = {}  # strided ones -> the first of each group, by offset

    def add(self, raw: UnboundInstruction, at: IndexMap | None) -> None:
        access = None if at is None else self._access(raw, at)
        attrs = raw.attrs
        # A word says whether stores bypass the caches, so that small and large outputs share a kernel. For large ones it makes
        # silu(a * b + c) 1.82 ms instead of 2.24.
        is_tiled = len(self.instructions) in self.tiled_accesses
        if access is not None and at is not None and raw.level == FULL and raw.name in ("load", "store"):
            attrs += self._neighbour(raw, at, access.strides)
        if raw.name == "store" and raw.level == FULL and access is not None and (is_tiled or access.strides[-1:] == (1,)):
            attrs += (("stream", self._word(shared_word("stream", raw.storage))),)
        if is_tiled:
            words = KernelArg("tile", None, raw.dtype), KernelArg("transposition", raw.dtype.itemsize)
            attrs += (("tile", ",".join(map(self._word, words))),)
        if raw.words:
            attrs += (("words", ",".join(map(self._word, raw.words))),)
        if raw.along is not None:
            attrs += (("along", 1 if raw.along == 1 else self._word(shared_word("stride", raw.along))),)
        varies = self._varies(raw, at)
        self.instructions.append(Instruction(raw.name, raw.args, raw.dtype, raw.level, varies, raw.step, access, attrs))

    def _neighbour(self, raw: UnboundInstruction, at: IndexMap, strides: tuple[int | str, ...]) -> InstructionAttrs:
        """The first access whose lanes skip this one's elements, and how far beyond it this one lies: the two share wide loads
        or stores."""
        stride = strides[-1] if self.strided and strides else 0
        if not isinstance(stride, int) or stride < 2:
            return ()
        groups = self.wide_accesses.setdefault((raw.name, raw.storage, raw.dtype, raw.step, at.strides), {})
        first = next((offset for offset in groups if 0 <= at.offset - offset < stride), None)
        if first is None:
            groups[at.offset] = len(self.instructions)
            return ()
        return (("neighbour", (groups[first], int(at.offset - first))),)

    def _word(self, word: KernelArg) -> str:
        """The name of a new word."""
        self.words.append(word)
        return f"w{len(self.words) - 1}"

    def _access(self, raw: UnboundInstruction, at: IndexMap) -> Access:
        pointer, last = len(self.words), len(self.order) - 1
        self.words.append(shared_word("stride", at.offset) if raw.storage is None else
                          shared_word("pointer", raw.storage, at.offset * raw.dtype.itemsize))
        is_lanes_load = raw.name == "load" and raw.dtype.category < 3 and len(self.instructions) not in self.tiled_accesses
        backwards = last if is_lanes_load else None  # a stride of -1 is compiled in along this axis
        # Complex elements are never deinterleaved.
        known = self._is_known if raw.dtype.category < 3 else lambda s, _, innermost: not s or (s == 1 and innermost)
        # Accesses to a value with equal strides share words, so code generation shares their offsets.
        key = raw.storage, raw.dtype, backwards, at.strides
        if key not in self.stride_words:
            self.stride_words[key] = tuple([
                int(s) if known(s, axis, axis == last) or (s, axis) == (-1, backwards) else self._word(shared_word("stride", s))
                for axis, s in enumerate(at.strides[a] for a in self.order)])
        return Access(pointer, self.stride_words[key], raw.dtype)

    def _is_known(self, stride: int, axis: int, innermost: bool) -> bool:
        """Whether a stride is compiled in rather than a word."""
        # A known stride is part of the kernel's text. If all were known, each size would compile a kernel.
        if stride in (0, 1):
            return not stride or innermost or axis in self.unrolled
        return self.strided and innermost and 1 < stride <= MOST_STRIDE

    def _varies(self, raw: UnboundInstruction, at: IndexMap | None) -> frozenset[int]:
        """The axes that a value varies over: those of its arguments and of its own map, without the reduced ones."""
        found = _NOWHERE.union(*[self.instructions[a].varies for a in raw.args]) if raw.args else _NOWHERE
        if at is not None:
            found |= {axis for axis, a in enumerate(self.order) if at.strides[a]}
        if raw.name not in REDUCTIONS or raw.level == FULL:
            return found
        return _NOWHERE if raw.level == FINAL else found & self.reduced if raw.level == COLUMN else found - self.reduced
