"""Activations."""

from __future__ import annotations

import warnings
from typing import ClassVar

from genesis.functions.creation import full
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError, FormError
from genesis.nn import functional
from genesis.nn.layer import Layer
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus",
    "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]


class _InPlace(Layer):
    inplace: bool = False


class ReLU(_InPlace, function=functional.relu): ...
class SiLU(_InPlace, function=functional.silu): ...
class SELU(_InPlace, function=functional.selu): ...
class Mish(_InPlace, function=functional.mish): ...
class Hardsigmoid(_InPlace, function=functional.hardsigmoid): ...
class Hardswish(_InPlace, function=functional.hardswish): ...


class Tanh(Layer, function=functional.tanh): ...
class Sigmoid(Layer, function=functional.sigmoid): ...
class Softsign(Layer, function=functional.softsign): ...
class LogSigmoid(Layer, function=functional.logsigmoid): ...
class Tanhshrink(Layer, function=functional.tanhshrink): ...


class GELU(Layer, function=functional.gelu):
    approximate: str = "none"


class _WithAlpha(Layer):
    alpha: float = 1.0
    inplace: bool = False


class ELU(_WithAlpha, function=functional.elu): ...
class CELU(_WithAlpha, function=functional.celu): ...


class Softplus(Layer, function=functional.softplus):
    beta: float = 1.0
    threshold: float = 20.0


class LeakyReLU(Layer, function=functional.leaky_relu):
    negative_slope: float = 0.01
    inplace: bool = False


class RReLU(Layer, function=functional.rrelu):
    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False


class ReLU6(_InPlace, function=functional.relu6):
    min_val: ClassVar[float] = 0.0
    max_val: ClassVar[float] = 6.0


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
            raise FormError(f"Hardtanh: bounds are {self.min_val} and {self.max_val}; want the first below the second")


def _renamed(end: str, value: float, former: float | None) -> float:
    """A bound of Hardtanh, which may be given under its former name, with a warning."""
    if former is None:
        return value
    warnings.warn(f"Hardtanh: keyword argument {end}_value is deprecated; it is {end}_val", FutureWarning, stacklevel=3)
    return former


class Threshold(Layer, function=functional.threshold):
    threshold: float
    value: float
    inplace: bool = False


class _Shrink(Layer):
    lambd: float = 0.5
    _printed = ("*lambd",)


class Hardshrink(_Shrink, function=functional.hardshrink): ...
class Softshrink(_Shrink, function=functional.softshrink): ...


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


# ---- along an axis ----
class GLU(Layer, function=functional.glu):
    dim: int = -1


class _AlongAxis(Layer):
    dim: int | None = None


class Softmax(_AlongAxis, function=functional.softmax): ...
class LogSoftmax(_AlongAxis, function=functional.log_softmax): ...
class Softmin(_AlongAxis, function=functional.softmin): ...


class Softmax2d(Module):
    """exp(x) / sum(exp(x)) over the channels at each pixel of (n, c, h, w) or (c, h, w).

    >>> genesis.nn.Softmax2d()(genesis.zeros(4, 1, 1)).reshape(-1)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The same shape. Raises ValueError for other ranks."""
        if input.ndim not in (3, 4):
            raise ArgumentError(f"Softmax2d: input must be (n, c, h, w) or (c, h, w), got shape {input.shape}")
        return functional.softmax(input, -3)
