"""Losses that compare, as modules."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.loss import Loss, WeightedLoss
from genesis.tensor.handle import Tensor

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss",
    "MarginRankingLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
]


class SmoothL1Loss(Loss):
    """d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere, of d = input - target.

    >>> import genesis
    >>> genesis.nn.SmoothL1Loss()(genesis.tensor([0.5, 3.0]), genesis.tensor([0.0, 0.0]))
    tensor(1.3125)
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.smooth_l1_loss`."""
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """d^2 / 2 where |d| < delta, delta * (|d| - delta / 2) elsewhere, of d = input - target.

    >>> import genesis
    >>> genesis.nn.HuberLoss(delta=2.0)(genesis.tensor([0.5, 3.0]), genesis.tensor([0.0, 0.0]))
    tensor(2.0625)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.huber_loss`."""
        return functional.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(Loss):
    """target * (log(target) - input), for log-probabilities; `reduction` may be "batchmean" too.

    >>> import genesis
    >>> genesis.nn.KLDivLoss(reduction="batchmean")(genesis.zeros(1, 2), genesis.tensor([[0.5, 0.5]]))
    tensor(-0.6931)
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.kl_div`."""
        return functional.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(WeightedLoss):
    """-(t * log(x) + (1 - t) * log(1 - x)) for probabilities x.

    >>> import genesis
    >>> genesis.nn.BCELoss()(genesis.tensor([0.5, 0.25]), genesis.tensor([1.0, 0.0]))
    tensor(0.4904)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.binary_cross_entropy`."""
        return functional.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """BCELoss of sigmoid(x), without overflow; `pos_weight` is a factor of the first term.

    >>> import genesis
    >>> genesis.nn.BCEWithLogitsLoss()(genesis.tensor([0.0, -100.0]), genesis.tensor([1.0, 0.0]))
    tensor(0.3466)
    """

    pos_weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.binary_cross_entropy_with_logits`."""
        return functional.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class MarginRankingLoss(Loss):
    """max(0, -t * (x1 - x2) + margin), for t of 1 or -1.

    >>> import genesis
    >>> genesis.nn.MarginRankingLoss()(genesis.tensor([1.0]), genesis.tensor([3.0]), genesis.tensor([1]))
    tensor(2.)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.margin_ranking_loss`."""
        return functional.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(Loss):
    """x where t is 1, max(0, margin - x) where it is -1.

    >>> import genesis
    >>> genesis.nn.HingeEmbeddingLoss()(genesis.tensor([0.5, 0.25]), genesis.tensor([1, -1]))
    tensor(0.6250)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.hinge_embedding_loss`."""
        return functional.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(-t * x)), for t of 1 or -1.

    >>> import genesis
    >>> genesis.nn.SoftMarginLoss()(genesis.tensor([0.0]), genesis.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.soft_margin_loss`."""
        return functional.soft_margin_loss(input, target, reduction=self.reduction)


class CosineEmbeddingLoss(Loss):
    """1 - cos(x1, x2) where t is 1, max(0, cos(x1, x2) - margin) where it is -1.

    >>> import genesis
    >>> genesis.nn.CosineEmbeddingLoss()(genesis.tensor([[3.0, 4.0]]), genesis.tensor([[4.0, 3.0]]), genesis.tensor([1]))
    tensor(0.0400)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.cosine_embedding_loss`."""
        return functional.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), of p-norms.

    >>> import genesis
    >>> genesis.nn.TripletMarginLoss()(genesis.tensor([[0.0]]), genesis.tensor([[2.0]]), genesis.tensor([[1.0]]))
    tensor(2.)
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """See `nn.functional.triplet_margin_loss`."""
        return functional.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap, reduction=self.reduction
        )
