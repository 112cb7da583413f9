"""Fourier transforms under PyTorch's names: the rows whose namespace is "fft", shifts of frequencies, and the frequencies."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.functions.creation import check_layout_options
from genesis.functions.public_names import rows_shown
from genesis.functions.ranges import arange
from genesis.ir.dtypes import DType, get_default_dtype
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import normalize_axis
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.out import takes_out

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]

__getattr__, __dir__ = rows_shown("fft", __all__)


def _shifted(name: str, input: Tensor, dim: int | Sequence[int] | None, up: bool) -> Tensor:
    listed = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = tuple([normalize_axis(name, d, input.ndim) for d in listed])
    if not axes:
        return input.clone()
    steps = tuple([input.shape[a] // 2 if up else (input.shape[a] + 1) // 2 for a in axes])
    return call(OPERATIONS["roll"], (input, steps, axes))


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move the zero frequency from the front to the middle of `dim` (all axes, if None).

    >>> fftshift(genesis.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    """
    return _shifted("fftshift", input, dim, True)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    >>> genesis.fft.ifftshift(genesis.tensor([2, 0, 1]))
    tensor([0, 1, 2])
    """
    return _shifted("ifftshift", input, dim, False)


def _frequencies(
    name: str, indices: Tensor, n: int, d: float, dtype: DType | None, device: DeviceLike, requires_grad: bool,
    layout: object,
) -> Tensor:
    check_layout_options(name, {"layout": layout})
    if n < 1:
        raise ArgumentError(f"{name}: n is {n}; want 1 or more")
    found = (indices.to(dtype or get_default_dtype()) / (n * d)).to(device or indices.device)
    return found.requires_grad_(requires_grad)


@takes_out
def fftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, layout: object = None, device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of a transform of `n` samples with spacing `d`, in cycles per unit.

    >>> fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    indices = ifftshift(arange(-(n // 2), (n + 1) // 2)) if n > 0 else arange(0)
    return _frequencies("fftfreq", indices, n, d, dtype, device, requires_grad, layout)


@takes_out
def rfftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, layout: object = None, device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of the first half of a transform of `n` samples with spacing `d`.

    >>> rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies("rfftfreq", arange(max(n, 0) // 2 + 1), n, d, dtype, device, requires_grad, layout)
