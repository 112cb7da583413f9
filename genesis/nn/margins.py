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


class MarginRankingLoss(Loss):
    """max(0, -t * (x1 - x2) + margin), for t of 1 or -1.

    >>> genesis.nn.MarginRankingLoss()(genesis.tensor([1.0]), genesis.tensor([3.0]), genesis.tensor([1]))
    tensor(2.)
    """

    margin: float = 0.0
    reduction: str = "mean"
    function = functional.margin_ranking_loss


class HingeEmbeddingLoss(Loss):
    """x where t is 1, max(0, margin - x) where it is -1.

    >>> genesis.nn.HingeEmbeddingLoss()(genesis.tensor([0.5, 0.25]), genesis.tensor([1, -1]))
    tensor(0.6250)
    """

    margin: float = 1.0
    reduction: str = "mean"
    function = functional.hinge_embedding_loss


class SoftMarginLoss(Loss):
    """log(1 + exp(-t * x)), for t of 1 or -1.

    >>> genesis.nn.SoftMarginLoss()(genesis.tensor([0.0]), genesis.tensor([1.0]))
    tensor(0.6931)
    """

    reduction: str = "mean"
    function = functional.soft_margin_loss


class CosineEmbeddingLoss(Loss):
    """1 - cos(x1, x2) where t is 1, max(0, cos(x1, x2) - margin) where it is -1.

    >>> genesis.nn.CosineEmbeddingLoss()(genesis.tensor([[3.0, 4.0]]), genesis.tensor([[4.0, 3.0]]), genesis.tensor([1]))
    tensor(0.0400)
    """

    margin: float = 0.0
    reduction: str = "mean"
    function = functional.cosine_embedding_loss


class TripletMarginLoss(Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), of p-norms.

    >>> genesis.nn.TripletMarginLoss()(genesis.tensor([[0.0]]), genesis.tensor([[2.0]]), genesis.tensor([[1.0]]))
    tensor(2.)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    reduction: str = "mean"
    function = functional.triplet_margin_loss


class MultiMarginLoss(WeightedLoss):
    """The mean over classes of max(0, margin - input[target] + input[class])^p, without the target's own.

    >>> genesis.nn.MultiMarginLoss()(genesis.tensor([[1.0, 0.5]]), genesis.tensor([0]))
    tensor(0.2500)
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    reduction: str = "mean"
    function = functional.multi_margin_loss


class MultiLabelMarginLoss(Loss):
    """`MultiMarginLoss` with several targets for each row: those before the first -1.

    >>> genesis.nn.MultiLabelMarginLoss()(genesis.tensor([[1.0, 0.5]]), genesis.tensor([[0, -1]]))
    tensor(0.2500)
    """

    reduction: str = "mean"
    function = functional.multilabel_margin_loss


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The mean over classes (the last axis) of the binary cross entropy of sigmoid(input), times `weight`.

    >>> genesis.nn.MultiLabelSoftMarginLoss()(genesis.zeros(1, 2), genesis.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    reduction: str = "mean"
    function = functional.multilabel_soft_margin_loss


class TripletMarginWithDistanceLoss(Loss):
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
    function = functional.triplet_margin_with_distance_loss
