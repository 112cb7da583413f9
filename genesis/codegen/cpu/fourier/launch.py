"""Translates calls of Fourier primitives to launches of the kernel; SciPy computes unsupported calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from genesis.codegen.cpu.fourier import plan
from genesis.codegen.cpu.fourier.driver import LINE_ROOM, PASS, WORDS, transform_ir, width_of
from genesis.codegen.cpu.kernel_args import bits
from genesis.codegen.cpu.registers import PART
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.stages import PARALLEL_COST, HostCall
from genesis.ops.layout import Layout, contiguous_layout
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import Addresses, Block, BlockWord, NativeLaunch, Slot, Symbol

LONG = 1 << 14  # from this length on, a transform is computed as a matrix, by all threads
LONG_OF_MANY = 1 << 18  # the same if each thread has its own transform; below, both buffers fit a cache
COLUMNS = 16  # per block
SMALL = 1 << 12  # numbers that fit the first-level cache: a block then takes all columns
ALONE = 1 << 11  # from this length on, a transform is computed alone, even within a batch: see `_is_alone`
PAIRED = 1 << 8  # up to this length, two vectors of transforms and their results fit the first-level cache
TOGETHER = 1 << 12  # bytes of transforms per pass: with buffers and the next transforms they fill a first-level cache
PARTS = 4  # of a batch per thread, at least
CHUNK = 1 << 12  # numbers of half a spectrum per item
BLOCKS = 64  # at most, for a batch whose axes cannot be merged
EVEN = 16  # numbers: buffers begin at cache lines
SCALING = "last", "narrow"  # passes that scale


def sources(nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
    """The kernel for transforms with a result of this dtype."""
    dtype = nodes[call.node].dtype.name
    return [source(PART.get(dtype, dtype))]


def source(dtype: str) -> KernelSource:
    """The kernel for transforms with "float32" or "float64" parts."""
    name = f"genesis_fourier_{dtype}_{width_of(dtype)}"
    return KernelSource(name, name, partial(transform_ir, name, dtype))


class StridedArray(NamedTuple):
    """An array of complex numbers: its address, shape and strides."""

    address: Slot
    shape: tuple[int, ...]
    strides: tuple[int, ...]


Axis = tuple[int, int, int]  # (extent, stride in the source, stride in the target)


class UnsupportedError(Exception):
    """The kernel does not support the call."""


def launches(
    nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int
) -> list[NativeLaunch] | None:
    """The launches of a call; None if the kernel does not support it."""
    node, (value, layout) = nodes[call.node], call.operands[0]
    dtype = PART.get(node.dtype.name, node.dtype.name)
    longer = layout.shape if node.op == "fft_from_real" else node.shape
    extent = prod(longer[axis] for axis in node.attrs["axes"])
    writer = _Writer(node, extent, dtype, slots, addresses[source(dtype).symbol], threads)
    at = slots.address(value, layout.offset * nodes[value].dtype.itemsize)
    to = slots.address(call.node)
    if 0 in node.shape or 0 in layout.shape:
        return None
    try:
        if node.op == "fft_from_real":
            writer.to_half(_pairs(at, layout), _contiguous(to, node.shape))
        elif node.op == "fft_to_real":
            writer.to_real(StridedArray(at, layout.shape, layout.strides), _pairs(to, contiguous_layout(node.shape)))
        elif nodes[value].dtype.is_complex:
            writer.whole(StridedArray(at, layout.shape, layout.strides), _contiguous(to, node.shape), writer.axes, writer.scale)
        else:
            return None
    except UnsupportedError:
        return None
    return writer.launches


def _contiguous(address: Slot, shape: tuple[int, ...]) -> StridedArray:
    return StridedArray(address, shape, contiguous_strides(shape))


def _pairs(address: Slot, layout: Layout) -> StridedArray:
    """Real numbers viewed as complex ones, pairs of the last axis."""
    *strides, last = layout.strides
    if last != 1 or layout.shape[-1] % 2 or any(s % 2 for s, e in zip(strides, layout.shape, strict=False) if e > 1):
        raise UnsupportedError
    return StridedArray(address, (*layout.shape[:-1], layout.shape[-1] // 2), (*(s // 2 for s in strides), 1))


class _Writer:
    """Collects the launches of a call."""

    def __init__(self, node: Node, extent: int, dtype: str, slots: SlotMap, kernel: int | Symbol, threads: int) -> None:
        self.dtype, self.forward, self.slots, self.kernel, self.threads = dtype, node.attrs["forward"], slots, kernel, threads
        self.width, self.size = width_of(dtype), 8 if dtype == "float32" else 16
        self.axes = [axis % len(node.shape) for axis in node.attrs["axes"]]
        self.shape = node.shape
        self.scale = (1.0, extent**-0.5, 1 / extent)[node.attrs["scale"]]
        self.launches: list[NativeLaunch] = []
        self.reserved = 0  # bytes of the workspace for data between launches

    # ---- the three primitives ----
    def whole(self, source: StridedArray, target: StridedArray, axes: Sequence[int], scale: float) -> None:
        """Complex to complex, axis by axis: all but the first in place."""
        ordered = sorted(axes, reverse=True)
        first = next((axis for axis in ordered if self._reads(source, axis)), None)
        if first is None:
            raise UnsupportedError
        for axis in (first, *(axis for axis in ordered if axis != first)):
            self._axis(source, target, axis, scale)
            source, scale = target, 1.0

    def to_half(self, source: StridedArray, target: StridedArray) -> None:
        """Real numbers, in pairs, to half of their spectrum."""
        *others, last = self.axes
        half = source.shape[-1]
        self._check_half(last, half)
        spectrum_pass, scale = plan.half(2 * half, self.dtype, self.forward, "to half"), self.scale / 2
        if not self._is_long(half, source):
            self._lines(half, source, target, last, scale, after=(spectrum_pass,))
        else:
            between = self._scratch((*source.shape[:-1], half), half + LINE_ROOM)
            self._long(source, between, last, scale)
            self._chunks(spectrum_pass, between, target)
        if others:
            self.whole(target, target, others, 1.0)

    def to_real(self, source: StridedArray, target: StridedArray) -> None:
        """Half of a spectrum to real numbers, in pairs."""
        *others, last = self.axes
        half = target.shape[-1]
        self._check_half(last, half)
        spectrum_pass = plan.half(2 * half, self.dtype, self.forward, "from half")
        if others:
            between = self._scratch(source.shape, source.shape[-1])
            self.whole(source, between, others, 1.0)
            source = between
        if source.strides[-1] != 1:
            raise UnsupportedError
        if not self._is_long(half, target):
            self._lines(half, source, target, last, self.scale, before=(spectrum_pass,))
        else:
            between = self._scratch(target.shape, half + LINE_ROOM)
            self._chunks(spectrum_pass, source, between)
            self._long(between, target, last, self.scale)

    def _check_half(self, last: int, half: int) -> None:
        if last != len(self.shape) - 1 or half < self.width or not plan.is_smooth(half):
            raise UnsupportedError

    # ---- one axis ----
    def _reads(self, source: StridedArray, axis: int) -> bool:
        """Whether the transform along an axis can read its source: columns, or contiguous lines."""
        inner = source.shape[axis + 1 :]
        side_by_side = Layout(tuple(inner), tuple(source.strides[axis + 1 :]), 0).is_contiguous
        return side_by_side and (prod(inner) >= self.width or source.strides[axis] == prod(inner))

    def _axis(self, source: StridedArray, target: StridedArray, axis: int, scale: float) -> None:
        n, inner = source.shape[axis], prod(source.shape[axis + 1 :])
        if not plan.is_smooth(n) or n * inner < self.width:
            raise UnsupportedError
        if inner == 1 and self._is_long(n, source):
            self._long(source, target, axis, scale)
            return
        if inner == 1 and source.address != target.address:
            self._lines(n, source, target, axis, scale)
            return
        columns = COLUMNS if inner >= 2 * COLUMNS and n * inner > SMALL else inner
        passes = self._passes(n, columns, in_place=source.address == target.address)
        rows = source.strides[axis], inner
        self._launch(passes, source, target, _batch(source, target, axis), inner=inner, columns=columns, rows=rows, scale=scale)

    def _is_long(self, n: int, lines: StridedArray) -> bool:
        """Whether a transform of contiguous numbers is computed as a matrix."""
        least = LONG if prod(lines.shape[:-1]) < self.threads else LONG_OF_MANY
        return n >= least and plan.rows_of(n, self.width) > 0

    def _lines(
        self, n: int, source: StridedArray, target: StridedArray, axis: int, scale: float, *, before: Sequence[plan.Pass] = (),
        after: Sequence[plan.Pass] = (),
    ) -> None:
        """Transforms of contiguous numbers: each alone, vectorized along its length, or several at once, one per lane."""
        axes = _batch(source, target, axis)
        several, s, t = max(axes, default=(1, 0, 0))
        if self._is_alone(n) or n < self.width or several < self.width:
            passes = (*before, *self._passes(n, 1), *after)
            columns = max(1, min(TOGETHER // (n * self.size), several // (PARTS * self.threads)))
            if columns == 1 or any(p.kind == "narrow" for p in passes):
                self._launch(passes, source, target, axes, scale=scale)
                return
            axes.remove((several, s, t))
            self._launch(passes, source, target, axes, inner=several, columns=columns, steps=(s, t), scale=scale, apart=True)
            return
        axes.remove((several, s, t))
        # Two vectors of transforms share the roots: 1024 x 64 numbers took 41 instead of 48 us.
        columns = min(several, self.width * (2 if n <= PAIRED else 1))
        passes = (*before, plan.Pass("gather", 0, 0, n), *self._passes(n, self.width), plan.Pass("part", 0, 0, n), *after)
        self._launch(passes, source, target, axes, inner=several, columns=columns, steps=(s, t), scale=scale)

    def _is_alone(self, n: int) -> bool:
        """Whether transforms of contiguous numbers run alone: if the first radix fills two vectors, or they are long.

        Measured, Zen 3, one thread, us, several at once and alone: 128 x 256 numbers 46 and 33, 512 x 64 41 and 36, 682 x 48
        41 and 59, 65 x 500 61 and 74.
        """
        radix = plan.first_radix(n, self.width)
        return (radix >= 2 * self.width and n >= 16 * self.width) or (radix > 0 and n >= ALONE)

    def _passes(self, n: int, columns: int, in_place: bool = False) -> tuple[plan.Pass, ...]:
        return plan.passes(n, min(columns, self.width), self.dtype, self.forward, in_place)

    def _long(self, source: StridedArray, target: StridedArray, axis: int, scale: float) -> None:
        """A long transform of contiguous numbers as a matrix: transform columns, multiply by roots, transpose, transform
        again."""
        n = source.shape[axis]
        rows, between = plan.rows_of(n, self.width), self._scratch(source.shape, n)
        columns = n // rows
        block = min(COLUMNS, columns)
        twiddle = plan.Pass("twiddle", 0, 0, rows, *plan.matrix(rows, columns, block, self.dtype))
        self._launch((*self._passes(rows, COLUMNS), twiddle), source, between, _batch(source, between, axis), inner=columns,
                     columns=block, rows=(columns, 1), steps=(1, rows))
        self._launch(self._passes(columns, COLUMNS), between, target, _batch(between, target, axis), inner=rows,
                     columns=min(COLUMNS, rows), rows=(rows, rows), scale=scale)

    def _chunks(self, half: plan.Pass, source: StridedArray, target: StridedArray) -> None:
        """Converts between pairs and a long half spectrum, in chunks of many numbers per item."""
        self._launch((half._replace(m=0),), source, target, _batch(source, target, len(source.shape) - 1), inner=half.m,
                     columns=min(CHUNK, half.m), steps=(0, 0))

    # ---- launches ----
    def _scratch(self, shape: tuple[int, ...], line: int) -> StridedArray:
        """Workspace for an array whose lines along the last axis have a pitch of `line` numbers."""
        start, self.reserved = self.reserved, self.reserved + self._even(prod(shape[:-1]) * line) * self.size
        return StridedArray(_moved(self.slots.workspace(self.reserved), start), shape, contiguous_strides((*shape[:-1], line)))

    def _launch(
        self, passes: Sequence[plan.Pass], source: StridedArray, target: StridedArray, batch: list[Axis], *, inner: int = 1,
        columns: int = 1, rows: tuple[int, int] = (1, 1), steps: tuple[int, int] = (1, 1), scale: float = 1.0,
        apart: bool = False,
    ) -> None:
        """A launch of passes for all transforms of a batch, with `inner` columns each, in blocks of columns.

        `rows` and `steps` are the strides, in source and target, of a transform's numbers and of columns.
        """
        blocks, length = inner // columns, max(p.l * max(p.radix * p.m, 1) for p in passes)
        buffer = self._even((length + LINE_ROOM) * (columns + inner % columns)) + EVEN if len(passes) > 1 else 0
        items = blocks * prod(extent for extent, _, _ in batch)
        workers = min(self.threads, items) if numel(source.shape) * length.bit_length() > PARALLEL_COST else 1
        workspace = self.slots.workspace(self.reserved + workers * 2 * buffer * self.size)
        scaling = max((n for n, p in enumerate(passes) if p.kind in SCALING), default=-1)
        table = tuple(word for n, p in enumerate(passes) for word in self._words(p, scale if n == scaling else 1.0))
        found = []
        for starts, (several, *between) in self._batches(source, target, batch):
            words: tuple[BlockWord, ...] = (
                *starts, _moved(workspace, self.reserved), table, len(passes), blocks, columns, inner, *between, *rows, *steps,
                2 * buffer, buffer, bits(1.0 if self.forward else -1.0), length + LINE_ROOM, int(apart))
            assert len(words) == len(WORDS)
            found.append(Block(words, several * blocks))
        self.launches.append(NativeLaunch(self.kernel, found, workers))

    def _batches(
        self, source: StridedArray, target: StridedArray, axes: list[Axis]
    ) -> Iterator[tuple[tuple[Slot, Slot], Axis]]:
        """The longest of a batch's axes, and for each index of the other axes, the starts of source and target."""
        longest = axes.pop(max(range(len(axes)), key=lambda n: axes[n][0])) if axes else (1, 0, 0)
        if prod(extent for extent, _, _ in axes) > BLOCKS:
            raise UnsupportedError
        for index in itertools.product(*(range(extent) for extent, _, _ in axes)):
            first, second = (sum(at * strides[end] for at, strides in zip(index, axes, strict=True)) for end in (1, 2))
            yield (_moved(source.address, first * self.size), _moved(target.address, second * self.size)), longest

    def _words(self, p: plan.Pass, scale: float) -> tuple[BlockWord, ...]:
        at = [0 if array is None else self.slots.table(array) for array in (p.twiddles, p.second)]
        words = (plan.number_of(p), p.radix, p.m, p.l, *at, bits(scale))
        assert len(words) == len(PASS)
        return words

    def _even(self, numbers: int) -> int:
        return -(-numbers // EVEN) * EVEN


def _moved(address: Slot, nbytes: int) -> Slot:
    return address._replace(offset=address.offset + nbytes)


def _batch(source: StridedArray, target: StridedArray, axis: int) -> list[Axis]:
    """The axes before `axis`, with adjacent ones merged if both arrays allow it."""
    found: list[Axis] = []
    for extent, s, t in zip(source.shape[:axis], source.strides[:axis], target.strides[:axis], strict=True):
        if found and found[-1][1:] == (s * extent, t * extent):
            extent *= found.pop()[0]
        if extent > 1:
            found.append((extent, s, t))
    return found
