"""LAPACK over batches of matrices, by the loops that NumPy's functions are made of: in the dtype at hand, in several threads.

NumPy's functions compute float32 in float64: a Cholesky factor of 512 x 512 takes 3.2 ms so, and 0.9 in float32. A single
matrix is computed without their copies (see `single_matrix.py`).
"""

from __future__ import annotations

import _thread
import ctypes
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from queue import SimpleQueue
from threading import Lock
from typing import Any

import numpy as np

from genesis.ops import single_matrix
from genesis.runtime.determinism import are_deterministic_algorithms_enabled
from genesis.runtime.team import get_num_threads

_LOOPS = np.linalg._umath_linalg  # type: ignore[attr-defined]
_FAILURES = {
    "solve": "Singular matrix", "inv": "Singular matrix", "cholesky_lo": "Matrix is not positive definite",
    "eigh_lo": "Eigenvalues did not converge", "eigh_up": "Eigenvalues did not converge",
    "eigvalsh_lo": "Eigenvalues did not converge", "eigvalsh_up": "Eigenvalues did not converge",
    "svd_f": "SVD did not converge", "svd_s": "SVD did not converge", "svd": "SVD did not converge",
}
# What an operation takes, in eighths of a nanosecond for the cube of a size. Another thread pays from a millisecond on.
_WEIGHTS = {
    "svd_f": 8, "svd_s": 8, "svd": 4, "eigh_lo": 3, "eigh_up": 3, "eigvalsh_lo": 1.5, "eigvalsh_up": 1.5, "solve": 0.3,
    "inv": 0.3,
}
_OVERHEAD, _THREADED, _ALONE = 8, 1 << 23, 64
_SHARES = 4  # parts of a batch for each thread
_BLOCKED = 48  # the least matrices of a batch for which SciPy's blocked routines are quicker
_FIXED = 2  # threads of BLAS while results may not depend on how many there are
_BY_BLAS = 1 << 30  # from here on BLAS' own threads pay for one matrix: of 512 x 512 they gain nothing, and spin on


