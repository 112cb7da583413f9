"""Pooling, and its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from genesis.nn import functional
from genesis.nn.layer import Layer
from genesis.ops.window import PerAxis, per_axis
from genesis.tensor.handle import Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d",
    "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]


class _Windowed(Layer):
    """Pooling of (n, c, ..) or (c, ..) over the axes after c; `stride` defaults to `kernel_size`."""

    kernel_size: PerAxis
    stride: PerAxis | None = None
    padding: PerAxis = 0
    _printed: ClassVar[tuple[str, ...]] = ("kernel_size", "stride", "padding")

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride


class _MaxPool(_Windowed):
    dilation: PerAxis = 1
    return_indices: bool = False
    ceil_mode: bool = False
    _printed = "kernel_size", "stride", "padding", "dilation", "ceil_mode"


class MaxPool1d(_MaxPool, function=functional.max_pool1d): ...
class MaxPool2d(_MaxPool, function=functional.max_pool2d): ...
class MaxPool3d(_MaxPool, function=functional.max_pool3d): ...


class _AvgPool(_Windowed):
    ceil_mode: bool = False
    count_include_pad: bool = True


class AvgPool1d(_AvgPool, function=functional.avg_pool1d):
    def __post_init__(self) -> None:
        self.kernel_size = per_axis("AvgPool1d", "kernel_size", self.kernel_size, 1)
        self.stride = self.kernel_size if self.stride is None else per_axis("AvgPool1d", "stride", self.stride, 1)
        self.padding = per_axis("AvgPool1d", "padding", self.padding, 1, 0)


class AvgPool2d(_AvgPool, function=functional.avg_pool2d):
    divisor_override: int | None = None


class AvgPool3d(_AvgPool, function=functional.avg_pool3d):
    divisor_override: int | None = None


class _LPPool(Layer):
    norm_type: float
    kernel_size: PerAxis
    stride: PerAxis | None = None
    ceil_mode: bool = False


class LPPool1d(_LPPool, function=functional.lp_pool1d): ...
class LPPool2d(_LPPool, function=functional.lp_pool2d): ...
class LPPool3d(_LPPool, function=functional.lp_pool3d): ...


class _AdaptiveAvg(Layer):
    output_size: PerAxis | Sequence[int | None] | None


class AdaptiveAvgPool1d(_AdaptiveAvg, function=functional.adaptive_avg_pool1d): ...
class AdaptiveAvgPool2d(_AdaptiveAvg, function=functional.adaptive_avg_pool2d): ...
class AdaptiveAvgPool3d(_AdaptiveAvg, function=functional.adaptive_avg_pool3d): ...


class _AdaptiveMax(_AdaptiveAvg):
    return_indices: bool = False
    _printed = ("output_size",)


class AdaptiveMaxPool1d(_AdaptiveMax, function=functional.adaptive_max_pool1d): ...
class AdaptiveMaxPool2d(_AdaptiveMax, function=functional.adaptive_max_pool2d): ...
class AdaptiveMaxPool3d(_AdaptiveMax, function=functional.adaptive_max_pool3d): ...


class MaxUnpool1d(_Windowed, function=functional.max_unpool1d):
    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """See `nn.functional.max_unpool1d` and the others."""
        return self.function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(MaxUnpool1d, function=functional.max_unpool2d): ...
class MaxUnpool3d(MaxUnpool1d, function=functional.max_unpool3d): ...
