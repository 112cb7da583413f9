"""Activations as modules."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.module import Module
from genesis.tensor import Tensor

__all__ = ["GELU", "ReLU", "SiLU", "Sigmoid", "Softmax", "Tanh"]


class ReLU(Module):
    """max(x, 0).

    >>> import genesis
    >>> genesis.nn.ReLU()(genesis.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.relu(input)


class GELU(Module):
    """x * Phi(x), or with `approximate="tanh"` its tanh formula (Hendrycks and Gimpel, 2016)."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """The formula."""
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """x * sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.silu(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.sigmoid(input)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The axis."""
        return f"dim={self.dim}"
