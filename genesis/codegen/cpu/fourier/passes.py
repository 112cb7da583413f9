"""The passes of a transform, each a function of the module; numbers are complex, and distances are in numbers.

A transform of n = n1 n2 .. points makes one pass for each factor (the radix): a pass after factors of the product `l` reads
lines [radix][m][l], and writes [m][radix][l], times twiddle factors. Columns are transformed side by side.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code
from genesis.codegen.cpu.fourier.butterflies import ComplexLanes
from genesis.codegen.cpu.registers import DOUBLE, I32, I64, POINTER, REGISTER_TYPE, constants
from genesis.codegen.cpu.spacing import MOST, Spacing
from genesis.codegen.cpu.vectors import transposed


def type_of(name: str) -> ir.Type:
    """The type of an argument, or of a word, of that name."""
    return POINTER if name.endswith("_at") else DOUBLE if name in ("scale", "forward") else I64


class Pass(Code):
    """A function on vectors of `numbers` complex numbers, with arguments by name."""

    def __init__(self, module: ir.Module, name: str, dtype: str, numbers: int, arguments: Sequence[str]) -> None:
        super().__init__(module, name, [type_of(a) for a in arguments], 2 * numbers)
        self.function.attributes.add("noinline")
        self.argument = dict(zip(arguments, self.args, strict=True))
        self.dtype, self.numbers = dtype, numbers
        self.complex = ComplexLanes(self, dtype, self.number("forward"))

    def number(self, name: str) -> ir.Value:
        """The argument of this name, in the dtype of the parts."""
        return self.builder.fptrunc(self.argument[name], REGISTER_TYPE[self.dtype])

    def place(self, pointer: ir.Value, *offsets: ir.Value) -> ir.Value:
        """The address of the number at a sum of offsets."""
        total = functools.reduce(operator.add, offsets)
        return self.element_pointer(pointer, total << 1, self.dtype)

    def read(self, pointer: ir.Value, mask: ir.Value | None = None) -> ir.Value:
        return self.load(pointer, self.dtype, mask)

    def reads(self, addresses: Sequence[ir.Value]) -> Callable[[int], ir.Value]:
        """The function that loads the vector at address j."""
        return lambda j: self.read(addresses[j])

    def write(self, value: ir.Value, pointer: ir.Value) -> None:
        self.store(value, pointer, self.dtype)

    def spacing(self, distance: ir.Value, count: int) -> Spacing:
        """Multiples of a distance, given in numbers."""
        return Spacing(self.builder, distance, 8 if self.dtype == "float32" else 16, min(count, MOST))

    def fetch(self, pointers: Sequence[ir.Value], *, write: bool = False) -> None:
        """Prefetch lines that are to be read or written soon; any address is allowed."""
        for pointer in pointers:
            self.prefetch(pointer, to_write=write)


WIDE = ("in_at", "out_at", "twiddles_at", "m", "in_j", "in_p", "in_l", "out_p", "out_k", "out_l", "lines", "columns", "forward",
        "scale", "apart", "in_row", "out_row", "in_ahead", "out_ahead")


def emit_wide(module: ir.Module, name: str, dtype: str, width: int, radix: int, *, last: bool) -> ir.Function:
    """A pass over lines of `width` columns at least. The last one scales, the others apply twiddle factors.

    The table has for each line p and number k a twiddle factor: its real part twice, its imaginary part negative and positive.
    """
    f = Pass(module, name, dtype, width, WIDE)
    b, a = f.builder, f.argument
    scale = f.splat(f.number("scale"))
    final = a["columns"] - width
    before, after = f.spacing(a["in_j"], radix), f.spacing(a["out_k"], radix)
    with f.count(0, a["apart"]) as n, f.count(0, a["m"]) as p:
        from_at, to_at = (f.place(a[f"{end}_at"], n * a[f"{end}_row"]) for end in ("in", "out"))
        roots = [] if last else [_root(f, p * (radix - 1) + (k - 1)) for k in range(1, radix)]
        start, goal = p * a["in_p"], p * a["out_p"]
        with f.count(0, a["lines"]) as line:
            source, target = start + line * a["in_l"], goal + line * a["out_l"]
            with f.count(0, a["columns"], width) as column:
                column = f.least(column, final)  # the last vector overlaps the one before
                here = f.place(from_at, source, column)
                there = f.place(to_at, target, column)
                ahead, near, space = ("out_ahead", there, after) if last else ("in_ahead", here, before)
                with b.if_then(a[ahead].differs(0)):
                    f.fetch(space.spread(f.place(near, a[ahead]), radix), write=last)
                targets = after.spread(there, radix)
                for k, y in f.complex.in_turn(radix, f.reads(before.spread(here, radix))):
                    if last:
                        y = y * scale
                    elif k:
                        real, imaginary = roots[k - 1]
                        y = f.fma(f.complex.swapped(y), imaginary, y * real)
                    f.write(y, targets[k])
    return f.finish()


def _root(f: Pass, number: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Root `number` of a table, for all lanes: its real part, and its imaginary part with both signs."""
    b = f.builder
    at = f.place(f.argument["twiddles_at"], number << 1)
    four = b.load(at, align=4 if f.dtype == "float32" else 8, typ=ir.VectorType(f.constant(f.dtype, 0.0).type, 4))
    nothing = ir.Constant(four.type, "poison")
    real, imaginary = (b.shuffle_vector(four, nothing, constants(I32, [first, first + 1] * f.numbers)) for first in (0, 2))
    return real, imaginary


