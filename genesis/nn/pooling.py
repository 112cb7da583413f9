"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from genesis.nn import functional
from genesis.nn.layer import Layer
from genesis.ops.window import PerAxis, per_axis

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "MaxPool1d", "MaxPool2d", "MaxPool3d",
]


class _Windowed(Layer):
    """Of (n, c, ..) or (c, ..), over what comes after c; windows are a `kernel_size` apart where no `stride` is given."""

    kernel_size: PerAxis
    stride: PerAxis | None = None
    padding: PerAxis = 0
    _printed: ClassVar[tuple[str, ...]] = ("kernel_size", "stride", "padding")

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride


class _MaxPool(_Windowed):
    """With `return_indices`, the elements' positions too."""

    dilation: PerAxis = 1
    return_indices: bool = False
    ceil_mode: bool = False
    _printed = "kernel_size", "stride", "padding", "dilation", "ceil_mode"


class _AvgPool(_Windowed):
    ceil_mode: bool = False
    count_include_pad: bool = True


class _LPPool(Layer):
    """Of (n, c, ..) or (c, ..), over what comes after c."""

    norm_type: float
    kernel_size: PerAxis
    stride: PerAxis | None = None
    ceil_mode: bool = False


class _AdaptiveAvg(Layer):
    """Of (n, c, ..) or (c, ..), over what comes after c."""

    output_size: PerAxis | Sequence[int | None] | None


class _AdaptiveMax(_AdaptiveAvg):
    """The same; with `return_indices`, the elements' positions too."""

    return_indices: bool = False
    _printed = ("output_size",)


class MaxPool1d(_MaxPool):
    """The greatest element of each window over the last axis; see `nn.functional.max_pool1d`.

    >>> import genesis
    >>> genesis.nn.MaxPool1d(2)(genesis.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    function = functional.max_pool1d


class MaxPool2d(_MaxPool):
    """The greatest element of each window over the last 2 axes; see `nn.functional.max_pool2d`.

    >>> import genesis
    >>> genesis.nn.MaxPool2d(2)(genesis.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    function = functional.max_pool2d


class MaxPool3d(_MaxPool):
    """The greatest element of each window over the last 3 axes; see `nn.functional.max_pool3d`.

    >>> import genesis
    >>> genesis.nn.MaxPool3d(2)(genesis.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    function = functional.max_pool3d


class AvgPool1d(_AvgPool):
    """The mean of each window over the last axis; see `nn.functional.avg_pool1d`.

    >>> import genesis
    >>> genesis.nn.AvgPool1d(2)(genesis.tensor([[1.0, 3.0, 5.0, 7.0]]))
    tensor([[2., 6.]])
    """

    function = functional.avg_pool1d

    def __post_init__(self) -> None:
        self.kernel_size = per_axis("AvgPool1d", "kernel_size", self.kernel_size, 1)
        self.stride = self.kernel_size if self.stride is None else per_axis("AvgPool1d", "stride", self.stride, 1)
        self.padding = per_axis("AvgPool1d", "padding", self.padding, 1, 0)


class AvgPool2d(_AvgPool):
    """The mean of each window over the last 2 axes; see `nn.functional.avg_pool2d`.

    >>> import genesis
    >>> genesis.nn.AvgPool2d(2)(genesis.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    divisor_override: int | None = None
    function = functional.avg_pool2d


class AvgPool3d(_AvgPool):
    """The mean of each window over the last 3 axes; see `nn.functional.avg_pool3d`.

    >>> import genesis
    >>> genesis.nn.AvgPool3d(2)(genesis.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    divisor_override: int | None = None
    function = functional.avg_pool3d


class LPPool1d(_LPPool):
    """(sum of x^p)^(1/p) of each window over the last axis.

    >>> import genesis
    >>> genesis.nn.LPPool1d(2, 2)(genesis.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    function = functional.lp_pool1d


class LPPool2d(_LPPool):
    """(sum of x^p)^(1/p) of each window over the last 2 axes.

    >>> import genesis
    >>> genesis.nn.LPPool2d(2, 2)(genesis.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    function = functional.lp_pool2d


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """The means of `output_size` parts of the last axis, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool1d(2)(genesis.ones(1, 3, 7)).shape
    (1, 3, 2)
    """

    function = functional.adaptive_avg_pool1d


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """The means of `output_size` parts of the last 2 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool2d(2)(genesis.ones(1, 3, 7, 7)).shape
    (1, 3, 2, 2)
    """

    function = functional.adaptive_avg_pool2d


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """The means of `output_size` parts of the last 3 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool3d(2)(genesis.ones(1, 3, 7, 7, 7)).shape
    (1, 3, 2, 2, 2)
    """

    function = functional.adaptive_avg_pool3d


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The greatest elements of `output_size` parts of the last axis, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool1d(2)(genesis.ones(1, 3, 7)).shape
    (1, 3, 2)
    """

    function = functional.adaptive_max_pool1d


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The greatest elements of `output_size` parts of the last 2 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool2d(2)(genesis.ones(1, 3, 7, 7)).shape
    (1, 3, 2, 2)
    """

    function = functional.adaptive_max_pool2d


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The greatest elements of `output_size` parts of the last 3 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool3d(2)(genesis.ones(1, 3, 7, 7, 7)).shape
    (1, 3, 2, 2, 2)
    """

    function = functional.adaptive_max_pool3d
