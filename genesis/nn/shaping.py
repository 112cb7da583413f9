"""Modules that only change the shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.nn.module import Module
from genesis.tensor.handle import Tensor
from genesis.tensor.views import view

__all__ = ["Flatten", "Identity", "Unflatten"]


class Flatten(Module):
    """The axes from `start_dim` to `end_dim` joined into one.

    >>> import genesis
    >>> genesis.nn.Flatten()(genesis.ones(2, 3, 4)).shape
    (2, 12)
    """

    _printed = "start_dim", "end_dim"

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """(a, b, c, ..) -> (a, b*c*..) with the default axes."""
        return view(input, "flatten", self.start_dim, self.end_dim)


class Unflatten(Module):
    """Axis `dim` split into `unflattened_size`.

    >>> import genesis
    >>> genesis.nn.Unflatten(1, (2, 3))(genesis.ones(4, 6)).shape
    (4, 2, 3)
    """

    _printed = "dim", "unflattened_size"

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """(.., n, ..) -> (.., *unflattened_size, ..)."""
        return view(input, "unflatten", self.dim, self.unflattened_size)


class Identity(Module):
    """What comes in goes out.

    >>> import genesis
    >>> genesis.nn.Identity()(genesis.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass  # whatever the layer that it stands for was given

    def forward(self, input: Tensor) -> Tensor:
        """`input` itself."""
        return input
