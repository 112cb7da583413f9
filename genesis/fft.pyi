# Written by tools/stubs.py from the operation table: do not edit.

from builtins import bool as Bool, float as Float, int as Int
from collections.abc import Sequence
from genesis.ir.dtypes import DType
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

def fft(input: Tensor, n: Int | None = None, dim: Int = -1, norm: str | None = None) -> Tensor:
    """The Fourier transform along `dim`, which is cut or filled with zeros to `n` points."""
def fft2(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = (-2, -1), norm: str | None = None,
) -> Tensor:
    """The Fourier transform over two axes, cut or filled with zeros to `s` points; `norm` as that of `fft`."""
def fftfreq(
    n: Int, d: Float = 1.0, *, dtype: DType | None = None, layout: object = None, device: DeviceLike = None,
    requires_grad: Bool = False,
) -> Tensor:
    """The frequencies of a transform of `n` samples with spacing `d`, in cycles per unit."""
def fftn(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = None, norm: str | None = None,
) -> Tensor:
    """The Fourier transform over `dim`, all axes if None or as many as `s` has; `norm` as that of `fft`."""
def fftshift(input: Tensor, dim: Int | Sequence[Int] | None = None) -> Tensor:
    """Move the zero frequency from the front to the middle of `dim` (all axes, if None)."""
def hfft(input: Tensor, n: Int | None = None, dim: Int = -1, norm: str | None = None) -> Tensor:
    """The real Fourier transform of numbers with `input` for their first half along `dim`, which is cut or filled with .."""
def hfft2(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = (-2, -1), norm: str | None = None,
) -> Tensor:
    """The real Fourier transform of numbers with `input` for their first half over two axes, cut or filled with zeros .."""
def hfftn(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = None, norm: str | None = None,
) -> Tensor:
    """The real Fourier transform of numbers with `input` for their first half over `dim`, all axes if None or as many .."""
def ifft(input: Tensor, n: Int | None = None, dim: Int = -1, norm: str | None = None) -> Tensor:
    """The inverse Fourier transform along `dim`, which is cut or filled with zeros to `n` points."""
def ifft2(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = (-2, -1), norm: str | None = None,
) -> Tensor:
    """The inverse Fourier transform over two axes, cut or filled with zeros to `s` points; `norm` as that of `ifft`."""
def ifftn(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = None, norm: str | None = None,
) -> Tensor:
    """The inverse Fourier transform over `dim`, all axes if None or as many as `s` has; `norm` as that of `ifft`."""
def ifftshift(input: Tensor, dim: Int | Sequence[Int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
def ihfft(input: Tensor, n: Int | None = None, dim: Int = -1, norm: str | None = None) -> Tensor:
    """The first half of the inverse Fourier transform, of real numbers, along `dim`, which is cut or filled with zeros .."""
def ihfft2(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = (-2, -1), norm: str | None = None,
) -> Tensor:
    """The first half of the inverse Fourier transform, of real numbers, over two axes, cut or filled with zeros to `s` .."""
def ihfftn(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = None, norm: str | None = None,
) -> Tensor:
    """The first half of the inverse Fourier transform, of real numbers, over `dim`, all axes if None or as many as `s` .."""
def irfft(input: Tensor, n: Int | None = None, dim: Int = -1, norm: str | None = None) -> Tensor:
    """The real numbers whose Fourier transform has `input` for its first half, along `dim`, which is cut or filled with .."""
def irfft2(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = (-2, -1), norm: str | None = None,
) -> Tensor:
    """The real numbers whose Fourier transform has `input` for its first half, over two axes, cut or filled with zeros .."""
def irfftn(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = None, norm: str | None = None,
) -> Tensor:
    """The real numbers whose Fourier transform has `input` for its first half, over `dim`, all axes if None or as many .."""
def rfft(input: Tensor, n: Int | None = None, dim: Int = -1, norm: str | None = None) -> Tensor:
    """The first half of the Fourier transform, of real numbers, along `dim`, which is cut or filled with zeros to `n` .."""
def rfft2(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = (-2, -1), norm: str | None = None,
) -> Tensor:
    """The first half of the Fourier transform, of real numbers, over two axes, cut or filled with zeros to `s` points; .."""
def rfftfreq(
    n: Int, d: Float = 1.0, *, dtype: DType | None = None, layout: object = None, device: DeviceLike = None,
    requires_grad: Bool = False,
) -> Tensor:
    """The frequencies of the first half of a transform of `n` samples with spacing `d`."""
def rfftn(
    input: Tensor, s: Int | Sequence[Int] | None = None, dim: Int | Sequence[Int] | None = None, norm: str | None = None,
) -> Tensor:
    """The first half of the Fourier transform, of real numbers, over `dim`, all axes if None or as many as `s` has; .."""
