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


class RReLU(Layer):
    """x where positive, s * x elsewhere: s drawn from [lower, upper) while training, and the middle otherwise.

    >>> genesis.nn.RReLU(0.25, 0.75).eval()(genesis.tensor([1.0, -2.0]))
    tensor([ 1., -1.])
    """

    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False
    function = functional.rrelu


class LeakyReLU(Layer):
    """x where positive, `negative_slope` * x elsewhere.

    >>> genesis.nn.LeakyReLU()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.0100,  0.2500,  8.0000])
    """

    negative_slope: float = 0.01
    inplace: bool = False
    function = functional.leaky_relu


class ReLU6(Layer):
    """x clamped to [0, 6].

    >>> genesis.nn.ReLU6()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([0.0000, 0.2500, 6.0000])
    """

    min_val: ClassVar[float] = 0.0
    max_val: ClassVar[float] = 6.0
    inplace: bool = False
    function = functional.relu6


class Hardsigmoid(Layer):
    """(x + 3) / 6 clamped to [0, 1].

    >>> genesis.nn.Hardsigmoid()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([0.3333, 0.5417, 1.0000])
    """

    inplace: bool = False
    function = functional.hardsigmoid


class Hardswish(Layer):
    """x * hardsigmoid(x).

    >>> genesis.nn.Hardswish()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.3333,  0.1354,  8.0000])
    """

    inplace: bool = False
    function = functional.hardswish


class Hardtanh(Layer):
    """x clamped to [min_val, max_val].

    >>> genesis.nn.Hardtanh()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-1.0000,  0.2500,  1.0000])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False
    function = functional.hardtanh

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


class Hardshrink(Layer):
    """x, but 0 within [-lambd, lambd].

    >>> genesis.nn.Hardshrink()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-1.,  0.,  8.])
    """

    lambd: float = 0.5
    function = functional.hardshrink
    _printed = ("*lambd",)


class Softshrink(Layer):
    """x shrunk towards 0 by `lambd`.

    >>> genesis.nn.Softshrink()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.5000,  0.0000,  7.5000])
    """

    lambd: float = 0.5
    function = functional.softshrink
    _printed = ("*lambd",)


class Threshold(Layer):
    """x where it exceeds `threshold`, `value` elsewhere.

    >>> genesis.nn.Threshold(0.5, 20.0)(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([20., 20.,  8.])
    """

    threshold: float
    value: float
    inplace: bool = False
    function = functional.threshold


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
