"""Embedding: rows of a table, selected by integers, singly or in bags."""

from __future__ import annotations

from typing import Any, Self

from genesis.functions.creation import empty
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError, FormError
from genesis.nn import functional, init
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """A table of rows, `weight` (num_embeddings, embedding_dim): `given`, or normal with zeros in the row `padding_idx`."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, given: Tensor | None, freeze: bool,
        device: DeviceLike, dtype: DType | None,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            name = type(self).__name__
            raise FormError(f"{name}: padding_idx {padding_idx} is outside a table of {num_embeddings} entries")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        if given is not None:
            if given.shape != (num_embeddings, embedding_dim):
                want = num_embeddings, embedding_dim
                raise ArgumentError(f"{type(self).__name__}: _weight has shape {given.shape}; want {want}")
            self.weight = Parameter(given, not freeze and given.dtype.category >= 2)
            return
        self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype), not freeze)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the table."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **settings: Any) -> Self:
        """A module whose weight shares its memory with `embeddings` (entries, width), and is not trained with `freeze`.

        The `settings` are the module's other arguments. Raises ValueError for another shape.
        """
        if embeddings.ndim != 2:
            raise ArgumentError(f"{cls.__name__}: embeddings have shape {embeddings.shape}; want (entries, width)")
        entries, width = embeddings.shape
        settings |= {"_weight": embeddings}
        module = cls(entries, width, **settings)
        module.weight.requires_grad = not freeze
        return module

    def extra_repr(self) -> str:
        more = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{more}"


class Embedding(_Table):
    """Integers (..) -> rows (.., embedding_dim) of `weight` (num_embeddings, embedding_dim), initialized normally.

    The row `padding_idx` starts as zeros and gets no gradient; `max_norm`, `norm_type`, `scale_grad_by_freq` and `sparse` as in
    `nn.functional.embedding`. Raises ValueError for a row outside the table.

    >>> genesis.nn.Embedding(10, 3)(genesis.tensor([1, 5, 1])).shape
    (3, 3)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse

    def forward(self, input: Tensor) -> Tensor:
        """`input` integers of any shape; one outside the table raises IndexError when evaluated."""
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)


class EmbeddingBag(_Table):
    """Bags of integers -> the sums, means or maxima of their rows of `weight` (num_embeddings, embedding_dim).

    The settings are those of `nn.functional.embedding_bag`. Raises ValueError for another mode and for a padding_idx outside
    the table.

    >>> genesis.nn.EmbeddingBag(10, 3)(genesis.tensor([1, 5, 1, 7]), genesis.tensor([0, 3])).shape
    (2, 3)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        if mode not in ("sum", "mean", "max"):
            raise ArgumentError(f"EmbeddingBag: mode must be 'sum', 'mean' or 'max', got {mode!r}")
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)
        self.max_norm, self.norm_type, self.mode = max_norm, norm_type, mode
        self.scale_grad_by_freq, self.sparse, self.include_last_offset = scale_grad_by_freq, sparse, include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """`input` (bags, n), or (n,) with the `offsets` at which bags begin; (bags, embedding_dim)."""
        return functional.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
