"""Losses of margins."""

from __future__ import annotations

from collections.abc import Callable

from genesis.nn import functional
from genesis.nn.layer import KW_ONLY
from genesis.nn.loss import Loss, WeightedLoss
from genesis.tensor.handle import Tensor

__all__ = [
    "CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]


class MarginRankingLoss(Loss, function=functional.margin_ranking_loss):
    margin: float = 0.0
    reduction: str = "mean"


class HingeEmbeddingLoss(Loss, function=functional.hinge_embedding_loss):
    margin: float = 1.0
    reduction: str = "mean"


class SoftMarginLoss(Loss, function=functional.soft_margin_loss):
    reduction: str = "mean"


class CosineEmbeddingLoss(Loss, function=functional.cosine_embedding_loss):
    margin: float = 0.0
    reduction: str = "mean"


class TripletMarginLoss(Loss, function=functional.triplet_margin_loss):
    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    reduction: str = "mean"


class MultiMarginLoss(WeightedLoss, function=functional.multi_margin_loss):
    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    reduction: str = "mean"


class MultiLabelMarginLoss(Loss, function=functional.multilabel_margin_loss):
    reduction: str = "mean"


class MultiLabelSoftMarginLoss(WeightedLoss, function=functional.multilabel_soft_margin_loss):
    weight: Tensor | None = None
    reduction: str = "mean"


class TripletMarginWithDistanceLoss(Loss, function=functional.triplet_margin_with_distance_loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance d, the Euclidean one if None.

    >>> from genesis import nn, tensor
    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1))
    >>> loss(tensor([[0.0]]), tensor([[3.0]]), tensor([[1.0]]))
    tensor(3.)
    """

    _: KW_ONLY
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"
