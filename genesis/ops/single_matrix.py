"""LAPACK on a single matrix, through SciPy's bindings."""

from __future__ import annotations

import importlib
from functools import cache

import numpy as np

from genesis.ir.annotations import AnyFunction

BLOCK = 32  # columns at a time
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


def routine(name: str, array: np.ndarray) -> AnyFunction:
    """The BLAS or LAPACK routine for the dtype of `array`; `name` lacks the dtype's letter."""
    return _routine(_LETTERS[array.dtype.char] + name)


@cache
def _routine(name: str) -> AnyFunction:
    linalg = importlib.import_module("scipy.linalg")
    return getattr(linalg.blas if name.endswith("trsm") else linalg.lapack, name)  # type: ignore[no-any-return]


def factored(a: np.ndarray, complete: bool) -> tuple[np.ndarray, np.ndarray]:
    """Q and R; with `complete`, Q is square."""
    m, n = a.shape
    columns = m if complete else min(m, n)
    data, scale, _, _ = routine("geqrf", a)(a, lwork=BLOCK * n)
    vectors = data[:, :columns]
    if columns > n:
        vectors = np.zeros((m, columns), a.dtype, "F")
        vectors[:, :n] = data
    make = routine("ungqr" if a.dtype.kind == "c" else "orgqr", a)
    return make(vectors, scale, lwork=BLOCK * columns)[0], np.triu(data[:columns])


def triangular_solution(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    """T^-1 b for a triangle T of `a`, computed as (b^T T^-T)^T."""
    return routine("trsm", b)(1.0, a.T, b.T, side=1, lower=upper, diag=unit).T  # type: ignore[no-any-return]
