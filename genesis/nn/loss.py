"""Losses as modules."""

from __future__ import annotations

from typing import Any

from genesis.ir.shapes import numel
from genesis.nn import functional
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.nn.sequences import LinearCrossEntropyOptions
from genesis.tensor.handle import Tensor

__all__ = [
    "CTCLoss", "CrossEntropyLoss", "L1Loss", "LinearCrossEntropyLoss", "Loss", "MSELoss", "NLLLoss", "WeightedLoss",
]


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


class CTCLoss(Loss):
    """-log of the probability of label sequences, summed over all alignments: see `nn.functional.ctc_loss`.

    >>> import genesis
    >>> log_probs = genesis.full((3, 1, 2), 0.5).log()
    >>> genesis.nn.CTCLoss(reduction="sum")(log_probs, genesis.tensor([[1]]), [3], [1])
    tensor(0.2877)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """`log_probs` (time, n, classes), `targets` (n, s), lengths (n,)."""
        return functional.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


class LinearCrossEntropyLoss(WeightedLoss):
    """`CrossEntropyLoss` of a `Linear` layer's outputs, `num_classes` for each of `out_features`.

    With `options`, logits are never kept: see `nn.functional.linear_cross_entropy`.

    >>> import genesis
    >>> loss = genesis.nn.LinearCrossEntropyLoss(2, 3, options=genesis.nn.LinearCrossEntropyOptions())
    >>> loss(genesis.zeros(4, 2), genesis.tensor([0, 1, 2, 0]))
    tensor(1.0986, grad_fn=<DivBackward>)
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device: Any = None,
        dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None, ignore_index: int | None = None,
        label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__(weight, reduction)
        self.out_features = tuple(out_features)
        self.linear = Linear(in_features, num_classes * numel(self.out_features), bias, device, dtype)
        self.num_classes = num_classes
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """`input` (n, in_features), `target` (n, *out_features), or probabilities (n, num_classes, *out_features)."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return functional.linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, -1), target, linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options)
