"""Convolutions as modules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from genesis.functions.creation import empty
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.nn import functional, init
from genesis.nn.layer import Family
from genesis.nn.parameter import Parameter
from genesis.ops.window import PerAxis, per_axis
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Convolution(Family):
    """The base of convolutions: a weight, initialized as in PyTorch, and a bias."""

    transposed: ClassVar[bool] = False
    output_padding: tuple[int, ...]
    bias: Parameter | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: PerAxis, stride: PerAxis = 1, padding: PerAxis | str = 0,
        dilation: PerAxis = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        name, axes = type(self).__name__, self._axes
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ArgumentError(f"{name}: {groups} groups; want a divisor of {in_channels} and {out_channels} channels")
        if isinstance(padding, str) and padding not in ("valid", "same"):
            raise ArgumentError(f"{name}: padding is {padding!r}; want 'valid', 'same' or numbers")
        if padding == "same" and max(per_axis(name, "stride", stride, axes)) > 1:
            raise ArgumentError(f"{name}: padding='same' wants strides of 1, got {stride}")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ArgumentError(
                f"{name}: padding_mode must be 'zeros', 'reflect', 'replicate' or 'circular', got {padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_axis(name, "kernel_size", kernel_size, axes)
        self.stride = per_axis(name, "stride", stride, axes)
        self.padding = padding if isinstance(padding, str) else per_axis(name, "padding", padding, axes, 0)
        self.dilation = per_axis(name, "dilation", dilation, axes)
        self.groups = groups
        self.padding_mode = padding_mode
        if not self.transposed:
            self.output_padding = (0,) * axes
        self.weight = Parameter(empty(*self._weight_channels(), *self.kernel_size, device=device, dtype=dtype))
        self._hold_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _weight_channels(self) -> tuple[int, int]:
        return self.out_channels, self.in_channels // self.groups

    def reset_parameters(self) -> None:
        """Reinitialize the parameters: uniform in +-1/sqrt(inputs of one output)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            inputs, _ = init.fans(self.weight)
            bound = 1 / math.sqrt(inputs) if inputs else 0.0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * self._axes:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * self._axes:
            parts.append(f"dilation={self.dilation}")
        if any(more := getattr(self, "output_padding", ())):
            parts.append(f"output_padding={more}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_Convolution):
    """The cross-correlation of (n, in_channels, {extents}) with `weight`, plus `bias`.

    `weight` is (out_channels, in_channels / groups, *kernel). Arguments as those of `nn.functional.{function}`;
    `padding_mode` is "zeros", "reflect", "replicate" or "circular".

    >>> genesis.nn.{name}(3, 8, 3, stride=2, padding=1)(genesis.ones(2, 3, {10})).shape
    (2, 8, {5})
    """

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, in_channels, ..) or (in_channels, ..) -> the same with out_channels."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """`forward` with a given weight and bias; users' classes override it, as in PyTorch."""
        padding: PerAxis | str = self.padding
        if self.padding_mode != "zeros":
            input, padding = functional.pad(input, self._around(), mode=self.padding_mode), 0
        return self.function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def _around(self) -> tuple[int, ...]:
        """The paddings as `functional.pad` takes them."""
        if self.padding == "valid":
            return (0,) * (2 * self._axes)
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return tuple([p for total in reversed(totals) for p in (total // 2, total - total // 2)])
        return tuple([p for p in reversed(self.padding) for _ in range(2)])  # type: ignore[misc]


class Conv1d(_Conv, axes=1, function=functional.conv1d): ...
class Conv2d(_Conv, axes=2, function=functional.conv2d): ...
class Conv3d(_Conv, axes=3, function=functional.conv3d): ...


class _ConvTranspose(_Convolution):
    """The gradient of a convolution by its input, as a layer: (n, in_channels, {extents}) -> (n, out_channels, larger).

    `weight` is (in_channels, out_channels / groups, *kernel); other arguments as those of `nn.functional.{function}`.

    >>> genesis.nn.{name}(8, 3, 2, stride=2)(genesis.ones(2, 8, {5})).shape
    (2, 3, {10})
    """

    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: PerAxis, stride: PerAxis = 1, padding: PerAxis = 0,
        output_padding: PerAxis = 0, groups: int = 1, bias: bool = True, dilation: PerAxis = 1,
        padding_mode: str = "zeros", device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ArgumentError(f"{type(self).__name__}: padding_mode must be 'zeros', got {padding_mode!r}")
        self.output_padding = per_axis(type(self).__name__, "output_padding", output_padding, self._axes, 0)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )

    def _weight_channels(self) -> tuple[int, int]:
        return self.in_channels, self.out_channels // self.groups

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """`input` (n, in_channels, ..) -> (n, out_channels, ..); `output_size` selects one of the possible sizes."""
        more = self.output_padding if output_size is None else self._more(input, output_size)
        return self.function(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)

    def _more(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        wanted, extents = tuple(output_size)[-self._axes :], input.shape[-self._axes :]
        settings = zip(extents, self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(e - 1) * s - 2 * p + d * (k - 1) + 1 for e, s, p, d, k in settings]  # type: ignore[operator]
        more = tuple(w - e for w, e in zip(wanted, least, strict=True))
        if any(not 0 <= m < s for m, s in zip(more, self.stride, strict=True)):
            raise ArgumentError(
                f"{type(self).__name__}: output_size {wanted} is not possible; want {tuple(least)}, or up to stride - 1 more"
            )
        return more


class ConvTranspose1d(_ConvTranspose, axes=1, function=functional.conv_transpose1d): ...
class ConvTranspose2d(_ConvTranspose, axes=2, function=functional.conv_transpose2d): ...
class ConvTranspose3d(_ConvTranspose, axes=3, function=functional.conv_transpose3d): ...
