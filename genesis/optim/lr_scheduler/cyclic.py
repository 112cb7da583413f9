"""Schedules along a cosine (Loshchilov and Hutter, 2017), and in cycles: over and over (Smith, 2017), or in one (Smith and
Topin, 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from genesis.optim.lr_scheduler.scheduler import LRScheduler, per_group
from genesis.optim.optimizer import Group, Optimizer


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


_PHASE = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")  # the keys of a phase


class CyclicLR(LRScheduler):
    """From `base_lr` up to `max_lr` and down again, repeatedly; momentum moves in the opposite direction.

    Args:
        optimizer: whose groups' "lr", and "momentum" or first beta, are set.
        base_lr, max_lr: the ends, one for all groups or one for each.
        step_size_up, step_size_down: the number of steps up, and down (by default the same).
        mode: "triangular" has constant height; "triangular2" halves it each cycle; "exp_range" has the height gamma^step.
        gamma: see `mode`.
        scale_fn: the height, instead of `mode`: a function of the cycle's number or of the step.
        scale_mode: "cycle" or "iterations": the argument of scale_fn.
        cycle_momentum: whether momentum goes from `max_momentum` down to `base_momentum` and back.
        last_epoch: the step to resume after; -1 to begin.

    Raises ValueError for another mode without a scale_fn, and for an optimizer without the momentum to cycle.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0, momentum=0.9)
    >>> CyclicLR(optimizer, base_lr=0.125, max_lr=0.5, step_size_up=10).get_last_lr()
    [0.125]
    """

    _apart = "_scale_fn_custom"

    def __init__(
        self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
        step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9, last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', got {mode!r}")
        _check_momentum("CyclicLR", optimizer, cycle_momentum)
        self.max_lrs = per_group("CyclicLR", "max_lr", optimizer, max_lr)
        lows, highs = (per_group("CyclicLR", "momentum", optimizer, m) for m in (base_momentum, max_momentum))
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        self._scale_fn_custom = scale_fn
        if cycle_momentum:
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums, self.max_momentums = lows, highs
        firsts = per_group("CyclicLR", "base_lr", optimizer, base_lr)
        for group, first, low, high in zip(optimizer.param_groups, firsts, lows, highs, strict=True):
            if cycle_momentum:
                group.update(max_momentum=high, base_momentum=low)
                if last_epoch == -1:
                    _set_momentum(group, high)
            if last_epoch == -1:
                group.update(lr=first, initial_lr=first)
        super().__init__(optimizer, last_epoch)

    def _height(self, cycle: float) -> float:
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(cycle if self.scale_mode == "cycle" else self.last_epoch)
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
            _set_momentum(group, group["max_momentum"] - (group["max_momentum"] - group["base_momentum"]) * share)
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


class OneCycleLR(LRScheduler):
    """From max_lr / div_factor up to `max_lr` and down to the first / final_div_factor; momentum moves in the opposite
    direction.

    Args:
        optimizer: whose groups' "lr", and "momentum" or first beta, are set.
        max_lr: the top, one for all groups or one for each.
        total_steps: the length of the cycle; or `epochs` times `steps_per_epoch`.
        pct_start: the fraction of steps that go up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether momentum goes from `max_momentum` down to `base_momentum` and back.
        div_factor, final_div_factor: max_lr / div_factor is the first rate; that / final_div_factor is the last.
        three_phase: come down to the first learning rate as fast as up, then on to the last one.
        last_epoch: the step to resume after; -1 to begin.

    Raises ValueError for invalid settings, and for a step beyond the last.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0, momentum=0.9)
    >>> OneCycleLR(optimizer, max_lr=0.5, total_steps=10, div_factor=4).get_last_lr()
    [0.125]
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: wants total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise ValueError(f"OneCycleLR: total_steps is {total_steps}; want 1 or more")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: pct_start is {pct_start}; want it in [0, 1]")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        _check_momentum("OneCycleLR", optimizer, cycle_momentum)
        self.total_steps = total_steps
        phases = [(pct_start * total_steps - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            phases += [(2 * pct_start * total_steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                       (total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            phases += [(total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(_PHASE, phase, strict=True)) for phase in phases]
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = "betas" in optimizer.defaults
        if last_epoch == -1:
            tops = per_group("OneCycleLR", "max_lr", optimizer, max_lr)
            lows, highs = (per_group("OneCycleLR", "momentum", optimizer, m) for m in (base_momentum, max_momentum))
            for group, top, low, high in zip(optimizer.param_groups, tops, lows, highs, strict=True):
                first = top / div_factor
                group.update(initial_lr=first, max_lr=top, min_lr=first / final_div_factor)
                if cycle_momentum:
                    group.update(max_momentum=high, base_momentum=low)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The learning rates of this step of its phase; sets the momentum too."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} is beyond the last of {self.total_steps}")
        phases = self._schedule_phases
        number = next((n for n, phase in enumerate(phases) if step <= phase["end_step"]), len(phases) - 1)
        start = phases[number - 1]["end_step"] if number else 0.0
        end, *names = phases[number].values()
        part = (step - start) / (end - start)
        for group in self.optimizer.param_groups if self.cycle_momentum else ():
            _set_momentum(group, self._between(group[names[2]], group[names[3]], part))
        return [self._between(group[names[0]], group[names[1]], part) for group in self.optimizer.param_groups]

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return _between(end, start, part)


def _check_momentum(schedule: str, optimizer: Optimizer, cycle_momentum: bool) -> None:
    """Raise ValueError if momentum is to be cycled and the optimizer has none."""
    if cycle_momentum and not optimizer.defaults.keys() & {"momentum", "betas"}:
        raise ValueError(f"{schedule}: the optimizer has no momentum to cycle; want cycle_momentum=False")


def _set_momentum(group: Group, value: float) -> None:
    """Set the momentum, or the first beta, of a group."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value
