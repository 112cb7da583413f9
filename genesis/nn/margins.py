"""Losses of counts, of normal distributions and of margins, as modules."""

from __future__ import annotations

from collections.abc import Callable

from genesis.nn import functional
from genesis.nn.loss import Loss, WeightedLoss
from genesis.tensor.handle import Tensor

__all__ = [
    "GaussianNLLLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "PoissonNLLLoss",
    "TripletMarginWithDistanceLoss",
]


class PoissonNLLLoss(Loss):
    """rate - target * log(rate), for a Poisson distribution of the rate exp(input), or `input` without `log_input`.

    >>> import genesis
    >>> genesis.nn.PoissonNLLLoss(log_input=False)(genesis.tensor([1.0, 1.0]), genesis.tensor([2.0, 3.0]))
    tensor(1.)
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.poisson_nll_loss`."""
        return functional.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(Loss):
    """(log(var) + (input - target)^2 / var) / 2, for a normal distribution; with `full`, log(2 pi) / 2 more.

    >>> import genesis
    >>> genesis.nn.GaussianNLLLoss()(genesis.tensor([1.0]), genesis.tensor([3.0]), genesis.tensor([1.0]))
    tensor(2.)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        """See `nn.functional.gaussian_nll_loss`."""
        return functional.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class MultiMarginLoss(WeightedLoss):
    """The mean over classes of max(0, margin - input[target] + input[class])^p, the target's own left out.

    >>> import genesis
    >>> genesis.nn.MultiMarginLoss()(genesis.tensor([[1.0, 0.5]]), genesis.tensor([0]))
    tensor(0.2500)
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.multi_margin_loss`."""
        return functional.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """`MultiMarginLoss` with several targets for each row: those before the first -1.

    >>> import genesis
    >>> genesis.nn.MultiLabelMarginLoss()(genesis.tensor([[1.0, 0.5]]), genesis.tensor([[0, -1]]))
    tensor(0.2500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.multilabel_margin_loss`."""
        return functional.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The mean over classes (the last axis) of the binary cross entropy of sigmoid(input), times `weight`.

    >>> import genesis
    >>> genesis.nn.MultiLabelSoftMarginLoss()(genesis.zeros(1, 2), genesis.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.multilabel_soft_margin_loss`."""
        return functional.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class TripletMarginWithDistanceLoss(Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) of the distance d, the Euclidean one if None.

    >>> from genesis import nn, tensor
    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1))
    >>> loss(tensor([[0.0]]), tensor([[3.0]]), tensor([[1.0]]))
    tensor(3.)
    """

    def __init__(
        self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
        swap: bool = False, reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """See `nn.functional.triplet_margin_with_distance_loss`."""
        return functional.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )
