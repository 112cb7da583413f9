"""Distances."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.layer import Layer
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Layer, function=functional.cosine_similarity):
    dim: int = 1
    eps: float = 1e-08
    _printed = ()


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> genesis.nn.PairwiseDistance(eps=0.0)(genesis.zeros(1, 2), genesis.tensor([[3.0, 4.0]]))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The two tensors broadcast; the result lacks the last axis."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