NARROW = ("in_at", "out_at", "twiddles_at", "second_at", "out_k", "extent", "forward", "scale")


def emit_narrow(module: ir.Module, name: str, dtype: str, width: int, radix: int) -> ir.Function:
    """A pass over lines that are shorter than a vector, all side by side: each of the radix inputs has `extent` numbers.

    Tables have for each number its twiddle factors and its index in the result.
    """
    f = Pass(module, name, dtype, width, NARROW)
    b, a = f.builder, f.argument
    scale, extent = f.splat(f.number("scale")), a["extent"]
    rounded = (extent + (width - 1)) & -width
    with f.count(0, extent, width) as at:
        left = extent - at
        mask = f.first_lanes(left << 1)
        xs = [f.read(f.place(a["in_at"], at, extent * j), mask) * scale for j in range(radix)]
        ys = f.complex.transform(xs)
        for k in range(1, radix):
            ys[k] = f.complex.times(ys[k], f.read(f.place(a["twiddles_at"], at, rounded * (k - 1))))
        index = b.load(b.gep(a["second_at"], [at], source_etype=I64), align=8, typ=ir.VectorType(I64, width))
        for k, y in enumerate(ys):
            _scatter(f, y, f.place(a["out_at"], a["out_k"] * k), index, left)
    return f.finish()


TRANSPOSED = ("in_at", "out_at", "twiddles_at", "extent", "forward", "apart", "in_row", "out_row", "next_in")


def emit_transposed(module: ir.Module, name: str, dtype: str, width: int, radix: int) -> ir.Function:
    """A first pass over one transform, of at least `width` numbers of each radix: results are transposed in registers.

    The table has two vectors for each vector of numbers and each k from 1 on: the real parts of twiddle factors twice, and
    their imaginary parts negative and positive. The radix is a multiple of the width.
    """
    f = Pass(module, name, dtype, width, TRANSPOSED)
    b, a = f.builder, f.argument
    extent = a["extent"]
    final, spacing = extent - width, f.spacing(extent, radix)
    with f.count(0, a["apart"]) as n, f.count(0, extent, width) as start:
        from_at, to_at = (f.place(a[f"{end}_at"], n * a[f"{end}_row"]) for end in ("in", "out"))
        at = f.least(start, final)  # the last vector overlaps the one before
        here, table = f.place(from_at, at), f.place(a["twiddles_at"], start * (2 * (radix - 1)))
        ys = {}
        f.fetch(spacing.spread(f.place(here, a["next_in"]), radix))
        for k, y in f.complex.in_turn(radix, f.reads(spacing.spread(here, radix))):
            if k:
                real, imaginary = (f.read(f.place(table, I64(width * (2 * (k - 1) + part)))) for part in (0, 1))
                y = f.fma(f.complex.swapped(y), imaginary, y * real)
            ys[k] = y
        target = f.place(to_at, at * radix)
        for first in range(0, radix, width):
            for row, vector in enumerate(transposed(b, [ys[first + k] for k in range(width)], 2)):
                f.write(vector, f.place(target, I64(row * radix + first)))
    return f.finish()


