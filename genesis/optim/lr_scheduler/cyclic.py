"""Cycles between two learning rates (Smith, 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from genesis.optim.lr_scheduler.one_cycle import check_momentum, set_momentum
from genesis.optim.lr_scheduler.scheduler import LRScheduler, per_group
from genesis.optim.optimizer import Optimizer, State

__all__ = ["CyclicLR"]


class CyclicLR(LRScheduler):
    """From `base_lr` up to `max_lr` and down again, over and over; momentum the other way round.

    Args:
        optimizer: whose groups' "lr", and "momentum" or first beta, are set.
        base_lr, max_lr: the ends, one for all groups or one for each.
        step_size_up, step_size_down: the steps of a way up, and of one down (as many, if None).
        mode: "triangular", cycles of one height; "triangular2", each half as high as the last; "exp_range", of the height
            gamma^step.
        gamma: see `mode`.
        scale_fn: the height, in place of `mode`: a function of the cycle's number or of the step.
        scale_mode: "cycle" or "iterations", what scale_fn is given.
        cycle_momentum: whether momentum goes from `max_momentum` down to `base_momentum` and back.
        last_epoch: the step to resume after; -1 to begin.

    Raises ValueError for another mode without a scale_fn, and for an optimizer without the momentum to cycle.

    >>> import genesis
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0, momentum=0.9)
    >>> CyclicLR(optimizer, base_lr=0.125, max_lr=0.5, step_size_up=10).get_last_lr()
    [0.125]
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
        step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9, last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', got {mode!r}")
        check_momentum("CyclicLR", optimizer, cycle_momentum)
        self.max_lrs = per_group("CyclicLR", "max_lr", optimizer, max_lr)
        lows, highs = (per_group("CyclicLR", "momentum", optimizer, m) for m in (base_momentum, max_momentum))
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self.scale_mode = mode, gamma, scale_mode
        self.cycle_momentum = cycle_momentum
        self._scale_fn = scale_fn
        if last_epoch == -1:
            firsts = per_group("CyclicLR", "base_lr", optimizer, base_lr)
            for group, first, low, high in zip(optimizer.param_groups, firsts, lows, highs, strict=True):
                group.update(lr=first, initial_lr=first)
                if cycle_momentum:
                    group.update(base_momentum=low, max_momentum=high)
                    set_momentum(group, high)
        super().__init__(optimizer, last_epoch)

    def _height(self, cycle: float) -> float:
        if self._scale_fn is not None:
            return self._scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.mode == "exp_range":
            return float(self.gamma**self.last_epoch)
        return 1 / 2.0 ** (cycle - 1) if self.mode == "triangular2" else 1.0

    def get_lr(self) -> list[float]:
        """The learning rates of this step of the cycle; sets the momentum too."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        along = 1 + self.last_epoch / self.total_size - cycle
        up = along / self.step_ratio if along <= self.step_ratio else (along - 1) / (self.step_ratio - 1)
        share = up * self._height(cycle)
        for group in self.optimizer.param_groups if self.cycle_momentum else ():
            set_momentum(group, group["max_momentum"] - (group["max_momentum"] - group["base_momentum"]) * share)
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> State:
        """The schedule's state, without its function."""
        return {name: value for name, value in super().state_dict().items() if name != "_scale_fn"}
