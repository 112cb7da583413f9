"""SciPy's pocketfft on memory that is there, and long transforms as many short ones.

Its functions, below SciPy's public ones, write results where they belong. Where SciPy has them no more, the public ones serve,
and results are copied.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

import numpy as np

from genesis.runtime.team import get_num_threads

Axes = Sequence[int]
_NORMS = {True: ("backward", "ortho", "forward"), False: ("forward", "ortho", "backward")}  # SciPy's names of scales
_THREADED = 1 << 15  # places from which threads pay
_LONG, _LONGEST = 1 << 15, 1 << 22  # an axis between them is transformed as a matrix: fewer places are in cache anyway
_FEW = 8  # transforms side by side, from which pocketfft computes several by one vector


class _Transforms(NamedTuple):
    """Functions of an array, axes, (of `to_real` the last extent,) whether forward, the scale, the result and threads."""

    whole: Callable[..., object]
    to_half: Callable[..., object]
    to_real: Callable[..., object]


@lru_cache(None)
def _transforms() -> _Transforms:
    try:
        found = importlib.import_module("scipy.fft._pocketfft.pypocketfft")
        return _Transforms(found.c2c, found.r2c, found.c2r)
    except (ImportError, AttributeError):
        return _Transforms(_public("fftn", "ifftn"), _public("rfftn", "ihfftn"), _public_to_real)


def _public(forth: str, back: str) -> Callable[..., None]:
    def transform(x: np.ndarray, axes: Axes, forward: bool, scale: int, out: np.ndarray, threads: int) -> None:
        function = getattr(importlib.import_module("scipy.fft"), forth if forward else back)
        out[...] = function(x, axes=axes, norm=_NORMS[forward][scale], workers=threads)

    return transform


def _public_to_real(x: np.ndarray, axes: Axes, extent: int, forward: bool, scale: int, out: np.ndarray, threads: int) -> None:
    function = getattr(importlib.import_module("scipy.fft"), "hfftn" if forward else "irfftn")
    extents = [out.shape[axis] for axis in axes]
    out[...] = function(x, s=extents, axes=axes, norm=_NORMS[forward][scale], workers=threads)


def _threads(x: np.ndarray) -> int:
    return get_num_threads() if x.size >= _THREADED else 1


# ---- transforms into `out`, which does not overlap with `x`; axes are counted from the end ----
def whole(out: np.ndarray, x: np.ndarray, axes: Axes, forward: bool, scale: int) -> None:
    """The transform of complex or real numbers."""
    extent = x.shape[axes[0]]
    if len(axes) == 1 and _LONG <= extent <= _LONGEST and x.size < _FEW * extent and x.dtype.kind == "c":
        columns = _columns(extent)
        if columns > _FEW:
            _by_columns(np.moveaxis(out, axes[0], -1), np.moveaxis(x, axes[0], -1), columns, forward, scale)
            return
    _transforms().whole(x, axes, forward, scale, out, _threads(x))


def to_half(out: np.ndarray, x: np.ndarray, axes: Axes, forward: bool, scale: int) -> None:
    """The first half of the spectrum of real numbers."""
    _transforms().to_half(x, axes, forward, scale, out, _threads(x))


def to_real(out: np.ndarray, x: np.ndarray, axes: Axes, forward: bool, scale: int) -> None:
    """The real numbers of which `x` is the first half of the spectrum."""
    _transforms().to_real(x, axes, out.shape[axes[-1]], forward, scale, out, _threads(x))


# ---- long transforms (D. Bailey, "FFTs in external or hierarchical memory", 1990) ----
@lru_cache(64)
def _columns(extent: int) -> int:
    """The greatest divisor of `extent` up to its square root."""
    return next(divisor for divisor in range(isqrt(extent), 0, -1) if extent % divisor == 0)


@lru_cache(2)
def _turns(rows: int, columns: int, forward: bool, dtype: np.dtype) -> np.ndarray:
    """exp(-2 pi i r c / (rows * columns)), or its conjugate."""
    places = np.outer(np.arange(rows), np.arange(columns)) % (rows * columns)
    return np.exp(places * ((-2j if forward else 2j) * np.pi / (rows * columns))).astype(dtype)


def _by_columns(out: np.ndarray, x: np.ndarray, columns: int, forward: bool, scale: int) -> None:
    """The transform of a long last axis as that of a matrix: of its columns, turned, and then of its rows.

    Many short transforms are computed by one vector, and by all threads; one long transform is by neither.
    """
    rows, threads, compute = x.shape[-1] // columns, get_num_threads(), _transforms().whole
    matrix = x.reshape(*x.shape[:-1], rows, columns)
    between = np.empty(matrix.shape, out.dtype)
    compute(matrix, (-2,), forward, scale, between, threads)
    np.multiply(between, _turns(rows, columns, forward, out.dtype), out=between)
    turned = np.lib.stride_tricks.as_strided(
        out, (*out.shape[:-1], rows, columns), (*out.strides[:-1], out.strides[-1], out.strides[-1] * rows))
    compute(between, (-1,), forward, scale, turned, threads)
