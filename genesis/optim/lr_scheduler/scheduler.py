"""The base of learning-rate schedulers, schedules of schedules, and one by a metric."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from types import FunctionType
from typing import Any, TypeVar

from genesis.ir.annotations import Options
from genesis.optim.optimizer import Optimizer, State
from genesis.tensor.handle import Tensor

T = TypeVar("T")


class LRScheduler:
    """The base of schedulers. Subclasses compute the learning rates of step `last_epoch` in `get_lr`.

    Args:
        optimizer: its groups' "lr" is set, now and at every `step()`.
        last_epoch: the step to resume after; -1 to begin.

    Raises TypeError unless `optimizer` is an optimizer, KeyError for resuming a schedule that never began.

    >>> class Harmonic(LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / (1 + self.last_epoch) for lr in self.base_lrs]
    >>> scheduler = Harmonic(genesis.optim.SGD([genesis.ones(1)], lr=1.0))
    >>> scheduler.get_last_lr()
    [1.0]
    """

    _apart = ""  # an attribute of functions or schedules: state dicts have the states of these instead
    _is_initial = False  # while the constructor sets the first learning rate
    _step_count: int

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{name}: wants an Optimizer, got {type(optimizer).__name__}")
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"{name}: last_epoch is {last_epoch}, but a group has no 'initial_lr' to resume from")
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._begin()

    def _begin(self) -> None:
        """Set the first learning rates."""
        self._step_count = 0
        self._is_initial, self._get_lr_called_within_step = True, False
        self.step()
        self._is_initial = False

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next step, or to step `epoch`, and set the learning rates."""
        if self._step_count == 1 and not self.optimizer.has_stepped:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first learning rate is never used; call "
                "them in the opposite order", stacklevel=2,
            )
        self._step_count += 1
        self._go_to(epoch)

    def _go_to(self, epoch: int | None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self.lr_at_last_epoch())

    def _set(self, rates: list[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr
        self._last_lr = list(rates)

    def get_lr(self) -> list[float]:
        """The groups' learning rates at `last_epoch`; it may build on the current ones."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def lr_at_last_epoch(self) -> list[float]:
        """The groups' learning rates at `last_epoch` in closed form, for `step(epoch)`."""
        return self.get_lr()

    def get_last_lr(self) -> list[float]:
        """The learning rates set last."""
        return self._last_lr

    def _rates(self) -> list[float]:
        """The groups' current learning rates."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> State:
        """The schedule's state, with the attributes of callable objects but without functions."""
        state = {name: value for name, value in vars(self).items() if name not in ("optimizer", self._apart)}
        return {**state, self._apart: _state_of(vars(self)[self._apart])} if self._apart else state

    def load_state_dict(self, state_dict: Options) -> None:
        """Resume the schedule of `state_dict`, with this one's functions."""
        vars(self).update({name: value for name, value in state_dict.items() if name != self._apart})
        if self._apart in state_dict:
            _restore(vars(self)[self._apart], state_dict[self._apart])


def _state_of(part: Any) -> Any:
    """The state of a schedule, of a callable object, or of each in a list; functions have none."""
    if isinstance(part, list):
        return [*map(_state_of, part)]
    if isinstance(part, LRScheduler):
        return part.state_dict()
    return None if part is None or isinstance(part, FunctionType) else dict(vars(part))


def _restore(part: Any, state: Any) -> None:
    """Give it the state that `_state_of` took."""
    if isinstance(part, list):
        for one, own in zip(part, state, strict=True):
            _restore(one, own)
    elif isinstance(part, LRScheduler):
        part.load_state_dict(state)
    elif state:
        vars(part).update(state)


def per_group(schedule: str, name: str, optimizer: Optimizer, value: T | Sequence[T]) -> list[T]:
    """One value for each group: a number for all, or a list."""
    groups = len(optimizer.param_groups)
    values = list(value) if isinstance(value, Sequence) else [value] * groups
    if len(values) != groups:
        raise ValueError(f"{schedule}: {name} has {len(values)} values for {groups} groups; want one for each")
    return values


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


class _Composed(LRScheduler):
    """Schedulers of one optimizer."""

    _apart = "_schedulers"

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        for number, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{name}: scheduler {number} is a ReduceLROnPlateau, whose step() wants a metric")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"{name}: scheduler {number} belongs to another optimizer; want one for all")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)


class SequentialLR(_Composed):
    """One scheduler after the other: the next one begins, at its step 0, at each of the steps `milestones`.

    Raises ValueError unless there is one milestone less than schedulers.

    >>> from genesis.optim import lr_scheduler
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0)
    >>> warmup = lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=10)
    >>> decay = lr_scheduler.CosineAnnealingLR(optimizer, T_max=90)
    >>> SequentialLR(optimizer, [warmup, decay], milestones=[10]).get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if not schedulers or len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(schedulers)} schedulers and {len(milestones)} milestones; want one milestone less"
            )
        super().__init__(optimizer, schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._take_back()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._begin()
        self._last_lr = first.get_last_lr()

    def _take_back(self) -> None:
        """Undo the step that each scheduler's constructor took."""
        for scheduler in self._schedulers:
            if isinstance(scheduler, SequentialLR):
                scheduler._take_back()
            else:
                scheduler.last_epoch -= 1

    def _begin(self) -> None:
        self._schedulers[0]._begin()

    def step(self) -> None:  # type: ignore[override]
        """Advance to the next step and set the learning rates."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number and self._milestones[number - 1] == self.last_epoch:
            scheduler._go_to(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """All schedulers at every step, each applied to the result of the one before. Raises ValueError for an empty list.

    >>> from genesis.optim import lr_scheduler
    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0)
    >>> both = [lr_scheduler.ConstantLR(optimizer, factor=0.5), lr_scheduler.ExponentialLR(optimizer, gamma=0.9)]
    >>> ChainedScheduler(both).get_last_lr()
    [0.5]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler: wants one scheduler at least")
        super().__init__(optimizer or schedulers[0].optimizer, schedulers)
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Advance each scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()
