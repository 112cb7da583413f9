"""Windows: weights (M,) that fade towards the ends of a signal, under PyTorch's names.

With `sym` False a window is one period of a function: what a symmetric one of M + 1 elements is without its last. They are
computed in float64 and rounded to `dtype`, the default float if None. All raise ValueError for a negative `M`, TypeError for
a dtype that is not floating.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypedDict, Unpack

from genesis.functions.creation import LayoutOptions, check_layout_options, ones, ones_like
from genesis.functions.ranges import arange
from genesis.ir.dtypes import DType, as_dtype, float64, get_default_dtype
from genesis.ir.errors import ArgumentError
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]
__dir__ = __all__.copy


class WindowOptions(TypedDict, total=False):
    """Settings of all windows: symmetric, for filters, or periodic; and those of new tensors."""

    sym: bool
    dtype: DType | None
    layout: object
    device: DeviceLike
    requires_grad: bool


def _window(
    name: str, M: int, shape: Callable[[Tensor, int], Tensor], *, sym: bool = True, dtype: DType | None = None,
    device: DeviceLike = None, requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """`shape(k, last)` for k of 0 to M - 1, of a symmetric window that ends at `last`."""
    check_layout_options(name, options)
    if M < 0:
        raise ArgumentError(f"{name}: M is {M}; want 0 or more")
    kind = as_dtype(name, dtype or get_default_dtype())
    if not kind.is_floating_point:
        raise ArgumentError(f"{name}: dtype must be floating, got {kind.name}")
    if M < 2:
        return ones(M, dtype=kind, device=device, requires_grad=requires_grad)
    result = shape(arange(M, dtype=float64, device=device), M - 1 if sym else M).to(kind)
    result.requires_grad = requires_grad
    return result


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, **options: Unpack[WindowOptions]) -> Tensor:
    """exp(-|k - center| / tau); the middle is the center of a symmetric one.

    >>> exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    sym = options.get("sym", True)
    if tau <= 0 or (sym and center is not None):
        raise ValueError(f"exponential: tau {tau}, center {center}, sym {sym}; want tau above 0, a center with sym=False")

    def shape(k: Tensor, last: int) -> Tensor:
        return (-(k - (last / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", M, shape, **options)


def gaussian(M: int, *, std: float = 1.0, **options: Unpack[WindowOptions]) -> Tensor:
    """exp(-((k - middle) / std)^2 / 2)."""
    if std <= 0:
        raise ValueError(f"gaussian: std is {std}; want it above 0")

    def shape(k: Tensor, last: int) -> Tensor:
        return (-(((k - last / 2) / std) ** 2) / 2).exp()

    return _window("gaussian", M, shape, **options)


def kaiser(M: int, *, beta: float = 12.0, **options: Unpack[WindowOptions]) -> Tensor:
    """I0(beta * sqrt(1 - x^2)) / I0(beta), of the modified Bessel function and x from -1 to 1."""
    if beta < 0:
        raise ValueError(f"kaiser: beta is {beta}; want 0 or more")

    def shape(k: Tensor, last: int) -> Tensor:
        root = (1 - (2 * k / last - 1) ** 2).clamp(0).sqrt()
        return (beta * root).i0() / (beta * ones_like(k)).i0()

    return _window("kaiser", M, shape, **options)


def cosine(M: int, **options: Unpack[WindowOptions]) -> Tensor:
    """sin(pi * (k + 1/2) / M), half a period."""
    return _window("cosine", M, lambda k, last: (math.pi * (k + 0.5) / (last + 1)).sin(), **options)


def bartlett(M: int, **options: Unpack[WindowOptions]) -> Tensor:
    """A triangle from 0 to 1 and back.

    >>> bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("bartlett", M, lambda k, last: 1 - (2 * k / last - 1).abs(), **options)


def general_cosine(M: int, *, a: Sequence[float], **options: Unpack[WindowOptions]) -> Tensor:
    """a[0] - a[1] * cos(x) + a[2] * cos(2 x) - .., of x from 0 to 2 pi."""
    if not len(a):
        raise ValueError("general_cosine: a is empty; want a factor at least")

    def shape(k: Tensor, last: int) -> Tensor:
        return sum((-1) ** i * factor * (2 * math.pi * i * k / last).cos() for i, factor in enumerate(a))  # type: ignore[return-value]

    return _window("general_cosine", M, shape, **options)


def general_hamming(M: int, *, alpha: float = 0.54, **options: Unpack[WindowOptions]) -> Tensor:
    """alpha - (1 - alpha) * cos(x), of x from 0 to 2 pi; `options` are those of the others."""
    return general_cosine(M, a=[alpha, 1 - alpha], **options)


def hamming(M: int, **options: Unpack[WindowOptions]) -> Tensor:
    """`general_hamming` with alpha 0.54."""
    return general_hamming(M, **options)


def hann(M: int, **options: Unpack[WindowOptions]) -> Tensor:
    """`general_hamming` with alpha 1/2.

    >>> hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return general_hamming(M, alpha=0.5, **options)


def blackman(M: int, **options: Unpack[WindowOptions]) -> Tensor:
    """`general_cosine` of Blackman's three factors."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], **options)


def nuttall(M: int, **options: Unpack[WindowOptions]) -> Tensor:
    """`general_cosine` of Nuttall's four factors (1981)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **options)
