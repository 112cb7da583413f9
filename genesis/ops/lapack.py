"""LAPACK over batches of matrices, by the loops below NumPy's functions, in the operands' dtype; matrix by matrix, SciPy's.

NumPy's own functions compute float32 in float64. These are the references. CPU programs call LAPACK themselves (see
`codegen/cpu/lapack`), so this runs only for empty operands and other devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from genesis.ir.annotations import AnyFunction
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape
from genesis.runtime.deferred import import_whole

_LOOPS = np.linalg._umath_linalg  # type: ignore[attr-defined]
SINGULAR, INDEFINITE = "the input matrix is singular", "cholesky: the input is not positive-definite"
EIGENVALUES, SINGULAR_VALUES = "Eigenvalues did not converge", "SVD did not converge"
_FAILURES = {
    "solve": SINGULAR, "inv": SINGULAR, "cholesky_lo": INDEFINITE, "eigh_lo": EIGENVALUES, "eigh_up": EIGENVALUES,
    "eigvalsh_lo": EIGENVALUES, "eigvalsh_up": EIGENVALUES, "svd_f": SINGULAR_VALUES, "svd_s": SINGULAR_VALUES,
    "svd": SINGULAR_VALUES, "eig": EIGENVALUES, "eigvals": EIGENVALUES,
}
_BLOCKED = 48  # from this size on SciPy's blocked routines are faster for the matrices of a batch


def failing(reason: str) -> Callable[[Node, int, int], Exception]:
    """The exception for a matrix that LAPACK fails on: see `Primitive.fault`."""
    return lambda node, code, matrix: np.linalg.LinAlgError(reason)


def lapack(name: str, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The results of a loop over matrices with equal leading axes.

    Raises LinAlgError if LAPACK fails for any matrix.
    """
    wanted = arrays[0].dtype.char * len(arrays) + "->"
    kind = next(kind for kind in getattr(_LOOPS, name).types if kind.startswith(wanted))
    with np.errstate(all="ignore", call=_raising(name), invalid="call" if name in _FAILURES else "ignore"):
        results = getattr(_LOOPS, name)(*arrays, signature=kind)
    return results if isinstance(results, tuple) else (results,)


def orthogonal(a: np.ndarray, complete: bool) -> tuple[np.ndarray, ...]:
    """Q and R of matrices; with `complete`, Q is square."""
    (m, n), lead = a.shape[-2:], a.shape[:-2]
    if not a.size or (min(m, n) < _BLOCKED and lead):  # NumPy's loops are float64 only
        return tuple(np.linalg.qr(a, "complete" if complete else "reduced"))
    columns = m if complete else min(m, n)
    return tuple(each_matrix(lambda matrix: _factored(matrix, columns), [(m, columns), (columns, n)], a))


@cache
def _raising(name: str) -> Callable[[str, int], None]:
    """NumPy calls it when a loop has failed."""
    def fail(error: str, flags: int) -> None:
        raise np.linalg.LinAlgError(_FAILURES[name])

    return fail


# ---- matrix by matrix ----
BLOCK = 32  # columns at a time
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


@cache
def _routine(name: str) -> AnyFunction:
    linalg = import_whole("scipy.linalg")
    return getattr(linalg.blas if name.endswith("trsm") else linalg.lapack, name)  # type: ignore[no-any-return]


def routine(name: str, array: np.ndarray) -> AnyFunction:
    """The BLAS or LAPACK routine for the dtype of `array`; `name` lacks the dtype's letter."""
    return _routine(_LETTERS[array.dtype.char] + name)


def each_matrix(function: Callable[..., Sequence[Any]], shapes: Sequence[Shape], *batches: np.ndarray) -> list[np.ndarray]:
    """The first results of `function(*matrices)`, of these shapes, for the matrices of batches with equal leading axes; zeros
    of empty matrices."""
    lead = batches[0].shape[:-2]
    results = [np.zeros((*lead, *shape), batches[0].dtype) for shape in shapes]
    for at in np.ndindex(lead) if batches[0].size and any([result.size for result in results]) else ():
        for result, found in zip(results, function(*[batch[at] for batch in batches]), strict=False):
            result[at] = found
    return results


def _factored(a: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Q with so many columns, and R."""
    m, n = a.shape
    data, scale, _, _ = routine("geqrf", a)(a, lwork=BLOCK * n)
    vectors = data[:, :columns]
    if columns > n:
        vectors = np.zeros((m, columns), a.dtype, "F")
        vectors[:, :n] = data
    make = routine("ungqr" if a.dtype.kind == "c" else "orgqr", a)
    return make(vectors, scale, lwork=BLOCK * columns)[0], np.triu(data[:columns])
