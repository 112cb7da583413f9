"""Modules that only change the shape."""

from __future__ import annotations

from genesis.nn.module import Module
from genesis.storage import view
from genesis.tensor import Tensor

__all__ = ["Flatten", "Identity"]


class Flatten(Module):
    """The axes from `start_dim` to `end_dim` joined into one.

    >>> import genesis
    >>> genesis.nn.Flatten()(genesis.ones(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """(a, b, c, ..) -> (a, b*c*..) with the default axes."""
        return view(input, "flatten", self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Identity(Module):
    """What comes in goes out.

    >>> import genesis
    >>> genesis.nn.Identity()(genesis.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`input` itself."""
        return input
