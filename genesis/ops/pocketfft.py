"""SciPy's pocketfft, writing into given memory.

Its private functions write results in place. If a SciPy version lacks them, the public functions are used and results copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from genesis.runtime.deferred import import_whole
from genesis.runtime.number_of_threads import get_num_threads

Axes = Sequence[int]
_NORMS = {True: ("backward", "ortho", "forward"), False: ("forward", "ortho", "backward")}  # SciPy's names of scales
_THREADED = 1 << 15  # threads pay from this many points on


class _Transforms(NamedTuple):
    """Functions of an array, axes, the last extent (`to_real` only), the direction, the scale, the result and the threads."""

    whole: Callable[..., object]
    to_half: Callable[..., object]
    to_real: Callable[..., object]


@lru_cache(None)
def _transforms() -> _Transforms:
    try:
        found = import_whole("scipy.fft._pocketfft.pypocketfft")
        return _Transforms(found.c2c, found.r2c, found.c2r)
    except (ImportError, AttributeError):
        return _Transforms(_public("fftn", "ifftn"), _public("rfftn", "ihfftn"), _public_to_real)


def _public(forth: str, back: str) -> Callable[..., None]:
    def transform(x: np.ndarray, axes: Axes, forward: bool, scale: int, out: np.ndarray, threads: int) -> None:
        function = getattr(import_whole("scipy.fft"), forth if forward else back)
        out[...] = function(x, axes=axes, norm=_NORMS[forward][scale], workers=threads)

    return transform


def _public_to_real(x: np.ndarray, axes: Axes, extent: int, forward: bool, scale: int, out: np.ndarray, threads: int) -> None:
    function = getattr(import_whole("scipy.fft"), "hfftn" if forward else "irfftn")
    extents = [out.shape[axis] for axis in axes]
    out[...] = function(x, s=extents, axes=axes, norm=_NORMS[forward][scale], workers=threads)


def _threads(x: np.ndarray) -> int:
    return get_num_threads() if x.size >= _THREADED else 1


# ---- transforms into `out`, which does not overlap with `x`; axes are counted from the end ----
def whole(out: np.ndarray, x: np.ndarray, axes: Axes, forward: bool, scale: int) -> None:
    """The transform of complex numbers."""
    _transforms().whole(x, axes, forward, scale, out, _threads(x))


def to_half(out: np.ndarray, x: np.ndarray, axes: Axes, forward: bool, scale: int) -> None:
    """The first half of the spectrum of real numbers."""
    _transforms().to_half(x, axes, forward, scale, out, _threads(x))


def to_real(out: np.ndarray, x: np.ndarray, axes: Axes, forward: bool, scale: int) -> None:
    """The real numbers of which `x` is the first half of the spectrum."""
    _transforms().to_real(x, axes, out.shape[axes[-1]], forward, scale, out, _threads(x))
