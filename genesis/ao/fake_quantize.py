"""Fake quantisation: rounds numbers as quantisation does, with gradients for quantisation-aware training."""

from __future__ import annotations

import enum

from genesis.functions.selection import where
from genesis.ir.errors import ArgumentError
from genesis.ir.library import Library
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach
from genesis.tracing.state import recording

__all__ = [
    "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "per_channel_affine", "per_channel_symmetric",
    "per_tensor_affine", "per_tensor_symmetric", "qscheme",
]


class qscheme(enum.Enum):
    """A quantisation scheme: one scale or one per channel, around 0 or around a zero point."""

    per_tensor_affine = enum.auto()
    per_tensor_symmetric = enum.auto()
    per_channel_affine = enum.auto()
    per_channel_symmetric = enum.auto()

    def __repr__(self) -> str:
        return f"{Library.name}.{self.name}"

    __str__ = __repr__


per_tensor_affine, per_tensor_symmetric, per_channel_affine, per_channel_symmetric = qscheme


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int
) -> Tensor:
    """`(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale`.

    The gradient is that of the input where nothing is clamped, and 0 elsewhere. Raises ValueError for an empty range.

    >>> genesis.ao.quantization.fake_quantize_per_tensor_affine(genesis.tensor([0.12, 9.0]), 0.1, 0, 0, 15)
    tensor([0.1000, 1.5000])
    """
    scale = scale.reshape(()) if isinstance(scale, Tensor) else scale
    zero_point = zero_point.reshape(()) if isinstance(zero_point, Tensor) else zero_point
    return _fake_quantized("fake_quantize_per_tensor_affine", input, scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """As `fake_quantize_per_tensor_affine`, with a scale and a zero point for each index of `axis`.

    >>> x, scale, zero = genesis.tensor([[0.12, 0.17], [0.12, 0.17]]), genesis.tensor([0.1, 0.5]), genesis.tensor([0, 0])
    >>> genesis.ao.quantization.fake_quantize_per_channel_affine(x, scale, zero, 0, 0, 15)
    tensor([[0.1000, 0.2000],
            [0.0000, 0.0000]])
    """
    if scale.shape != (input.shape[axis],) or zero_point.shape != scale.shape:
        raise ArgumentError(
            f"fake_quantize_per_channel_affine: scale {scale.shape} and zero_point {zero_point.shape} for axis {axis} of "
            f"{input.shape}; want ({input.shape[axis]},)")
    shape = [1] * input.ndim
    shape[axis] = -1
    return _fake_quantized(
        "fake_quantize_per_channel_affine", input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


def _fake_quantized(
    name: str, input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int
) -> Tensor:
    if not quant_min <= quant_max:
        raise ArgumentError(f"{name}: the range is {quant_min} to {quant_max}; want `quant_min` to be less than `quant_max`")
    with recording(False) as again, again:
        steps = (detach(input) * (1.0 / scale)).round() + zero_point
        value = (steps.clamp(quant_min, quant_max) - zero_point) * scale
        inside = (steps >= quant_min) & (steps <= quant_max)
    kept = where(inside, input, detach(input))  # has the gradient, but not the value
    return call(OPERATIONS["with_value"], (kept, value))  # type: ignore[no-any-return]
