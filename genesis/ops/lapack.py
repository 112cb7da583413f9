"""LAPACK over batches of matrices, by the loops that NumPy's functions are made of: in the dtype at hand, in several threads.

NumPy's functions compute float32 in float64: a Cholesky factor of 512 x 512 takes 3.2 ms so, and 0.9 in float32.
"""

from __future__ import annotations

import _thread
import ctypes
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from threading import Lock
from typing import Any

import numpy as np

from genesis.ir.annotations import AnyFunction
from genesis.runtime.determinism import are_deterministic_algorithms_enabled
from genesis.runtime.team import get_num_threads

_LOOPS = np.linalg._umath_linalg  # type: ignore[attr-defined]
_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_CODES = {"float32": "f", "float64": "d", "complex64": "F", "complex128": "D"}
_FAILURES = {
    "solve": "Singular matrix", "inv": "Singular matrix", "cholesky_lo": "Matrix is not positive definite",
    "eigh_lo": "Eigenvalues did not converge", "eigh_up": "Eigenvalues did not converge",
    "svd_f": "SVD did not converge", "svd_s": "SVD did not converge",
}
# What an operation takes, in eighths of a nanosecond for the cube of a size. Another thread pays from a millisecond on.
_WEIGHTS = {"svd_f": 8, "svd_s": 8, "eigh_lo": 3, "eigh_up": 3, "solve": 0.3, "inv": 0.3}
_OVERHEAD, _THREADED, _ALONE = 8, 1 << 23, 64
_SHARES = 4  # parts of a batch for each thread
_BLOCKED, _BLOCK = 48, 32  # the least matrices for which SciPy's blocked routines are quicker, and their columns at a time
_FIXED = 2  # threads of BLAS while results may not depend on how many there are
_BY_BLAS = 1 << 30  # from here on BLAS' own threads pay for one matrix: of 512 x 512 they gain nothing, and spin on


def lapack(name: str, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The results of a loop over matrices, whose leading axes are equal.

    Raises LinAlgError where LAPACK fails for any matrix.
    """
    wanted = _CODES[arrays[0].dtype.name] * len(arrays) + "->"
    kind = next(kind for kind in getattr(_LOOPS, name).types if kind.startswith(wanted))
    if max(arrays[0].shape) < _ALONE:  # few and small
        return _looped(name, kind, arrays)
    return _by_threads(lambda *part: _looped(name, kind, part), arrays, _WEIGHTS.get(name, 0.15))


def orthogonal(a: np.ndarray, complete: bool) -> tuple[np.ndarray, ...]:
    """Q and R of matrices; with `complete`, of as many columns and rows as they have rows."""
    (m, n), lead = a.shape[-2:], a.shape[:-2]
    if min(m, n) < _BLOCKED:  # NumPy has loops in float64 alone
        return tuple(np.linalg.qr(a, "complete" if complete else "reduced"))
    columns = m if complete else min(m, n)
    q, r = np.empty((*lead, m, columns), a.dtype), np.empty((*lead, columns, n), a.dtype)
    factor, make = routine("geqrf", a), routine("ungqr" if a.dtype.kind == "c" else "orgqr", a)
    for place in np.ndindex(lead):
        data, scale, _, _ = factor(a[place], lwork=_BLOCK * n)
        r[place] = np.triu(data[:columns])
        whole = np.zeros((m, columns), a.dtype, "F")
        whole[:, :n] = data[:, :columns]
        q[place] = make(whole, scale, lwork=_BLOCK * columns, overwrite_a=True)[0]
    return q, r


def routine(name: str, array: np.ndarray) -> AnyFunction:
    """The routine of BLAS or LAPACK, by its name without the letter of a dtype, for the dtype of `array`."""
    linalg = importlib.import_module("scipy.linalg")
    library = linalg.blas if name == "trsm" else linalg.lapack
    return getattr(library, _LETTERS[array.dtype.name] + name)


def _by_threads(
    compute: Callable[..., tuple[np.ndarray, ...]], arrays: Sequence[np.ndarray], weight: float
) -> tuple[np.ndarray, ...]:
    """`compute` of batches of matrices, by a thread for each part of them where that pays."""
    (rows, columns), lead = arrays[0].shape[-2:], arrays[0].shape[:-2]
    batch, threads = int(np.prod(lead)), get_num_threads()
    blas = _FIXED if are_deterministic_algorithms_enabled() else threads  # BLAS divides its sums among its threads
    with _blas_threads(blas if rows * columns * min(rows, columns) >= _BY_BLAS else 1):
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
_lock = Lock()
_users = [0, 0]  # calls under way, and how many threads BLAS had before the first


@contextmanager
def _blas_threads(threads: int) -> Iterator[None]:
    """Inside, NumPy's BLAS uses so many threads, where it is OpenBLAS; afterwards as many as before."""
    library = _openblas()
    if library is None:
        yield
        return
    get, set_ = library
    with _lock:
        _users[0] += 1
        if _users[0] == 1:
            _users[1] = get()
        if _users[1] > 1:  # where somebody has chosen one, it stays one
            set_(threads)
    try:
        yield
    finally:
        with _lock:
            _users[0] -= 1
            if not _users[0] and _users[1] > 1:
                set_(_users[1])


@cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """How many threads OpenBLAS uses, to ask and to set; None where NumPy has another BLAS."""
    library = ctypes.PyDLL(_LOOPS.__file__)  # whose symbols are looked up in what it is linked to, too
    for name in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads"):
        if hasattr(library, name.format("set")):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None
