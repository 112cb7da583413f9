"""Fourier transforms: the extension `fft`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from genesis import fft as _fft
from genesis.ir.dtypes import DType as _DType
from genesis.ir.replayable import replayable_module
from genesis.runtime.devices import DeviceLike as _DeviceLike
from genesis.tensor.handle import Tensor as _Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq",
    "rfftn",
]
__dir__ = __all__.copy

Norm = Literal["backward", "ortho", "forward"]


def fft(x: _Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> _Tensor:
    """The transform along `axis`, which is cut or filled with zeros to `n` places."""
    return _fft.fft(x, n, axis, norm)


def ifft(x: _Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> _Tensor:
    """The inverse of `fft`."""
    return _fft.ifft(x, n, axis, norm)


def rfft(x: _Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> _Tensor:
    """The first half of the transform of real numbers."""
    return _fft.rfft(x, n, axis, norm)


def irfft(x: _Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> _Tensor:
    """The inverse of `rfft`."""
    return _fft.irfft(x, n, axis, norm)


def hfft(x: _Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> _Tensor:
    """The real transform of numbers that `x` is the first half of."""
    return _fft.hfft(x, n, axis, norm)


def ihfft(x: _Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> _Tensor:
    """The inverse of `hfft`."""
    return _fft.ihfft(x, n, axis, norm)


# ---- over several axes ----
Several = Sequence[int] | None


def fftn(x: _Tensor, /, *, s: Several = None, axes: Several = None, norm: Norm = "backward") -> _Tensor:
    """The transform over `axes`, all if None, or as many as `s` has places for."""
    return _fft.fftn(x, s, axes, norm)


def ifftn(x: _Tensor, /, *, s: Several = None, axes: Several = None, norm: Norm = "backward") -> _Tensor:
    """The inverse of `fftn`."""
    return _fft.ifftn(x, s, axes, norm)


def rfftn(x: _Tensor, /, *, s: Several = None, axes: Several = None, norm: Norm = "backward") -> _Tensor:
    """The first half, along the last of `axes`, of the transform of real numbers."""
    return _fft.rfftn(x, s, axes, norm)


def irfftn(x: _Tensor, /, *, s: Several = None, axes: Several = None, norm: Norm = "backward") -> _Tensor:
    """The inverse of `rfftn`."""
    return _fft.irfftn(x, s, axes, norm)


# ---- frequencies ----
def fftfreq(n: int, /, *, d: float = 1.0, dtype: _DType | None = None, device: _DeviceLike = None) -> _Tensor:
    """The frequencies of a transform of `n` places that are `d` apart."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: _DType | None = None, device: _DeviceLike = None) -> _Tensor:
    """The frequencies of the first half."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: _Tensor, /, *, axes: int | Several = None) -> _Tensor:
    """The zero frequency moved to the middle of `axes`, all if None."""
    return _fft.fftshift(x, axes)


def ifftshift(x: _Tensor, /, *, axes: int | Several = None) -> _Tensor:
    """The inverse of `fftshift`."""
    return _fft.ifftshift(x, axes)


replayable_module(__name__)
