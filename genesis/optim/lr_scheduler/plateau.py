"""A schedule that reacts to a metric that stops improving."""

from __future__ import annotations

import math
from collections.abc import Sequence

from genesis.optim.lr_scheduler.scheduler import LRScheduler, per_group
from genesis.optim.optimizer import Optimizer
from genesis.tensor.handle import Tensor


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when the metric given to `step` has not improved for more than `patience` steps.

    Args:
        optimizer: whose groups' "lr" is set.
        mode: "min" if less is better, "max" if more is.
        factor: below 1.
        patience: the number of tolerated steps without improvement.
        threshold: the least improvement: relative to the best ("rel") or absolute ("abs"; `threshold_mode`).
        cooldown: the number of ignored steps after a reduction.
        min_lr: the least learning rate, one for all groups or one for each.
        eps: smaller reductions are skipped.

    Raises ValueError for other modes, a factor of 1 or more, and another number of min_lr than of groups.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0)
    >>> scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> for loss in (3.0, 2.0, 2.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float | Sequence[float] = 0, eps: float = 1e-8,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"ReduceLROnPlateau: wants an Optimizer, got {type(optimizer).__name__}")
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau: factor is {factor}; want it below 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: modes are {mode!r}, {threshold_mode!r}; want 'min' or 'max', 'rel' or 'abs'")
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = None if isinstance(min_lr, Sequence) else min_lr
        self.min_lrs = per_group("ReduceLROnPlateau", "min_lr", optimizer, min_lr)
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Tensor | float, epoch: int | None = None) -> None:  # type: ignore[override]
        """Set the learning rates by the metric, a number or a tensor of one element (which is read)."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            reduced = [max(lr * self.factor, least) for lr, least in zip(self._rates(), self.min_lrs, strict=True)]
            self._set([new if lr - new > self.eps else lr for lr, new in zip(self._rates(), reduced, strict=True)])
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        best = self.best * (1 - sign * self.threshold) if self.threshold_mode == "rel" else self.best - sign * self.threshold
        return sign * value < sign * best
