"""Dropout, of elements and of channels."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.module import Module
from genesis.tensor import Tensor

__all__ = ["Dropout", "Dropout1d", "Dropout2d"]


class Dropout(Module):
    """While training, zero each element with probability `p` and scale the others by 1/(1-p), in place if so asked.

    Raises ValueError for a `p` outside [0, 1].

    >>> import genesis
    >>> genesis.nn.Dropout(0.5).eval()(genesis.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: p is a probability, got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The probability, and whether the input is written to."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout1d(Dropout):
    """While training, zero each channel of (n, c, l) or (c, l) with probability `p` and scale the others by 1/(1-p).

    >>> import genesis
    >>> genesis.nn.Dropout1d(1.0)(genesis.ones(1, 1, 2))
    tensor([[[0., 0.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The same shape."""
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropout):
    """While training, zero each channel of (n, c, h, w) or (c, h, w) with probability `p`, scale the others by 1/(1-p).

    >>> import genesis
    >>> genesis.nn.Dropout2d(1.0)(genesis.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The same shape."""
        return functional.dropout2d(input, self.p, self.training, self.inplace)
