"""Plans of transforms by length: their passes, with tables of twiddle factors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

import numpy as np

from genesis.codegen.cpu.fourier.butterflies import roots
from genesis.codegen.cpu.fourier.driver import KINDS, NARROW_RADICES, PRIMES, TRANSPOSED_RADICES, width_of

COMPLEX = {"float32": "complex64", "float64": "complex128"}


class Pass(NamedTuple):
    """A pass over [radix][m][l] numbers, after passes whose radices have the product l.

    For half a spectrum, l is the half and m the count of numbers, 0 for those of a block. For a matrix of twiddle factors, l
    is the number of rows. The `second` table has a narrow pass's indices in the result, or a matrix's factors of the first
    column of each block.
    """

    kind: str
    radix: int
    m: int
    l: int
    twiddles: np.ndarray | None = None
    second: np.ndarray | None = None


def number_of(a_pass: Pass) -> int:
    """The number of the pass's kind."""
    return KINDS.index((a_pass.kind, a_pass.radix if a_pass.kind in ("last", "wide", "narrow", "transposed") else 0))


def is_smooth(n: int) -> bool:
    """Whether there are passes for this length."""
    return n > 0 and _without(n, (*PRIMES, 2)) == 1


def _without(n: int, primes: Sequence[int]) -> int:
    for prime in primes:
        while n % prime == 0:
            n //= prime
    return n


def first_radix(n: int, width: int) -> int:
    """The radix of a first pass over one transform; 0 if none leaves a full vector."""
    return max((r for r in TRANSPOSED_RADICES if r % width == 0 and n % r == 0 and n // r >= width), default=0)


def radices(n: int, columns: int, width: int) -> list[tuple[str, int]]:
    """The passes (kind, radix) of a transform of `n` numbers with `columns` columns; lines shorter than a vector are narrow."""
    found: list[tuple[str, int]] = []
    if columns == 1 and (radix := first_radix(n, width)):
        found.append(("transposed", radix))
        n, columns = n // radix, radix
    while columns < width and n > 1:
        radix = next(r for r in NARROW_RADICES if n % r == 0)
        found.append(("narrow", radix))
        n, columns = n // radix, columns * radix
    wide = []
    for prime in PRIMES:
        while n % prime == 0:
            wide.append(prime)
            n //= prime
    bits = n.bit_length() - 1
    parts = -(-bits // 4)
    wide += [1 << (bits + part) // parts for part in range(parts)]
    return found + [("wide" if number < len(wide) else "last", radix) for number, radix in enumerate(wide, 1)]


@lru_cache(64)
def passes(n: int, columns: int, dtype: str, forward: bool, in_place: bool = False) -> tuple[Pass, ...]:
    """The passes, with tables, of a transform of `n` numbers with `columns` columns."""
    width, l = width_of(dtype), 1
    found = []
    for kind, radix in radices(n, columns, width):
        m = n // (l * radix)
        if kind == "last":
            found.append(Pass("last", radix, 1, l))
        elif kind == "wide":
            found.append(Pass("wide", radix, m, l, _twiddles(m, radix, forward, dtype)))
        elif kind == "transposed":
            found.append(_transposed(radix, m, forward, dtype))
        else:
            found.append(_narrow(kind, radix, m, l, columns, dtype))
        l *= radix
    if not found or (in_place and len(found) == 1):  # in place, the last vector of a line would read overwritten data
        found.append(Pass("last", 1, 1, n))
    return tuple(found)


def _twiddles(m: int, radix: int, forward: bool, dtype: str) -> np.ndarray:
    """[m, radix - 1, 4]: exp(-2 pi i p k / (m radix)), or its conjugate, for line p and k from 1 on.

    Each factor is four numbers: its real part twice, its imaginary part negative and positive.
    """
    twiddles = roots(np.outer(np.arange(m), np.arange(1, radix)), m * radix)
    twiddles = twiddles if forward else twiddles.conj()
    return np.stack([twiddles.real, twiddles.real, -twiddles.imag, twiddles.imag], -1).astype(dtype)


def _transposed(radix: int, m: int, forward: bool, dtype: str) -> Pass:
    """Twiddle factors for vectors of lines; the last vector overlaps the one before."""
    width = width_of(dtype)
    indices = np.minimum(np.arange(0, m, width), m - width)[:, None] + np.arange(width)
    twiddles = roots(indices[:, None] * np.arange(1, radix)[:, None], m * radix)
    twiddles = twiddles if forward else twiddles.conj()
    real, imaginary = np.stack([twiddles.real, twiddles.real], -1), np.stack([-twiddles.imag, twiddles.imag], -1)
    return Pass("transposed", radix, m, 1, np.stack([real, imaginary], 2).astype(dtype))


def _narrow(kind: str, radix: int, m: int, l: int, columns: int, dtype: str) -> Pass:
    width, side = width_of(dtype), l * columns
    indices = np.arange(-(-m * side // width) * width)  # padded to whole vectors
    line = indices // side
    twiddles = roots(np.outer(np.arange(1, radix), line), m * radix).astype(COMPLEX[dtype])
    return Pass(kind, radix, m, l, twiddles, line * (radix * side) + indices % side)


@lru_cache(8)
def half(n: int, dtype: str, forward: bool, kind: str) -> Pass:
    """The pass "to half" of the spectrum of `n` real numbers, or "from half"."""
    twiddles = roots(np.arange(max(n // 4 + 1, width_of(dtype))), n)
    twiddles = (-1j if kind == "to half" else 1j) * (twiddles if forward else twiddles.conj())
    return Pass(kind, 0, n // 4 + 1, n // 2, twiddles.astype(COMPLEX[dtype]))


# ---- long transforms (D. Bailey, "FFTs in external or hierarchical memory", 1990) ----
@lru_cache(64)
def rows_of(n: int, width: int) -> int:
    """The rows of a long transform's matrix, near the square root; 0 if there is none."""
    below = (d for d in range(isqrt(n), width - 1, -1) if n % d == 0)
    return next((n // d for d in below if n // d >= width), 0)


@lru_cache(16)
def matrix(rows: int, columns: int, block: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """exp(-2 pi i r c / (rows columns)) for each row and column, as a product of two tables, which stay in the caches.

    [rows, columns of the widest block]: for a block's columns relative to its first; [blocks, rows]: for its first column.
    """
    row, widest = np.arange(rows), block + columns % block
    blocks = np.arange(columns // block) * block
    tables = (roots(np.outer(*at), rows * columns).astype(COMPLEX[dtype]) for at in ((row, np.arange(widest)), (blocks, row)))
    twiddles, starts = tables
    return twiddles, starts
