"""Schedules along a cosine (Loshchilov and Hutter, 2017)."""

from __future__ import annotations

import math

from genesis.optim.lr_scheduler.scheduler import LRScheduler
from genesis.optim.optimizer import Optimizer


def _between(low: float, high: float, turn: float) -> float:
    """From `high` (turn 0) to `low` (turn 1) along half a cosine."""
    return low + (high - low) * (1 + math.cos(math.pi * turn)) / 2


class CosineAnnealingLR(LRScheduler):
    """From the first learning rate down to `eta_min` at step `T_max`, and up again after it.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> CosineAnnealingLR(optimizer, T_max=100).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Multiplies the distance to eta_min by the ratio of this step's cosine to the last one's."""
        step, total = self.last_epoch, self.T_max
        if self._is_initial:
            return self._rates()
        if (step - 1 - total) % (2 * total) == 0:  # the last step's cosine is 0
            return [
                lr + (base - self.eta_min) * (1 - math.cos(math.pi / total)) / 2
                for base, lr in zip(self.base_lrs, self._rates(), strict=True)
            ]
        factor = (1 + math.cos(math.pi * step / total)) / (1 + math.cos(math.pi * (step - 1) / total))
        return [factor * (lr - self.eta_min) + self.eta_min for lr in self._rates()]

    def lr_at_last_epoch(self) -> list[float]:
        """eta_min + (base - eta_min) * (1 + cos(pi * step / T_max)) / 2."""
        return [_between(self.eta_min, base, self.last_epoch / self.T_max) for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """From the first learning rate down to `eta_min` over `T_0` steps, then restarting, each time over `T_mult` times as many.

    `step(epoch)` accepts fractions. Raises ValueError unless T_0 and T_mult are integers above 0.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> CosineAnnealingWarmRestarts(optimizer, T_0=10, T_mult=2).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"CosineAnnealingWarmRestarts: {name} is {value!r}; want an integer above 0")
        self.T_0 = T_0
        self.T_i = T_0  # the length of this period
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch  # the step within it
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """eta_min + (base - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2."""
        return [_between(self.eta_min, base, self.T_cur / self.T_i) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next step, or to `epoch`, and set the learning rates. Raises ValueError for a negative one."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: epoch is {epoch}; want 0 or more")
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
        else:
            epoch = epoch or 0
            self.T_i, self.T_cur = self.T_0, epoch
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())
