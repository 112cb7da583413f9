"""The transforms of Winograd's convolutions: of tiles, kernels and gradients, and back, as sums of elements of all tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.ops.layout import Layout
from genesis.ops.registry import expand
from genesis.ops.source import iota
from genesis.ops.views import reshape_value, view_value

Row: TypeAlias = Sequence[Value]
# Elements between the sixteen matrices, five cache lines: a power of two apart, their lines would meet in one set of a cache.
GAP = 80


def part(x: Value, shape: Shape, strides: Shape, offset: int) -> Value:
    return view_value(x, Layout(shape, strides, offset), "slice")


def both(matrix: Sequence[Row], transform: Callable[[Row], Row]) -> list[Row]:
    """T X T', for a `transform` T of a column."""
    columns = [transform(column) for column in zip(*matrix, strict=True)]  # columns[j][i] = (T X)[i, j]
    return [transform(row) for row in zip(*columns, strict=True)]


def transform_tile(x: Row) -> Row:
    return x[0] - x[2], x[1] + x[2], x[2] - x[1], x[1] - x[3]


def transform_kernel(w: Row) -> Row:
    ends, middle = _half(w[0] + w[2]), _half(w[1])
    return w[0], ends + middle, ends - middle, w[2]


def results_of(x: Value, shape: Shape) -> Row:
    """A' M A for products M (groups, 16, ..), each of `shape`: two rows, whose last axis is the two columns.

    A vector of tiles then holds both columns, and stores adjacent elements.
    """
    y, strides, pitch = unstacked(x, shape)

    def column(k: int) -> Value:
        return part(y, (*shape, 2), (*strides, pitch), k * pitch)

    ramp = iota(x.graph, 2, x.dtype)
    sign = expand(expand(x.graph.constant(1, x.dtype), (2,)) - (ramp + ramp), (*shape, 2))
    # The second column's terms are the first's, shifted by one: m0 + (m1 + m2), and m1 - (m2 + m3).
    m = [column(4 * i) + sign * (column(4 * i + 1) + column(4 * i + 2)) for i in range(4)]
    return m[0] + (m[1] + m[2]), (m[1] - m[2]) - m[3]


def transform_gradient(y: Row) -> Row:
    return y[0], y[0] + y[1], y[0] - y[1], -y[1]


def weights_of(m: Row) -> Row:
    total = _half(m[1] + m[2])
    return m[0] + total, _half(m[1] - m[2]), total + m[3]


def _half(x: Value) -> Value:
    return x * expand(x.graph.constant(0.5, x.dtype), x.shape)


def stacked(matrix: Sequence[Row], lead: int, *, times: int = 1, transposed: bool = False) -> Value:
    """(leading axes, 16, next axis, others), repeated `times`, or the last two axes swapped if `transposed`."""
    parts = [x for row in matrix for x in row]
    x = parts[0]
    groups, first, rest = (numel(extents) for extents in (x.shape[:lead], x.shape[lead : lead + 1], x.shape[lead + 1 :]))
    pitch = first * rest + GAP
    y = assembled([(reshape_value(x, (groups, first * rest)), Layout((groups, first * rest), (16 * pitch, 1), k * pitch))
               for k, x in enumerate(parts)], (groups, 16, pitch))
    shape, strides = ((rest, first), (1, rest)) if transposed else ((first, rest), (rest, 1))
    return part(y, (groups * times, 16, *shape), (16 * pitch * (groups > 1), pitch, *strides), 0)


def unstacked(x: Value, shape: Shape) -> tuple[Value, Shape, int]:
    """A value with x (groups, 16, ..) in memory; the strides of one of the 16 parts, of `shape`, and the distance of parts."""
    groups = x.shape[0]
    size = numel(shape) // groups
    pitch, lead = size + GAP, 2 if len(shape) > 2 else 0
    y = assembled([(reshape_value(x, (groups, 16, size)), Layout((groups, 16, size), (16 * pitch, pitch, 1), 0))],
              (groups, 16, pitch))
    strides = (*(16 * pitch * stride for stride in contiguous_strides(shape[:lead])), *contiguous_strides(shape[lead:]))
    return y, strides, pitch


def interleaved(pieces: Sequence[Row], strides: Shape, row: int, shape: Shape) -> Value:
    """The pieces interleaved: each with `strides`, pieces of a row adjacent, rows of pieces `row` apart."""
    return assembled([(piece, Layout(piece.shape, strides, i * row + j))
                  for i, pieces_of_row in enumerate(pieces) for j, piece in enumerate(pieces_of_row)], shape)


def assembled(parts: Sequence[tuple[Value, Layout]], shape: Shape) -> Value:
    """A value of `shape` with parts at their layouts; the rest is never read."""
    first = parts[0][0]
    y = expand(first.graph.constant(0, first.dtype), shape)
    for part, at in parts:
        y = first.graph.add("put", (y, part), shape, first.dtype, {**at._asdict(), "rest": "unread"})
    return y