def lapack(name: str, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The results of a loop over matrices, whose leading axes are equal.

    Raises LinAlgError where LAPACK fails for any matrix.
    """
    *lead, rows, columns = arrays[0].shape
    if name in single_matrix.ALONE and rows and columns and all(extent == 1 for extent in lead) and arrays[-1].size:
        with blas_for(arrays[0]):
            results = single_matrix.ALONE[name](*[array.reshape(array.shape[-2:]) for array in arrays])
        return tuple([np.reshape(result, (*lead, *np.shape(result))) for result in results]) if lead else results
    wanted = arrays[0].dtype.char * len(arrays) + "->"
    kind = next(kind for kind in getattr(_LOOPS, name).types if kind.startswith(wanted))
    if max(rows, columns) < _ALONE:  # few and small
        return _looped(name, kind, arrays)
    return _by_threads(lambda *part: _looped(name, kind, part), arrays, _WEIGHTS.get(name, 0.15))


def orthogonal(a: np.ndarray, complete: bool) -> tuple[np.ndarray, ...]:
    """Q and R of matrices; with `complete`, of as many columns and rows as they have rows."""
    (m, n), lead = a.shape[-2:], a.shape[:-2]
    if not a.size or (min(m, n) < _BLOCKED and lead):  # NumPy has loops in float64 alone
        return tuple(np.linalg.qr(a, "complete" if complete else "reduced"))
    with blas_for(a):
        if not lead:
            return single_matrix.orthogonal(a, complete)
        columns = m if complete else min(m, n)
        q, r = np.empty((*lead, m, columns), a.dtype), np.empty((*lead, columns, n), a.dtype)
        for place in np.ndindex(lead):
            q[place], r[place] = single_matrix.orthogonal(a[place], complete)
    return q, r


def blas_for(matrices: np.ndarray) -> AbstractContextManager[None]:
    """Inside, BLAS uses as many threads as pay for matrices of this size."""
    rows, columns = matrices.shape[-2:]
    blas = _FIXED if are_deterministic_algorithms_enabled() else get_num_threads()  # BLAS divides its sums among its threads
    return _BlasThreads(blas if rows * columns * min(rows, columns) >= _BY_BLAS else 1)


def _by_threads(
    compute: Callable[..., tuple[np.ndarray, ...]], arrays: Sequence[np.ndarray], weight: float
) -> tuple[np.ndarray, ...]:
    """`compute` of batches of matrices, by a thread for each part of them where that pays."""
    (rows, columns), lead = arrays[0].shape[-2:], arrays[0].shape[:-2]
    batch, threads = int(np.prod(lead)), get_num_threads()
    with blas_for(arrays[0]):
        parts = min(_SHARES * threads, batch)
        if min(threads, batch) < 2 or batch * (max(rows, columns) + _OVERHEAD) ** 3 * weight < _THREADED:
            return compute(*arrays)
        flat = [array.reshape(batch, *array.shape[-2:]) for array in arrays]
        results = _in_parts(lambda part: compute(*[array[part] for array in flat]), batch, parts, threads)
        return tuple([result.reshape(*lead, *result.shape[1:]) for result in results])


def _looped(name: str, kind: str, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    with np.errstate(all="ignore", call=_failing(name), invalid="call" if name in _FAILURES else "ignore"):
        results = getattr(_LOOPS, name)(*arrays, signature=kind)
    return results if isinstance(results, tuple) else (results,)


@cache
def _failing(name: str) -> Callable[[str, int], None]:
    """What NumPy calls where a loop has failed."""
    def fail(error: str, flags: int) -> None:
        raise np.linalg.LinAlgError(_FAILURES[name])

    return fail


def _in_parts(
    compute: Callable[[slice], tuple[np.ndarray, ...]], count: int, parts: int, threads: int
) -> list[np.ndarray]:
    """`compute` of each part of `count`, by whichever thread comes first, and the results behind one another.

    A thread that is late takes none: on a busy machine one that had half of the matrices took 5 ms in place of 1.5.
    """
    ends = [count * part // parts for part in range(parts + 1)]
    numbers, finished = iter(range(parts)), SimpleQueue[tuple[int, Any]]()

    def run() -> None:
        for part in numbers:
            try:
                finished.put((part, compute(slice(ends[part], ends[part + 1]))))
            except BaseException as problem:
                finished.put((part, problem))

    for _ in range(threads - 1):  # threads of their own: the team's may not call into Python
        try:
            _thread.start_new_thread(run, ())
        except RuntimeError:  # the system refuses another
            break
    run()
    found, interrupt = dict[int, Any](), None
    while len(found) < parts:  # interrupted or not: what the others read is somebody else's memory afterwards
        try:
            found |= [finished.get()]
        except BaseException as problem:
            interrupt = problem
    results = [found[part] for part in range(parts)]
    for one in (interrupt, *results):
        if isinstance(one, BaseException):
            raise one
    return [np.concatenate(each) for each in zip(*results, strict=True)]


# ---- the threads of BLAS ----
_NAMES = [f"{prefix}openblas_{{}}_num_threads{suffix}" for suffix in ("64_", "") for prefix in ("scipy_", "")]
_lock = Lock()


class _Library:
    """An OpenBLAS that is loaded: `get` and `set` its threads; calls under way, and how many it had before the first."""

    __slots__ = ("before", "get", "set", "users")

    def __init__(self, get: Callable[[], int], set: Callable[[int], object]) -> None:
        self.get, self.set = get, set
        self.users = self.before = 0


class _BlasThreads(AbstractContextManager[None]):
    """Inside, the BLAS of NumPy and SciPy uses so many threads, where it is OpenBLAS; afterwards as many as before."""

    __slots__ = ("libraries", "threads")

    def __init__(self, threads: int) -> None:
        self.threads, self.libraries = threads, _openblas()

    def __enter__(self) -> None:
        with _lock:
            for library in self.libraries:
                library.users += 1
                if library.users == 1:
                    library.before = library.get()
                if library.before > 1:  # where somebody has chosen one, it stays one
                    library.set(self.threads)

    def __exit__(self, *problem: object) -> None:
        with _lock:
            for library in self.libraries:
                library.users -= 1
                if not library.users and library.before > 1:
                    library.set(library.before)


def _openblas() -> tuple[_Library, ...]:
    """The libraries of NumPy and, once it is loaded, SciPy."""
    return tuple([library for name in ("numpy.linalg._umath_linalg", "scipy.linalg._flapack") if name in sys.modules
                  and (library := _library(name)) is not None])


@cache
def _library(module: str) -> _Library | None:
    """What a module is linked to: its symbols are looked up there, too."""
    linked = ctypes.PyDLL(str(sys.modules[module].__file__))
    name = next((name for name in _NAMES if hasattr(linked, name.format("set"))), None)
    return None if name is None else _Library(getattr(linked, name.format("get")), getattr(linked, name.format("set")))
