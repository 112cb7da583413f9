"""The base of learning-rate schedulers: a count of steps, and the learning rates of each."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TypeVar

from genesis.ir.annotations import Options
from genesis.optim.optimizer import Optimizer, State

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
        """The schedule's state, without functions."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: Options) -> None:
        """Resume the schedule of `state_dict`."""
        self.__dict__.update(state_dict)


def per_group(schedule: str, name: str, optimizer: Optimizer, value: T | Sequence[T]) -> list[T]:
    """One value for each group: a number for all, or a list."""
    groups = len(optimizer.param_groups)
    values = list(value) if isinstance(value, Sequence) else [value] * groups
    if len(values) != groups:
        raise ValueError(f"{schedule}: {name} has {len(values)} values for {groups} groups; want one for each")
    return values
