"""Activations made of pieces of lines."""

from __future__ import annotations

from typing import Any

from genesis.functions.creation import full
from genesis.nn import functional
from genesis.nn.in_place import InPlace
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor

__all__ = [
    "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "PReLU", "ReLU6", "Softshrink", "Threshold",
]


class LeakyReLU(InPlace):
    """x where positive, `negative_slope` * x elsewhere.

    >>> import genesis
    >>> genesis.nn.LeakyReLU()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.0100,  0.2500,  8.0000])
    """

    _printed = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return functional.leaky_relu(input, self.negative_slope, inplace=self.inplace)


class ReLU6(InPlace):
    """x held within [0, 6].

    >>> import genesis
    >>> genesis.nn.ReLU6()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([0.0000, 0.2500, 6.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu6(input, inplace=self.inplace)


class Hardsigmoid(InPlace):
    """(x + 3) / 6 held within [0, 1].

    >>> import genesis
    >>> genesis.nn.Hardsigmoid()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([0.3333, 0.5417, 1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardsigmoid(input, inplace=self.inplace)


class Hardswish(InPlace):
    """x * hardsigmoid(x).

    >>> import genesis
    >>> genesis.nn.Hardswish()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.3333,  0.1354,  8.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardswish(input, inplace=self.inplace)


class Hardtanh(InPlace):
    """x held within [min_val, max_val].

    >>> import genesis
    >>> genesis.nn.Hardtanh()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-1.0000,  0.2500,  1.0000])
    """

    _printed = "min_val", "max_val"

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardtanh(input, self.min_val, self.max_val, inplace=self.inplace)


class Hardshrink(Module):
    """x, but 0 within [-lambd, lambd].

    >>> import genesis
    >>> genesis.nn.Hardshrink()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-1.,  0.,  8.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The settings."""
        return str(self.lambd)


class Softshrink(Module):
    """x brought nearer to 0 by `lambd`.

    >>> import genesis
    >>> genesis.nn.Softshrink()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.5000,  0.0000,  7.5000])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The settings."""
        return str(self.lambd)


class Threshold(InPlace):
    """x where it exceeds `threshold`, `value` elsewhere.

    >>> import genesis
    >>> genesis.nn.Threshold(0.5, 20.0)(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([20., 20.,  8.])
    """

    _printed = "threshold", "value"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return functional.threshold(input, self.threshold, self.value, inplace=self.inplace)


class PReLU(Module):
    """x where positive, `weight` * x elsewhere; one weight is learned, or one for each channel (axis 1).

    >>> import genesis
    >>> genesis.nn.PReLU()(genesis.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    _printed = ("num_parameters",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.prelu(input, self.weight)
