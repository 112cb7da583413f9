"""Losses as modules."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.module import Module
from genesis.tensor import Tensor

__all__ = ["CrossEntropyLoss", "L1Loss", "Loss", "MSELoss", "NLLLoss", "WeightedLoss"]


class Loss(Module):
    """The base of losses: `reduction` is "mean", "sum" or "none"."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction


class WeightedLoss(Loss):
    """The base of losses with a factor for each class or element, which is a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self.register_buffer("weight", weight)
        self.reduction = reduction


class CrossEntropyLoss(WeightedLoss):
    """-log softmax(input)[target], classes on axis 1.

    Args:
        weight: a factor per class, of shape (classes,).
        ignore_index: the target that counts for nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: the share of the target spread over all classes.

    >>> import genesis
    >>> loss = genesis.nn.CrossEntropyLoss()
    >>> round(loss(genesis.zeros(4, 10), genesis.tensor([1, 2, 3, 4])).item(), 4)
    2.3026
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """`input` (rows, classes, ..), `target` int64 (rows, ..) or floating probabilities of the input's shape."""
        return functional.cross_entropy(
            input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(WeightedLoss):
    """-input[target] for log-probabilities, classes on axis 1; `weight` is a factor per class.

    >>> import genesis
    >>> logp = genesis.log_softmax(genesis.zeros(1, 4), dim=1)
    >>> genesis.nn.NLLLoss()(logp, genesis.tensor([2]))
    tensor(1.3863)
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """`input` (rows, classes, ..), `target` int64 (rows, ..)."""
        return functional.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class MSELoss(Loss):
    """(input - target)^2.

    >>> import genesis
    >>> genesis.nn.MSELoss()(genesis.tensor([1.0, 3.0]), genesis.tensor([1.0, 1.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return functional.mse_loss(input, target, self.reduction)


class L1Loss(Loss):
    """|input - target|.

    >>> import genesis
    >>> genesis.nn.L1Loss()(genesis.tensor([1.0, 3.0]), genesis.tensor([1.0, 1.0]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return functional.l1_loss(input, target, self.reduction)
