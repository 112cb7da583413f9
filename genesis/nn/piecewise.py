"""Piecewise linear activations."""

from __future__ import annotations

import warnings
from typing import ClassVar

from genesis.functions.creation import full
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.nn import functional
from genesis.nn.layer import Layer
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = [
    "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "PReLU", "RReLU", "ReLU6", "Softshrink", "Threshold",
]


class RReLU(Layer, function=functional.rrelu):
    """x where positive, s * x elsewhere: s drawn from [lower, upper) while training, and the middle otherwise.

    >>> genesis.nn.RReLU(0.25, 0.75).eval()(genesis.tensor([1.0, -2.0]))
    tensor([ 1., -1.])
    """

    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False


class LeakyReLU(Layer, function=functional.leaky_relu):
    negative_slope: float = 0.01
    inplace: bool = False


class ReLU6(Layer, function=functional.relu6):
    min_val: ClassVar[float] = 0.0
    max_val: ClassVar[float] = 6.0
    inplace: bool = False


class Hardsigmoid(Layer, function=functional.hardsigmoid):
    inplace: bool = False


class Hardswish(Layer, function=functional.hardswish):
    inplace: bool = False


class Hardtanh(Layer, function=functional.hardtanh):
    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        self.min_val = _renamed("min", min_val, min_value)
        self.max_val = _renamed("max", max_val, max_value)
        self.inplace = inplace
        if not self.min_val < self.max_val:
            raise ArgumentError(f"Hardtanh: bounds are {self.min_val} and {self.max_val}; want the first below the second")


def _renamed(end: str, value: float, former: float | None) -> float:
    """A bound of Hardtanh, which may be given under its former name, with a warning."""
    if former is None:
        return value
    warnings.warn(f"Hardtanh: keyword argument {end}_value is deprecated; it is {end}_val", FutureWarning, stacklevel=3)
    return former


class Hardshrink(Layer, function=functional.hardshrink):
    lambd: float = 0.5
    _printed = ("*lambd",)


class Softshrink(Layer, function=functional.softshrink):
    lambd: float = 0.5
    _printed = ("*lambd",)


class Threshold(Layer, function=functional.threshold):
    threshold: float
    value: float
    inplace: bool = False


class PReLU(Module):
    """x where positive, `weight` * x elsewhere; one weight is learned, or one for each channel (axis 1).

    >>> genesis.nn.PReLU()(genesis.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    _printed = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: DeviceLike = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """`input` of any shape -> the same shape."""
        return functional.prelu(input, self.weight)
