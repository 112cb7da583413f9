"""Pooling as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.nn import functional
from genesis.nn.module import Module
from genesis.ops.window import PerAxis, per_axis
from genesis.tensor.handle import Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "MaxPool1d", "MaxPool2d", "MaxPool3d",
]


class _Pool(Module):
    """The settings of one of `nn.functional`'s poolings, under their names there."""

    _function: Callable[..., Any]


class _MaxPool(_Pool):
    _printed = "kernel_size", "stride", "padding", "dilation", "ceil_mode"

    def __init__(
        self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0, dilation: PerAxis = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """`input` (n, c, ..) or (c, ..), pooled over what comes after c; with `return_indices`, and the elements' places."""
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)


class _AvgPool(_Pool):
    _printed = "kernel_size", "stride", "padding"

    def __init__(
        self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, c, ..) or (c, ..), pooled over what comes after c."""
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)


class _LPPool(_Pool):
    _printed = "norm_type", "kernel_size", "stride", "ceil_mode"

    def __init__(
        self, norm_type: float, kernel_size: PerAxis, stride: PerAxis | None = None, ceil_mode: bool = False
    ) -> None:
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, c, ..) or (c, ..), pooled over what comes after c."""
        return self._function(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveAvg(_Pool):
    _printed = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, c, ..) or (c, ..), pooled over what comes after c."""
        return self._function(input, self.output_size)


class _AdaptiveMax(_Pool):
    _printed = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """`input` (n, c, ..) or (c, ..), pooled over what comes after c; with `return_indices`, and the elements' places."""
        return self._function(input, self.output_size, self.return_indices)


class MaxPool1d(_MaxPool):
    """The greatest element of each window over the last axis; see `nn.functional.max_pool1d`.

    >>> import genesis
    >>> genesis.nn.MaxPool1d(2)(genesis.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    _function = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPool):
    """The greatest element of each window over the last 2 axes; see `nn.functional.max_pool2d`.

    >>> import genesis
    >>> genesis.nn.MaxPool2d(2)(genesis.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _function = staticmethod(functional.max_pool2d)


class MaxPool3d(_MaxPool):
    """The greatest element of each window over the last 3 axes; see `nn.functional.max_pool3d`.

    >>> import genesis
    >>> genesis.nn.MaxPool3d(2)(genesis.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    _function = staticmethod(functional.max_pool3d)


class AvgPool1d(_AvgPool):
    """The mean of each window over the last axis; see `nn.functional.avg_pool1d`.

    >>> import genesis
    >>> genesis.nn.AvgPool1d(2)(genesis.tensor([[1.0, 3.0, 5.0, 7.0]]))
    tensor([[2., 6.]])
    """

    def __init__(
        self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        size = per_axis("AvgPool1d", "kernel_size", kernel_size, 1)
        step = size if stride is None else per_axis("AvgPool1d", "stride", stride, 1)
        super().__init__(size, step, per_axis("AvgPool1d", "padding", padding, 1, 0), ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, c, l) or (c, l), pooled over l."""
        return functional.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPool):
    """The mean of each window over the last 2 axes; see `nn.functional.avg_pool2d`.

    >>> import genesis
    >>> genesis.nn.AvgPool2d(2)(genesis.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _function = staticmethod(functional.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window over the last 3 axes; see `nn.functional.avg_pool3d`.

    >>> import genesis
    >>> genesis.nn.AvgPool3d(2)(genesis.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    _function = staticmethod(functional.avg_pool3d)


class LPPool1d(_LPPool):
    """(sum of x^p)^(1/p) of each window over the last axis.

    >>> import genesis
    >>> genesis.nn.LPPool1d(2, 2)(genesis.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    _function = staticmethod(functional.lp_pool1d)


class LPPool2d(_LPPool):
    """(sum of x^p)^(1/p) of each window over the last 2 axes.

    >>> import genesis
    >>> genesis.nn.LPPool2d(2, 2)(genesis.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _function = staticmethod(functional.lp_pool2d)


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """The means of `output_size` parts of the last axis, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool1d(2)(genesis.ones(1, 3, 7)).shape
    (1, 3, 2)
    """

    _function = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """The means of `output_size` parts of the last 2 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool2d(2)(genesis.ones(1, 3, 7, 7)).shape
    (1, 3, 2, 2)
    """

    _function = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """The means of `output_size` parts of the last 3 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool3d(2)(genesis.ones(1, 3, 7, 7, 7)).shape
    (1, 3, 2, 2, 2)
    """

    _function = staticmethod(functional.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The greatest elements of `output_size` parts of the last axis, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool1d(2)(genesis.ones(1, 3, 7)).shape
    (1, 3, 2)
    """

    _function = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The greatest elements of `output_size` parts of the last 2 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool2d(2)(genesis.ones(1, 3, 7, 7)).shape
    (1, 3, 2, 2)
    """

    _function = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The greatest elements of `output_size` parts of the last 3 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool3d(2)(genesis.ones(1, 3, 7, 7, 7)).shape
    (1, 3, 2, 2, 2)
    """

    _function = staticmethod(functional.adaptive_max_pool3d)
