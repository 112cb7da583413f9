"""Activations as modules."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.in_place import InPlace
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

__all__ = ["GELU", "RReLU", "ReLU", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Tanh"]


class ReLU(InPlace):
    """max(x, 0).

    >>> import genesis
    >>> genesis.nn.ReLU()(genesis.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input, inplace=self.inplace)


class GELU(Module):
    """x * Phi(x), or with `approximate="tanh"` its tanh formula (Hendrycks and Gimpel, 2016).

    >>> import genesis
    >>> genesis.nn.GELU()(genesis.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """

    _printed = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.gelu(input, self.approximate)


class SiLU(InPlace):
    """x * sigmoid(x).

    >>> import genesis
    >>> genesis.nn.SiLU()(genesis.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.silu(input, inplace=self.inplace)


class Tanh(Module):
    """The hyperbolic tangent.

    >>> import genesis
    >>> genesis.nn.Tanh()(genesis.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> import genesis
    >>> genesis.nn.Sigmoid()(genesis.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.sigmoid(input)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`.

    >>> import genesis
    >>> genesis.nn.Softmax(dim=1)(genesis.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    _printed = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.softmax(input, self.dim)


class Softmax2d(Module):
    """exp(x) / sum(exp(x)) over the channels at each place of (n, c, h, w) or (c, h, w).

    >>> import genesis
    >>> genesis.nn.Softmax2d()(genesis.zeros(4, 1, 1)).reshape(-1)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The same shape. Raises ValueError for other ranks."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: input must be (n, c, h, w) or (c, h, w), got shape {input.shape}")
        return functional.softmax(input, -3)


class RReLU(InPlace):
    """x where positive, s * x elsewhere: s drawn from [lower, upper) while training, and the middle otherwise.

    >>> import genesis
    >>> genesis.nn.RReLU(0.25, 0.75).eval()(genesis.tensor([1.0, -2.0]))
    tensor([ 1., -1.])
    """

    _printed = "lower", "upper"

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        return functional.rrelu(input, self.lower, self.upper, self.training, inplace=self.inplace)
