"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from genesis.ir.annotations import Options
from genesis.optim.lr_scheduler.plateau import ReduceLROnPlateau
from genesis.optim.lr_scheduler.scheduler import LRScheduler
from genesis.optim.optimizer import Optimizer, State


class _Composed(LRScheduler):
    """Schedulers of one optimizer."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        for number, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{name}: scheduler {number} is a ReduceLROnPlateau, whose step() wants a metric")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"{name}: scheduler {number} belongs to another optimizer; want one for all")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)

    def state_dict(self) -> State:
        """The schedules' states."""
        state = super().state_dict()
        del state["_schedulers"]
        return {**state, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: Options) -> None:
        """Resume the schedules of `state_dict`."""
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})


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

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next step and set the learning rates. Raises ValueError for an `epoch`: jumps are not supported."""
        if epoch is not None:
            raise ValueError("SequentialLR: step() takes no epoch")
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

    def step(self, epoch: int | None = None) -> None:
        """Advance each scheduler. Raises ValueError for an `epoch`: jumps are not supported."""
        if epoch is not None:
            raise ValueError("ChainedScheduler: step() takes no epoch")
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()
