"""LAPACK on a single matrix, by SciPy's bindings, with rows where LAPACK has columns.

A matrix in row-major order is its transpose to LAPACK, so most routines work on that and copy nothing but what they overwrite.
NumPy's loops copy each matrix into columns and back: a Cholesky factor of 256 x 256 takes 0.41 ms so, and 0.15 here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from genesis.ir.annotations import AnyFunction

BLOCK = 32  # columns at a time
_INVERTED = 64  # the same for inverses, which SciPy computes a column at a time unless told
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
Matrices = tuple[np.ndarray, ...]


def routine(name: str, array: np.ndarray) -> AnyFunction:
    """The routine of BLAS or LAPACK, by its name without the letter of a dtype, for the dtype of `array`."""
    return _routine(_LETTERS[array.dtype.char] + name)


@cache
def _routine(name: str) -> AnyFunction:
    linalg = importlib.import_module("scipy.linalg")
    return getattr(linalg.blas if name.endswith("trsm") else linalg.lapack, name)  # type: ignore[no-any-return]


def _checked(info: int, reason: str) -> None:
    if info:
        raise np.linalg.LinAlgError(reason)


def cholesky(a: np.ndarray) -> Matrices:
    """The lower factor L: the transpose of the upper one of the transpose."""
    factor, info = routine("potrf", a)(a.T, lower=False, clean=True)
    _checked(info, "Matrix is not positive definite")
    return (factor.T,)


def _eliminated(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    return routine("getrf", a)(a.T)  # type: ignore[no-any-return]


def inverse(a: np.ndarray) -> Matrices:
    """The inverse, of the transpose's elimination."""
    lu, pivots, info = _eliminated(a)
    _checked(info, "Singular matrix")
    found = routine("getri", a)(lu, pivots, lwork=_INVERTED * len(a), overwrite_lu=True)[0].T
    found += 0.0  # -0 to 0, as PyTorch's
    return (found,)


def solution(a: np.ndarray, b: np.ndarray) -> Matrices:
    """a^-1 b."""
    lu, pivots, info = _eliminated(a)
    _checked(info, "Singular matrix")
    return (routine("getrs", a)(lu, pivots, b, trans=1)[0],)


def determinant(a: np.ndarray) -> Matrices:
    """The product of the pivots."""
    diagonal, sign = _pivots(a)
    return (np.multiply.reduce(diagonal) * sign,)


def log_determinant(a: np.ndarray) -> Matrices:
    """Its sign, or phase, and the logarithm of its size."""
    diagonal, sign = _pivots(a)
    sizes = np.abs(diagonal)
    phase = np.multiply.reduce(diagonal / sizes) * sign if sizes.all() else a.dtype.type(0)
    return phase, np.add.reduce(np.log(sizes))


def _pivots(a: np.ndarray) -> tuple[np.ndarray, Any]:
    lu, pivots, _ = _eliminated(a)
    exchanged = np.count_nonzero(pivots != np.arange(len(a)))
    return lu.diagonal(), a.dtype.type(-1 if exchanged & 1 else 1)


def lower_eigenvalues(a: np.ndarray) -> Matrices:
    """Those of a symmetric matrix of which the lower triangle counts."""
    return _eigenvalues(a, False)


def upper_eigenvalues(a: np.ndarray) -> Matrices:
    """Those of a symmetric matrix of which the upper triangle counts."""
    return _eigenvalues(a, True)


def _eigenvalues(a: np.ndarray, upper: bool) -> Matrices:
    name = "heevr" if a.dtype.kind == "c" else "syevr"
    values, _, _, _, info = routine(name, a)(a.T, compute_v=False, lower=upper, lwork=(BLOCK + 6) * max(len(a), 1))
    _checked(info, "Eigenvalues did not converge")
    return (values,)


def singular_values(a: np.ndarray) -> Matrices:
    """In descending order."""
    _, values, _, info = routine("gesdd", a)(a.T, compute_uv=False)
    _checked(info, "SVD did not converge")
    return (values,)


def orthogonal(a: np.ndarray, complete: bool) -> Matrices:
    """Q and R; with `complete`, of as many columns and rows as `a` has rows."""
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
    """T^-1 b for a triangle T of `a`: the transpose of b^T times the inverse of T^T."""
    return routine("trsm", b)(1.0, a.T, b.T, side=1, lower=upper, diag=unit).T  # type: ignore[no-any-return]


# By the names of NumPy's loops, which do the same for batches.
ALONE: dict[str, Callable[..., Matrices]] = {
    "cholesky_lo": cholesky, "inv": inverse, "solve": solution, "det": determinant, "slogdet": log_determinant,
    "eigvalsh_lo": lower_eigenvalues, "eigvalsh_up": upper_eigenvalues, "svd": singular_values,
}
