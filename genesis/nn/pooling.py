"""Pooling, and its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from genesis.nn import functional
from genesis.nn.family import Family
from genesis.nn.layer import Layer
from genesis.ops.window import PerAxis, per_axis
from genesis.tensor.handle import Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d",
    "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]


class _Windowed(Family, Layer):
    """Pooling of (n, c, ..) or (c, ..) over the axes after c; `stride` defaults to `kernel_size`."""

    kernel_size: PerAxis
    stride: PerAxis | None = None
    padding: PerAxis = 0
    _printed: ClassVar[tuple[str, ...]] = ("kernel_size", "stride", "padding")

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride


class _MaxPool(_Windowed):
    """The greatest element of each window over the last {axes}; see `nn.functional.{function}`.

    With `return_indices`, also the elements' indices.

    >>> genesis.nn.{name}(2)(genesis.ones(1, 3, {8})).shape
    (1, 3, {4})
    """

    dilation: PerAxis = 1
    return_indices: bool = False
    ceil_mode: bool = False
    _printed = "kernel_size", "stride", "padding", "dilation", "ceil_mode"


class MaxPool1d(_MaxPool, axes=1, function=functional.max_pool1d): ...
class MaxPool2d(_MaxPool, axes=2, function=functional.max_pool2d): ...
class MaxPool3d(_MaxPool, axes=3, function=functional.max_pool3d): ...


class _AvgPool(_Windowed):
    """The mean of each window over the last {axes}; see `nn.functional.{function}`.

    >>> genesis.nn.{name}(2)(genesis.ones(1, 3, {8})).shape
    (1, 3, {4})
    """

    ceil_mode: bool = False
    count_include_pad: bool = True


class AvgPool1d(_AvgPool, axes=1):
    function = functional.avg_pool1d

    def __post_init__(self) -> None:
        self.kernel_size = per_axis("AvgPool1d", "kernel_size", self.kernel_size, 1)
        self.stride = self.kernel_size if self.stride is None else per_axis("AvgPool1d", "stride", self.stride, 1)
        self.padding = per_axis("AvgPool1d", "padding", self.padding, 1, 0)


class AvgPool2d(_AvgPool, axes=2):
    divisor_override: int | None = None
    function = functional.avg_pool2d


class AvgPool3d(_AvgPool, axes=3):
    divisor_override: int | None = None
    function = functional.avg_pool3d


class _LPPool(Family, Layer):
    """(sum of x^p)^(1/p) of each window over the last {axes}; see `nn.functional.{function}`.

    >>> genesis.nn.{name}(2, 2)(genesis.ones(1, 3, {8})).shape
    (1, 3, {4})
    """

    norm_type: float
    kernel_size: PerAxis
    stride: PerAxis | None = None
    ceil_mode: bool = False


class LPPool1d(_LPPool, axes=1, function=functional.lp_pool1d): ...
class LPPool2d(_LPPool, axes=2, function=functional.lp_pool2d): ...
class LPPool3d(_LPPool, axes=3, function=functional.lp_pool3d): ...


class _AdaptiveAvg(Family, Layer):
    """The means of `output_size` nearly equal parts of the last {axes}; None keeps an extent.

    >>> genesis.nn.{name}(2)(genesis.ones(1, 3, {7})).shape
    (1, 3, {2})
    """

    output_size: PerAxis | Sequence[int | None] | None


class AdaptiveAvgPool1d(_AdaptiveAvg, axes=1, function=functional.adaptive_avg_pool1d): ...
class AdaptiveAvgPool2d(_AdaptiveAvg, axes=2, function=functional.adaptive_avg_pool2d): ...
class AdaptiveAvgPool3d(_AdaptiveAvg, axes=3, function=functional.adaptive_avg_pool3d): ...


class _AdaptiveMax(_AdaptiveAvg):
    """The greatest elements of `output_size` nearly equal parts of the last {axes}; None keeps an extent.

    With `return_indices`, also the elements' indices.

    >>> genesis.nn.{name}(2)(genesis.ones(1, 3, {7})).shape
    (1, 3, {2})
    """

    return_indices: bool = False
    _printed = ("output_size",)


class AdaptiveMaxPool1d(_AdaptiveMax, axes=1, function=functional.adaptive_max_pool1d): ...
class AdaptiveMaxPool2d(_AdaptiveMax, axes=2, function=functional.adaptive_max_pool2d): ...
class AdaptiveMaxPool3d(_AdaptiveMax, axes=3, function=functional.adaptive_max_pool3d): ...


class MaxUnpool1d(Layer):
    """The inverse of MaxPool1d: elements return to their positions, zeros elsewhere.

    >>> from genesis import nn, tensor
    >>> y, at = nn.MaxPool1d(2, return_indices=True)(tensor([[1.0, 3.0, 2.0, 0.0]]))
    >>> nn.MaxUnpool1d(2)(y, at)
    tensor([[0., 3., 2., 0.]])
    """

    kernel_size: PerAxis
    stride: PerAxis | None = None
    padding: PerAxis = 0
    function = functional.max_unpool1d

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """See `nn.functional.max_unpool1d` and the others."""
        return self.function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(MaxUnpool1d):
    """The inverse of MaxPool2d.

    >>> from genesis import nn, tensor
    >>> y, at = nn.MaxPool2d(2, return_indices=True)(tensor([[[1.0, 3.0], [2.0, 0.0]]]))
    >>> nn.MaxUnpool2d(2)(y, at)
    tensor([[[0., 3.],
             [0., 0.]]])
    """

    function = functional.max_unpool2d


class MaxUnpool3d(MaxUnpool1d):
    """The inverse of MaxPool3d.

    >>> from genesis import nn, arange
    >>> y, at = nn.MaxPool3d(2, return_indices=True)(arange(8.0).reshape(1, 2, 2, 2))
    >>> nn.MaxUnpool3d(2)(y, at).sum()
    tensor(7.)
    """

    function = functional.max_unpool3d
