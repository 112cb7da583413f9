"""Tiling: the host's vector registers and caches, the lanes of a kernel, transposing tiles and register blocks."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import NamedTuple

from genesis.codegen.cpu.moved_halves import without_conversions
from genesis.lower.kernel import REDUCTIONS, Kernel, of_code
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.machine_code import target
from genesis.runtime.system import IS_ARM


@functools.cache
def vector_bytes() -> int:
    return 64 if "+avx512f" in _features() else 32 if "+avx" in _features() else 16


@functools.cache
def _features() -> frozenset[str]:
    """The processor's, asked for once: an interrupt while LLVM says them would leave its lock taken."""
    _, _, features = target()
    return frozenset(features.split(","))


def lanes_of(dtype: str) -> int:
    """The elements of "float32" or "float64" in a vector register."""
    return vector_bytes() // (4 if dtype == "float32" else 8)


def has_many_registers() -> bool:
    """Whether there are 32 vector registers: with AVX-512 and on ARM. Others have 16."""
    return vector_bytes() == 64 or IS_ARM


def multiplies_pairs() -> bool:
    """Whether an instruction multiplies vectors of pairs of bfloat16 numbers and adds to float32 ones."""
    return vector_bytes() == 64 and "+avx512bf16" in _features()


class RegisterTile(NamedTuple):
    """A block of a matrix product whose sums stay in registers: `rows`, each of so many `vectors`."""

    dtype: str
    lanes: int  # of a vector
    rows: int
    vectors: int
    pairs: bool = False  # an element of an operand is a pair of bfloat16 numbers, two terms

    @classmethod
    def of(cls, dtype: str, vectors: int) -> RegisterTile:
        """The tallest tile of "float32", "float64" or, of pairs, "bfloat16" on this processor."""
        if dtype == "bfloat16":
            return cls.of("float32", vectors)._replace(pairs=True)
        return cls(dtype, lanes_of(dtype), sum_registers() // vectors, vectors)

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def itemsize(self) -> int:
        return 4 if self.dtype == "float32" else 8

    @property
    def term(self) -> str:
        """The dtype as which a single term is moved."""
        return "int16" if self.pairs else self.dtype


def sum_registers() -> int:
    """The registers that hold sums, 24 of 32 or 12 of 16; the others hold operands."""
    return 24 if has_many_registers() else 12


@functools.cache
def cache_bytes() -> int:
    """The size of the last-level cache, 32 MiB if the system does not report it."""
    return max(_caches().values(), default=32 << 20)


@functools.cache
def second_cache_bytes() -> int:
    """The size of the second-level cache, 1 MiB if the system does not report it."""
    return _caches().get(2, 1 << 20)


def _caches() -> dict[int, int]:
    """The bytes of each level's cache."""
    found = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")
    try:
        texts = [[(path / name).read_text(encoding="utf-8").strip() for name in ("level", "size")] for path in found]
        return {int(level): int(size.removesuffix("K")) << 10 for level, size in texts}
    except (OSError, ValueError):
        return {}


# Measured: Black-Scholes with two registers per value 7.7 to 5.7 ms; four give 5.3 but compile half as long again. Two
# registers from work of 12 on gain little: 7.3 to 6.6 ns in cache.
LIGHT_WORK = 24
# Measured on Zen 4, one thread, 1024 x 1024 float32 in the last cache: lerp 155 to 134 us, addcmul 223 to 195, a conversion to
# float64 161 to 133; in the second cache 0 to 5%. An exponential (work of 10) takes 1.6 times as long in halves, argmax 1.5.
MEMORY_WORK = 8
MOST_STORES = 3  # of a kernel with two registers per value: more stores give parallelism enough, and need the registers
# Few: every size is another kernel to compile. Zen 4, depthwise 3 x 3 of 7, 14 and 28 rows, at most six at once, us: 362, 396
# and 692; seven 310, 349 and 657.
SIZES = (1, 2, 3, 4, 6, 7)
LEAST_VECTOR = 16  # bytes
READ = 0.8  # the cost of reading a vector, in vector multiplications


def register_lanes(kernel: Kernel) -> int:
    """The elements of a kernel's widest floating type in one register; without one, those of 32 bits, or of less if all have
    less."""
    halved = (_is_memory_bound(kernel) and not _writes_lines(kernel)) or spreads_lanes(kernel)
    return (vector_bytes() >> (halved and _halves_vectors())) // _widest(kernel)


@of_code
def _widest(kernel: Kernel) -> int:
    """The bytes of the elements that fill a kernel's registers."""
    instructions = without_conversions(kernel).instructions
    sizes = [i.dtype.compute.itemsize for i in instructions if i.dtype.category == 2]
    # Zen 4, copies of 90,000 int8: 6.9 to 3.4 us. AVX2 has no masks of bytes.
    if not sizes and vector_bytes() == 64 and _is_memory_bound(kernel) and not spreads_lanes(kernel):
        return min(4, max(i.dtype.itemsize for i in instructions))
    return max(sizes, default=4)


@of_code
def spreads_lanes(kernel: Kernel) -> bool:
    """Whether lanes are some elements apart: a register's then take several of memory, and short rows leave some empty."""
    # Zen 4, one thread, transforms of 64 channels of 32 x 32, whose rows have 8 tiles, 1.8 to 1.1 ms; of 32 channels of 16 x 16
    # 0.51 to 0.42. Unrolled axes already use what lies between: the gradient of a pool of 32 x 32 would take 1.25 ms, not 1.1.
    if kernel.lane is None or kernel.unrolled:
        return False
    steps = [i.access.strides[kernel.lane] for i in kernel.instructions if i.access is not None]
    return any(isinstance(step, int) and step > 1 for step in steps)


def _is_memory_bound(kernel: Kernel) -> bool:
    """Whether a kernel writes at least about as much as it reads, and computes next to nothing."""
    return kernel.work < MEMORY_WORK and not _reduces(kernel)


@of_code
def _writes_lines(kernel: Kernel) -> bool:
    """Whether what a kernel reads varies over fewer axes than what it writes, as the factors of an outer product, and elements
    have 32 bits or more."""
    # Of less, halves do as well: Zen 4, 20,000 rows of 3 and 5000 of 20 int16 21.3 and 24.8 us, in halves 18.6 and 22.3.
    reads = any(i.name in ("load", "load_at") and len(i.varies) == len(kernel.axes) for i in kernel.instructions)
    return not reads and _widest(kernel) >= 4


@functools.cache
def _halves_vectors() -> bool:
    """Whether the processor stores 64 bytes as two halves: then vectors of 32 bytes keep more memory accesses under way."""
    return vector_bytes() == 64 and target()[1] == "znver4"


@of_code
def _reduces(kernel: Kernel) -> bool:
    return any("over" in dict(i.attrs) for i in kernel.instructions)


@of_code
def width_of(kernel: Kernel) -> int:
    """Lanes of a kernel: those of a register, times the registers in flight.

    A reduction in one register waits for its previous addition; four registers hide that latency if the loop is light. Column
    sums read four registers of each row; unrolled axes already have one register per point.
    """
    lanes = register_lanes(kernel)
    if kernel.lane is None or kernel.unrolled or kernel.factors:
        return lanes
    # Measured: row maxima 0.52 to 0.22 ms, sums 0.31 to 0.20 (2048 x 2048).
    if not _reduces(kernel):
        # Whole lines are written: outer products of 1024 by 1024 on Zen 4 75 to 47 us. What reads as much is slower.
        wide = kernel.work >= LIGHT_WORK or (_is_memory_bound(kernel) and _writes_lines(kernel))
        return lanes * 2 if wide and sum(i.name == "store" for i in kernel.instructions) <= MOST_STORES else lanes
    if kernel.tiled in kernel.inner and any(i.name == "scan" for i in kernel.instructions):
        return lanes  # more rows have more pages than the processor remembers: cumsum of 300 x 700 390 us, so 214
    positions = any(i.name.startswith("arg") for i in kernel.instructions)
    light = kernel.work <= LIGHT_WORK or not kernel.lane_is_reduced
    return lanes if positions else lanes * 4 if light and 4 * _accumulators(kernel) <= sum_registers() else lanes * 2


def _accumulators(kernel: Kernel) -> int:
    """The accumulators of a pass that stay in registers, of which extremes of floats have two."""
    # Both extremes of a million numbers with AVX2 code on Zen 4: an accumulator was kept in memory, 110 us, so 50.
    found = Counter[int]()
    for i in kernel.instructions:
        if i.name in REDUCTIONS and i.level != "column":
            found[i.step] += 2 if i.name in ("max", "min") and i.dtype.is_floating_point else 1
    return max(found.values(), default=0)


# ---- tiles (see `tiles.py`) ----
TILE_LINE = 256  # bytes of a tile's lines in memory, in either direction: a tile of float32 takes 16 KiB
TILE_SIDES = 16, 128  # elements, at least and at most
TILE_PAD = 16  # elements between the rows of a tile: rows of a power of two would collide in few sets of a cache


def tile_side(kernel: Kernel) -> int:
    """The elements along a tile's side, a compile-time constant."""
    least, most = TILE_SIDES
    largest = max(w.extra.itemsize for w in kernel.words if w.kind == "tile")
    return max(least, min(most, TILE_LINE // largest))


def tile_rows(kernel: Kernel) -> int:
    """The indices of the tiled axis in a block; the fewest if rows are whole."""
    return TILE_SIDES[0] if kernel.lane_is_reduced else tile_side(kernel)


def tile_pitch(kernel: Kernel, width: int) -> int:
    """The pitch of a tile's rows, without the extent of the lane axis if that is reduced.

    A block of lanes is an item's, or a vector if the tiled axis is reduced.
    """
    lanes = 0 if kernel.lane_is_reduced else tile_side(kernel) if kernel.tiled in kernel.outer else width
    return lanes + TILE_PAD


def tile_bytes(kernel: Kernel, extents: Sequence[int], width: int, itemsize: int) -> int:
    """The bytes of a worker's tile."""
    assert kernel.lane is not None
    pitch = tile_pitch(kernel, width) + (extents[kernel.lane] if kernel.lane_is_reduced else 0)
    return tile_rows(kernel) * pitch * itemsize


def blocks_of(kernel: Kernel, extents: Sequence[int]) -> dict[int, int]:
    """The register block of a sum of products: kept axis -> number of adjacent indices that one item computes.

    Each factor is constant along an axis of the other, so a block of both loads few elements per product and its sums stay in
    registers. If lanes are summed, windows at adjacent elements overlap: all of them are one block. For the axis of lanes, the
    width of the vectors, if it is not that of others: half of it where rows fill no more.
    """
    if kernel.factors is None or kernel.tiled is not None:
        return _folded(kernel, extents)
    x, y = (kernel.instructions[n].varies for n in kernel.factors)
    sides = [[axis for axis in kernel.outer if axis in own - other and extents[axis] > 1] for own, other in ((x, y), (y, x))]
    shift = next((axis for side in sides for axis in side if extents[axis] <= SIZES[-1] and _overlaps(kernel, axis)), None)
    axes = [max((a for a in side if a != shift), key=lambda a: (min(extents[a], SIZES[-1]), a), default=None) for side in sides]
    choices = [[size for size in SIZES if size == 1 or (axis is not None and size <= extents[axis])] for axis in axes]
    kept_unrolled = [size for axis, size in kernel.unrolled.items() if not kernel.axes[axis][1]]
    shifts = prod(kept_unrolled) * (1 if shift is None else extents[shift])
    most = max(sum_registers(), shifts)

    def cost(sizes: tuple[int, ...]) -> float:
        """Cost per product: padding, times a multiplication and the loads."""
        sums = prod(sizes) * shifts
        reads = sum(size * (extents[shift] if shift in side else 1) for side, size in zip(sides, sizes, strict=True))  # type: ignore[index]
        padding = [-(-extents[a] // size) * size / extents[a] for a, size in zip(axes, sizes, strict=True) if a is not None]
        return prod(padding) * (1 + READ * reads / sums)

    best = min((sizes for sizes in product(*choices) if prod(sizes) * shifts <= most), key=cost)
    blocks = {axis: size for axis, size in zip(axes, best, strict=True) if axis is not None and size > 1}
    if shift is not None:
        blocks[shift] = int(extents[shift])
    # Zen 4, 8 images of 960 channels of 7 x 7, each with its own 3 x 3: 522 to 362 us.
    half = width_of(kernel) // 2
    if kernel.outer and kernel.lane is not None and extents[kernel.lane] <= half and vector_bytes() > LEAST_VECTOR:
        blocks[kernel.lane] = half
    return blocks


def _folded(kernel: Kernel, extents: Sequence[int]) -> dict[int, int]:
    """The axis and number of rows that fill a vector, where lanes lie some elements apart and a row fills a half or less.

    Rows must be adjacent in memory where lanes are, and have the same value where lanes have.
    """
    # Zen 4, one thread, forward and with both gradients, ms: 64 images of 32 channels of 16 x 16 to 64 3.4 and 10.5, so 2.6 and
    # 7.7; 32 of 128 to 128 11.5 and 27.3, so 9.8 and 21.5.
    axis, lane = next(reversed(kernel.outer), None), kernel.lane
    if axis is None or lane is None or not spreads_lanes(kernel) or not _is_elementwise(kernel) or not extents[lane]:
        return {}
    rows, rest = divmod(width_of(kernel), extents[lane])
    if rest or rows < 2 or extents[axis] % rows:
        return {}
    accesses = [i.access for i in kernel.instructions if i.access is not None]
    for along, distance in ((access.strides[lane], kernel.strides(access)[axis]) for access in accesses):
        if not isinstance(along, int) or along < 0 or (along < 2 and distance != along * extents[lane]):
            return {}
    return {axis: int(rows)}


@of_code
def _is_elementwise(kernel: Kernel) -> bool:
    """Whether each element is computed of elements of values in memory and of numbers alone."""
    names = {i.name for i in kernel.instructions}.difference(("load", "store", "word"))
    return all(name in PRIMITIVES and PRIMITIVES[name].kind == "elementwise" for name in names)


def name_of(kernel: Kernel, blocks: Mapping[int, int]) -> str:
    """The name of a kernel's function that computes these blocks."""
    return kernel.name + "".join(f"_{axis}x{size}" for axis, size in blocks.items())


def _overlaps(kernel: Kernel, axis: int) -> bool:
    """Whether lanes are summed, and a load has unit stride along both them and `axis`."""
    loads = [i.access.strides for i in kernel.instructions if i.name == "load" and i.access is not None]
    return kernel.lane is not None and kernel.lane_is_reduced and any(
        strides[kernel.lane] == 1 and isinstance(word := strides[axis], str) and kernel.words[int(word[1:])].value == 1
        for strides in loads
    )
