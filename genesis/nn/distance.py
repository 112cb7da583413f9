"""Distances, and a product of two inputs, as modules."""

from __future__ import annotations

import math

from genesis.functions.creation import empty
from genesis.ir.dtypes import DType
from genesis.nn import functional, init
from genesis.nn.layer import Layer
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor

__all__ = ["Bilinear", "CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Layer):
    """x1 . x2 / (|x1| |x2|) along `dim`.

    >>> import genesis
    >>> genesis.nn.CosineSimilarity()(genesis.tensor([[3.0, 4.0]]), genesis.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """

    dim: int = 1
    eps: float = 1e-08
    function = functional.cosine_similarity
    _printed = ()


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> import genesis
    >>> genesis.nn.PairwiseDistance(eps=0.0)(genesis.zeros(1, 2), genesis.tensor([[3.0, 4.0]]))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors that broadcast; without the last axis."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class Bilinear(Module):
    """x1 @ weight[k] @ x2 + bias[k] for each k of the output; `weight` is (out_features, in1_features, in2_features).

    >>> import genesis
    >>> genesis.nn.Bilinear(2, 3, 4)(genesis.ones(5, 2), genesis.ones(5, 3)).shape
    (5, 4)
    """

    _printed = "in1_features", "in2_features", "out_features", "bias"

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, dtype: DType | None = None
    ) -> None:
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, dtype=dtype))
        self.bias = Parameter(empty(out_features, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew: uniform in +-1/sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """`input1` (.., in1_features), `input2` (.., in2_features) -> (.., out_features)."""
        return functional.bilinear(input1, input2, self.weight, self.bias)
