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

    The row `padding_idx` starts as zeros and gets no gradient. Raises ValueError for one outside the table.

    >>> import genesis
    >>> genesis.nn.Embedding(10, 3)(genesis.tensor([1, 5, 1])).shape
    (3, 3)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, device: Any = None, dtype: Any = None
    ) -> None:
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx {padding_idx} is outside a table of {num_embeddings} entries")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(self, input: Tensor) -> Tensor:
        """`input` integers of any shape; one outside the table raises IndexError when the values are computed."""
        return functional.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """The table's extents, and the row that stays."""
        more = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{more}"
