"""Pooling as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.nn import functional
from genesis.nn.convolution import each
from genesis.nn.module import Module
from genesis.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "LPPool1d", "LPPool2d", "MaxPool1d", "MaxPool2d", "MaxPool3d",
]

PerAxis = int | Sequence[int]


class _MaxPool(Module):
    _axes = 0

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
        """`input` (n, c, ..) or (c, ..) -> the windows' greatest elements, and with return_indices their places."""
        return getattr(functional, f"max_pool{self._axes}d")(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _AvgPool(Module):
    _axes = 0

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
        """`input` (n, c, ..) or (c, ..) -> the windows' means."""
        result: Tensor = getattr(functional, f"avg_pool{self._axes}d")(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )
        return result

    def extra_repr(self) -> str:
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _LPPool(Module):
    _axes = 0

    def __init__(
        self, norm_type: float, kernel_size: PerAxis, stride: PerAxis | None = None, ceil_mode: bool = False
    ) -> None:
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, c, ..) or (c, ..) -> the windows' norms."""
        pool = getattr(functional, f"lp_pool{self._axes}d")
        result: Tensor = pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)
        return result

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class _Adaptive(Module):
    _function = ""

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, input: Tensor) -> Any:
        """`input` (n, c, ..) or (c, ..) -> (.., output_size)."""
        return getattr(functional, self._function)(input, self.output_size)

    def extra_repr(self) -> str:
        """The extents of the output."""
        return f"output_size={self.output_size}"


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """`input` (n, c, ..) or (c, ..) -> (.., output_size), with return_indices their places too."""
        return getattr(functional, self._function)(input, self.output_size, self.return_indices)


class MaxPool1d(_MaxPool):
    """The greatest element of each window over the last 1 axis; see `nn.functional.max_pool1d`.

    >>> import genesis
    >>> genesis.nn.MaxPool1d(2)(genesis.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    _axes = 1


class MaxPool2d(_MaxPool):
    """The greatest element of each window over the last 2 axes; see `nn.functional.max_pool2d`.

    >>> import genesis
    >>> genesis.nn.MaxPool2d(2)(genesis.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _axes = 2


class MaxPool3d(_MaxPool):
    """The greatest element of each window over the last 3 axes; see `nn.functional.max_pool3d`.

    >>> import genesis
    >>> genesis.nn.MaxPool3d(2)(genesis.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    _axes = 3


class AvgPool1d(_AvgPool):
    """The mean of each window over the last axis; see `nn.functional.avg_pool1d`.

    >>> import genesis
    >>> genesis.nn.AvgPool1d(2)(genesis.tensor([[1.0, 3.0, 5.0, 7.0]]))
    tensor([[2., 6.]])
    """

    _axes = 1

    def __init__(
        self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        size, apart = each(kernel_size, 1), each(kernel_size if stride is None else stride, 1)
        super().__init__(size, apart, each(padding, 1), ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, c, l) or (c, l) -> the windows' means."""
        return functional.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class AvgPool2d(_AvgPool):
    """The mean of each window over the last 2 axes; see `nn.functional.avg_pool2d`.

    >>> import genesis
    >>> genesis.nn.AvgPool2d(2)(genesis.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _axes = 2


class AvgPool3d(_AvgPool):
    """The mean of each window over the last 3 axes; see `nn.functional.avg_pool3d`.

    >>> import genesis
    >>> genesis.nn.AvgPool3d(2)(genesis.ones(1, 3, 8, 8, 8)).shape
    (1, 3, 4, 4, 4)
    """

    _axes = 3


class LPPool1d(_LPPool):
    """(sum of x^p)^(1/p) of each window over the last 1 axis.

    >>> import genesis
    >>> genesis.nn.LPPool1d(2, 2)(genesis.ones(1, 3, 8)).shape
    (1, 3, 4)
    """

    _axes = 1


class LPPool2d(_LPPool):
    """(sum of x^p)^(1/p) of each window over the last 2 axes.

    >>> import genesis
    >>> genesis.nn.LPPool2d(2, 2)(genesis.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    _axes = 2


class AdaptiveAvgPool1d(_Adaptive):
    """The means of `output_size` parts of the last 1 axis, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool1d(2)(genesis.ones(1, 3, 7)).shape
    (1, 3, 2)
    """

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_Adaptive):
    """The means of `output_size` parts of the last 2 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveAvgPool2d(2)(genesis.ones(1, 3, 7, 7)).shape
    (1, 3, 2, 2)
    """

    _function = "adaptive_avg_pool2d"


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The greatest elements of `output_size` parts of the last 1 axis, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool1d(2)(genesis.ones(1, 3, 7)).shape
    (1, 3, 2)
    """

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The greatest elements of `output_size` parts of the last 2 axes, as equal as can be; None keeps an extent.

    >>> import genesis
    >>> genesis.nn.AdaptiveMaxPool2d(2)(genesis.ones(1, 3, 7, 7)).shape
    (1, 3, 2, 2)
    """

    _function = "adaptive_max_pool2d"
