"""Sequences that fill a cube more evenly than random numbers do: those of Sobol."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genesis.ir.dtypes import DType, get_default_dtype
from genesis.random import randint
from genesis.runtime.rng import Generator
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor

__all__ = ["SobolEngine"]

_Integers = NDArray[np.int64]


class SobolEngine:
    """Draws points of the Sobol sequence in [0, 1)^dimension, with the direction numbers of Joe and Kuo (2008).

    With `scramble`, bits are multiplied by random triangles and shifted (J. Matousek, 1998), by `seed` if there is one.
    Raises ValueError for dimensions below 1 and above 21201.

    >>> genesis.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._directions = _direction_numbers(dimension)
        self._shift = np.zeros(dimension, np.int64)
        if scramble:
            self._scramble(None if seed is None else Generator().manual_seed(seed))
        self._point = self._shift

    def _scramble(self, generator: Generator | None) -> None:
        powers = 1 << np.arange(self.MAXBIT, dtype=np.int64)
        shift = randint(2, (self.dimension, self.MAXBIT), generator=generator).numpy()
        triangles = np.tril(randint(2, (self.dimension, self.MAXBIT, self.MAXBIT), generator=generator).numpy())
        triangles[:, np.arange(self.MAXBIT), np.arange(self.MAXBIT)] = 1
        bits = self._directions[:, :, None] >> np.arange(self.MAXBIT)[::-1] & 1
        self._shift = shift @ powers
        self._directions = (bits @ triangles.swapaxes(1, 2) & 1) @ powers[::-1]

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next `n` points, (n, dimension)."""
        points = self._next(n)
        result = from_data(points).to(dtype or get_default_dtype()) / (1 << self.MAXBIT)
        return result if out is None else out.resize_(*result.shape).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next 2**m points. Raises ValueError if the total is then not a power of 2."""
        n = 1 << m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead.")
        return self.draw(n, out, dtype)

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip `n` points."""
        self._next(n)
        return self

    def reset(self) -> SobolEngine:
        """Restart the sequence."""
        self._point, self.num_generated = self._shift, 0
        return self

    def _next(self, n: int) -> _Integers:
        """The next points as integers: each differs from the one before by one direction, in the order of Gray codes."""
        numbers = np.arange(self.num_generated, self.num_generated + n, dtype=np.int64)
        first = numbers[numbers == 0]
        lowest = ~(numbers[len(first):] - 1)  # the lowest set bit, which the number before lacks
        steps = self._directions.T[np.log2(lowest & -lowest).astype(int)]
        before = np.repeat(self._point[None], len(first), 0)
        points = np.concatenate([before, np.bitwise_xor.accumulate(np.concatenate([self._point[None], steps]))[1:]])
        if n:
            self._point, self.num_generated = points[-1], self.num_generated + n
        return points

    def __repr__(self) -> str:
        settings: list[str] = [f"dimension={self.dimension}"]
        settings += ["scramble=True"] * self.scramble + [f"seed={self.seed}"] * (self.seed is not None)
        return f"SobolEngine({', '.join(settings)})"


@cache
def _table() -> tuple[Any, Any]:
    """The polynomials and initial direction numbers, from SciPy's file."""
    spec = importlib.util.find_spec("scipy")
    assert spec is not None and spec.origin is not None
    with np.load(Path(spec.origin).parent / "stats" / "_sobol_direction_numbers.npz") as file:
        return file["poly"], file["vinit"]


@cache
def _direction_numbers(dimension: int) -> _Integers:
    """(dimension, bits): direction numbers, by the recurrence of each axis's polynomial."""
    polynomials, beginnings = _table()
    bits = SobolEngine.MAXBIT
    found = np.ones((dimension, bits), np.int64)
    for axis in range(1, dimension):
        polynomial = int(polynomials[axis])
        degree = polynomial.bit_length() - 1
        numbers = [int(number) for number in beginnings[axis, :degree]]
        terms = [k for k in range(1, degree + 1) if polynomial >> (degree - k) & 1]
        for bit in range(degree, bits):
            number = numbers[bit - degree]
            for k in terms:
                number ^= numbers[bit - k] << k
            numbers.append(number)
        found[axis] = numbers[:bits]
    return found << np.arange(bits)[::-1]
