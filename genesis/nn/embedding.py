"""Embedding: rows of a table, picked by integers."""

from __future__ import annotations

from typing import Any

from genesis.creation import empty
from genesis.nn import functional, init
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor import Tensor

__all__ = ["Embedding"]


class Embedding(Module):
    """Integers (..) -> rows (.., embedding_dim) of `weight` (num_embeddings, embedding_dim), which starts normal.

    >>> import genesis
    >>> genesis.nn.Embedding(10, 3)(genesis.tensor([1, 5, 1])).shape
    (3, 3)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = None) -> None:
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = Parameter(empty(num_embeddings, embedding_dim, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        init.normal_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """`input` integers of any shape; one outside the table raises IndexError when the values are computed."""
        return functional.embedding(input, self.weight)

    def extra_repr(self) -> str:
        """The table's extents."""
        return f"{self.num_embeddings}, {self.embedding_dim}"
