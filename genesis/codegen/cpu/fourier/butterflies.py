"""Short transforms in registers, on vectors of interleaved complex numbers, as in memory.

J is -i in a forward transform and i in a backward one, so that one code serves both: a root of unity is cos + J sin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import I32, REGISTER_TYPE, constants

COMPOSED = {8: (4, 2), 16: (4, 4)}


class ComplexLanes:
    """Emits arithmetic of vectors of `width` complex numbers, on twice as many lanes; `forward` is 1.0 or -1.0, by the
    direction."""

    def __init__(self, lanes: Lanes, dtype: str, forward: ir.Value) -> None:
        self.lanes, self.builder, self.dtype, self.width = lanes, lanes.builder, dtype, lanes.width // 2
        self.turn = lanes.splat(forward) * self.alternating(1.0, -1.0)
        self.entry, self.turned_sines = self.builder.block, dict[float, ir.Value]()

    def alternating(self, real: float, imaginary: float) -> ir.Constant:
        """A constant vector: one number in all real parts, another in all imaginary ones."""
        element = REGISTER_TYPE[self.dtype]
        pair = ", ".join(f"{element} {self.lanes.constant(self.dtype, x).text}" for x in (real, imaginary))
        return ir.Constant(ir.VectorType(element, 2 * self.width), f"<{', '.join([pair] * self.width)}>")

    def swapped(self, x: ir.Value) -> ir.Value:
        """Real and imaginary parts exchanged."""
        return self._shuffled(x, [lane ^ 1 for lane in range(2 * self.width)])

    def reversed(self, x: ir.Value) -> ir.Value:
        """The numbers in reverse order."""
        return self._shuffled(x, [2 * n + part for n in reversed(range(self.width)) for part in (0, 1)])

    def repeated(self, pointer: ir.Value) -> ir.Value:
        """The complex number at `pointer`, in all lanes."""
        b, element = self.builder, REGISTER_TYPE[self.dtype]
        pair = b.load(pointer, align=4 if self.dtype == "float32" else 8, typ=ir.VectorType(element, 2))
        return b.shuffle_vector(pair, pair, constants(I32, [0, 1] * self.width))

    def times(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """x times y, or times y's conjugate in a backward transform."""
        real, imaginary = self._parts(y)
        return self.lanes.fma(self.swapped(x), imaginary * -self.turn, x * real)

    def product(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """x times y."""
        real, imaginary = self._parts(y)
        return self.subtract_add(x, real, self.swapped(x) * imaginary)

    def subtract_add(self, x: ir.Value, factor: ir.Value, y: ir.Value) -> ir.Value:
        """x * factor, minus y in real parts and plus y in imaginary ones: one instruction."""
        less, more = (self.lanes.fma(x, factor, term) for term in (-y, y))
        order = [n + n % 2 * 2 * self.width for n in range(2 * self.width)]
        return self.builder.shuffle_vector(less, more, constants(I32, order))

    def add_turned(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """x + J y."""
        return self.lanes.fma(self.swapped(y), self.turn, x)

    def subtract_turned(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.fma(-self.swapped(y), self.turn, x)

    def _parts(self, x: ir.Value) -> Iterator[ir.Value]:
        """The real parts, each twice, and the imaginary ones."""
        return (self._shuffled(x, [2 * n + part for n in range(self.width) for _ in range(2)]) for part in (0, 1))

    def _shuffled(self, x: ir.Value, order: Sequence[int]) -> ir.Value:
        return self.builder.shuffle_vector(x, x, constants(I32, order))

    # ---- transforms ----
    def transform(self, xs: Sequence[ir.Value]) -> list[ir.Value]:
        """The transform of `radix` vectors."""
        n = len(xs)
        if n == 1:
            return list(xs)
        if n == 2:
            return [xs[0] + xs[1], xs[0] - xs[1]]
        if n == 4:
            even, odd = (xs[0] + xs[2], xs[0] - xs[2]), (xs[1] + xs[3], xs[1] - xs[3])
            return [even[0] + odd[0], self.add_turned(even[1], odd[1]), even[0] - odd[0], self.subtract_turned(even[1], odd[1])]
        return self._odd(xs)

    def in_turn(self, n: int, load: Callable[[int], ir.Value]) -> Iterator[tuple[int, ir.Value]]:
        """(number, result) of a transform of `n` vectors; loads are late and results early, to use few registers."""
        if n in COMPOSED:
            return self._composed(n, load)
        return iter(enumerate(self.transform([load(j) for j in range(n)])))

    def _composed(self, n: int, load: Callable[[int], ir.Value]) -> Iterator[tuple[int, ir.Value]]:
        """Treats the vectors as a matrix: transforms columns, multiplies by roots, transforms rows."""
        rows, columns = COMPOSED[n]
        matrix = [self.transform([load(j) for j in range(column, n, columns)]) for column in range(columns)]
        for row in range(rows):
            line = self.transform([self._times_root(matrix[column][row], column * row, n) for column in range(columns)])
            yield from ((row + rows * number, y) for number, y in enumerate(line))

    def _times_root(self, x: ir.Value, numerator: int, n: int) -> ir.Value:
        """x times the `n`-th root of unity to the power `numerator`."""
        if numerator == 0:
            return x
        if 4 * numerator == n:
            return self.swapped(x) * self.turn
        root = roots(np.array(numerator), n)
        return self.lanes.fma(self.swapped(x), self._turned_sine(-float(root.imag)), x * self.constant(float(root.real)))

    def _turned_sine(self, sine: float) -> ir.Value:
        """A factor for swapped parts, computed at the function's entry."""
        if sine not in self.turned_sines:
            with self.builder.goto_block(self.entry):
                self.turned_sines[sine] = self.turn * self.constant(sine)
        return self.turned_sines[sine]

    def _root(self, numerator: int, n: int) -> tuple[ir.Value, ir.Value]:
        """The cosine and the sine of `numerator` n-th parts of a turn."""
        root = roots(np.array(numerator % n), n)
        return self.constant(float(root.real)), self.constant(-float(root.imag))

    def constant(self, value: float) -> ir.Value:
        return self.lanes.splat(self.lanes.constant(self.dtype, value))

    def _odd(self, xs: Sequence[ir.Value]) -> list[ir.Value]:
        """Odd radices: sums of opposite numbers multiply cosines, differences sines."""
        n = len(xs)
        pairs = [(xs[j] + xs[n - j], xs[j] - xs[n - j]) for j in range(1, n // 2 + 1)]
        found, total = [xs[0]] * n, xs[0]
        for addend, _ in pairs:
            total = total + addend
        found[0] = total
        for k in range(1, n // 2 + 1):
            cosines = sines = xs[0]
            for j, (added, subtracted) in enumerate(pairs, 1):
                cosine, sine = self._root(j * k, n)
                cosines = self.lanes.fma(added, cosine, cosines)
                sines = subtracted * sine if j == 1 else self.lanes.fma(subtracted, sine, sines)
            found[k], found[n - k] = self.add_turned(cosines, sines), self.subtract_turned(cosines, sines)
        return found


# ---- Roots of unity ----


def roots(numerators: np.ndarray, n: int) -> np.ndarray:
    """exp(-2 pi i k / n) for the `numerators` k."""
    quarters = (4 * numerators + n // 2) // n
    # The angle, at most an eighth of a turn, in two parts: the small second part is a correction of the result.
    angles = (4 * numerators - quarters * n) * (np.arctan(np.longdouble(1)) * 2 / n)
    near = angles.astype(np.float64)
    left = (angles - near).astype(np.float64)
    cosines, sines = np.cos(near), np.sin(near)
    found = (cosines - left * sines) - 1j * (sines + left * cosines)
    # Multiply by an exact power of -i.
    return np.asarray(found * np.array([1, -1j, -1, 1j])[quarters % 4])