def _scatter(f: Pass, y: ir.Value, target: ir.Value, index: ir.Value, count: ir.Value) -> None:
    """The first `count` numbers of a vector, each to an index of its own."""
    b = f.builder
    if f.dtype == "float32":  # a number is 64 bits
        with f.narrowed(f.numbers):
            f.scatter_store(b.bitcast(y, ir.VectorType(I64, f.numbers)), target, index, "int64", f.first_lanes(count))
        return
    double = b.shuffle_vector(index, index, constants(I32, [n // 2 for n in range(2 * f.numbers)]))
    parts = (double << f.splat(I64(1))) + constants(I64, [n % 2 for n in range(2 * f.numbers)])
    f.scatter_store(y, target, parts, f.dtype, f.first_lanes(count << 1))


MATRIX = ("in_at", "out_at", "twiddles_at", "starts_at", "rows", "columns", "in_row", "twiddles_row", "out_column", "forward")


def emit_matrix(module: ir.Module, name: str, dtype: str, width: int, *, plain: bool = False) -> ir.Function:
    """A matrix of `width` rows and columns at least, transposed; unless `plain`, each row is first multiplied by the twiddle
    factor of the block's first column, and by those of its columns relative to it.
    """
    f = Pass(module, name, dtype, width, MATRIX)
    b, a = f.builder, f.argument
    final_row, final_column = (a[extent] - width for extent in ("rows", "columns"))
    with f.count(0, a["rows"], width) as row, f.count(0, a["columns"], width) as column:
        row, column = f.least(row, final_row), f.least(column, final_column)
        lines = [row + n for n in range(width)]
        vectors = [f.read(f.place(a["in_at"], line * a["in_row"], column)) for line in lines]
        if not plain:
            vectors = [_twiddled(f, vector, line, column) for vector, line in zip(vectors, lines, strict=True)]
        for n, vector in enumerate(transposed(b, vectors, 2)):
            f.write(vector, f.place(a["out_at"], (column + n) * a["out_column"], row))
    return f.finish()


def _twiddled(f: Pass, vector: ir.Value, line: ir.Value, column: ir.Value) -> ir.Value:
    """A vector of a block's row, times its twiddle factors."""
    table, starts, distance = (f.argument[name] for name in ("twiddles_at", "starts_at", "twiddles_row"))
    root = f.read(f.place(table, line * distance, column))
    return f.complex.times(f.complex.times(vector, f.complex.repeated(f.place(starts, line))), root)


HALF = ("in_at", "out_at", "twiddles_at", "half", "first", "count", "forward", "transforms", "in_row", "out_row", "next_in",
        "next_out")


def emit_to_half(module: ir.Module, name: str, dtype: str, width: int) -> ir.Function:
    """From half the transform z of `half` pairs of real numbers, taken for complex ones, to the spectrum x of these numbers.

    x[k] = z[k] + z'[half - k] + r[k] (z[k] - z'[half - k]) for `count` k from `first` on and the numbers they mirror, where
    z' is the conjugate, z[half] = z[0] and r[k] = -i exp(J pi k / half), for each of some transforms. There must be memory for
    z[half].
    """
    f = Pass(module, name, dtype, width, HALF)
    b, a = f.builder, f.argument
    pair = I64 if dtype == "float32" else ir.IntType(128)
    with f.count(0, a["transforms"]) as n:  # all of them first: a vector that is read at once waits for its number
        source = f.place(a["in_at"], n * a["in_row"])
        b.store(b.load(source, align=4, typ=pair), f.place(source, a["half"]), align=4)
    with f.count(0, a["transforms"]) as n:
        source, target = (f.place(a[f"{end}_at"], n * a[f"{end}_row"]) for end in ("in", "out"))
        _mirrored(f, source, target, ahead="out")
    return f.finish()


def emit_from_half(module: ir.Module, name: str, dtype: str, width: int) -> ir.Function:
    """The way back from the spectrum x, without a scale: z[k] = x[k] + x'[half - k] + r[k] (x[k] - x'[half - k]), where
    r[k] = i exp(J pi k / half), and the first and last numbers of x are real. There must be memory for z[half].
    """
    f = Pass(module, name, dtype, width, HALF)
    b, a = f.builder, f.argument
    with f.count(0, a["transforms"]) as n:
        source, target = (f.place(a[f"{end}_at"], n * a[f"{end}_row"]) for end in ("in", "out"))
        _mirrored(f, source, target, ahead="in")
        with b.if_then(a["first"].equals(0)):
            first, last = (f.load_uniform(f.place(source, at), dtype) for at in (I64(0), a["half"]))
            for part, value in ((0, first + last), (1, first - last)):
                f.store_uniform(value, f.element_pointer(target, part, dtype), dtype)
    return f.finish()


def _mirrored(f: Pass, source: ir.Value, target: ir.Value, ahead: str) -> None:
    """x + y + r (x - y), where y is the conjugate of the mirrored numbers, and the table has r.

    Its mirrored number is the conjugate of x + y - r (x - y), so that a root serves both.
    """
    a, numbers = f.argument, f.complex
    one, opposed = numbers.alternating(1.0, -1.0), numbers.alternating(-1.0, 1.0)
    end = a["first"] + a["count"]
    final = f.intrinsic("smax", I64, [a["first"], end - f.numbers])
    with f.count(a["first"], end, f.numbers) as k:
        k = f.least(k, final)
        opposite = a["half"] - k - (f.numbers - 1)
        side = source if ahead == "in" else target
        f.fetch([f.place(side, at, a[f"next_{ahead}"]) for at in (k, opposite)], write=ahead == "out")
        x, mirrored = f.read(f.place(source, k)), numbers.reversed(f.read(f.place(source, opposite)))
        added, subtracted = (f.fma(mirrored, signs, x) for signs in (one, opposed))
        turned = numbers.product(subtracted, f.read(f.place(a["twiddles_at"], k)))
        f.write(added + turned, f.place(target, k))
        f.write(numbers.reversed(numbers.subtract_add(added, one, turned)), f.place(target, opposite))
