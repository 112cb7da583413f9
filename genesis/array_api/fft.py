"""Fourier transforms: the extension `fft`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from genesis import fft as _fft
from genesis.ir.dtypes import DType as _DType
from genesis.runtime.devices import DeviceLike as _DeviceLike
from genesis.tensor.handle import Tensor as _Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq",
    "rfftn",
]
__dir__ = __all__.copy

Norm = Literal["backward", "ortho", "forward"]
Several = Sequence[int] | None


class OneAxis(Protocol):
    """A transform along `axis`, which is cut or filled with zeros to `n` samples."""

    def __call__(self, x: _Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> _Tensor: ...


class SeveralAxes(Protocol):
    """A transform over `axes`, all if None, or the last ones, as many as `s` has."""

    def __call__(self, x: _Tensor, /, *, s: Several = None, axes: Several = None, norm: Norm = "backward") -> _Tensor: ...


def _one_axis(name: str) -> OneAxis:
    made: Callable[..., _Tensor] = getattr(_fft, name)

    def function(x: _Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> _Tensor:
        return made(x, n, axis, norm)

    function.__name__, function.__qualname__, function.__doc__ = name, name, made.__doc__
    return function


def _several_axes(name: str) -> SeveralAxes:
    made: Callable[..., _Tensor] = getattr(_fft, name)

    def function(x: _Tensor, /, *, s: Several = None, axes: Several = None, norm: Norm = "backward") -> _Tensor:
        return made(x, s, axes, norm)

    function.__name__, function.__qualname__, function.__doc__ = name, name, made.__doc__
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_one_axis, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_several_axes, ("fftn", "ifftn", "rfftn", "irfftn"))


# ---- frequencies ----
def fftfreq(n: int, /, *, d: float = 1.0, dtype: _DType | None = None, device: _DeviceLike = None) -> _Tensor:
    """The frequencies of a transform of `n` samples that are `d` apart."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: _DType | None = None, device: _DeviceLike = None) -> _Tensor:
    """The frequencies of the first half."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: _Tensor, /, *, axes: int | Sequence[int] | None = None) -> _Tensor:
    """The zero frequency moved to the middle of `axes`, all if None."""
    return _fft.fftshift(x, axes)


def ifftshift(x: _Tensor, /, *, axes: int | Sequence[int] | None = None) -> _Tensor:
    """The inverse of `fftshift`."""
    return _fft.ifftshift(x, axes)
