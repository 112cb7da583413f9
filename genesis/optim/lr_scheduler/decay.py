"""Schedules by a factor: a function of the step, or one that applies at some steps."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType

from genesis.ir.annotations import Options
from genesis.optim.lr_scheduler.scheduler import LRScheduler, per_group
from genesis.optim.optimizer import Optimizer, State


class LambdaLR(LRScheduler):
    """The first learning rate times `lr_lambda(step)`; one function, or one for each group.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> LambdaLR(optimizer, lambda step: 0.5 ** step).get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1
    ) -> None:
        self.lr_lambdas = per_group(type(self).__name__, "lr_lambda", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """base * lr_lambda(step)."""
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> State:
        """The schedule's state, with the attributes of callable objects but without functions."""
        states = [None if isinstance(f, FunctionType) else dict(vars(f)) for f in self.lr_lambdas]
        state = super().state_dict()
        del state["lr_lambdas"]
        return {**state, "lr_lambdas": states}

    def load_state_dict(self, state_dict: Options) -> None:
        """Resume the schedule of `state_dict` with this one's functions."""
        for function, state in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            vars(function).update(state or {})
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})


class MultiplicativeLR(LambdaLR):
    """Times `lr_lambda(step)` at every step but the first; one function, or one for each group.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> MultiplicativeLR(optimizer, lambda step: 0.95).get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[float]:
        """Times lr_lambda(step)."""
        if self._is_initial:
            return self._rates()
        return [lr * factor(self.last_epoch) for lr, factor in zip(self._rates(), self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` steps.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> StepLR(optimizer, step_size=30, gamma=0.1).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Times gamma at multiples of step_size."""
        now = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [lr * self.gamma if now else lr for lr in self._rates()]

    def lr_at_last_epoch(self) -> list[float]:
        """base * gamma^(step // step_size)."""
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each of the steps `milestones`.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> MultiStepLR(optimizer, [30, 80]).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Times gamma, as often as the step is listed."""
        times = self.milestones.get(self.last_epoch, 0)
        return [lr * self.gamma**times if times else lr for lr in self._rates()]

    def lr_at_last_epoch(self) -> list[float]:
        """base * gamma^(milestones passed)."""
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times `factor` for the first `total_iters` steps, then back to the original rate.

    Raises ValueError for a factor outside [0, 1].

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0)
    >>> ConstantLR(optimizer, factor=0.5).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor is {factor}; want it in [0, 1]")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Times factor at the first step, over factor at the last."""
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._rates()]
        done = self.last_epoch == self.total_iters and not self._is_initial
        return [lr / self.factor if done else lr for lr in self._rates()]

    def lr_at_last_epoch(self) -> list[float]:
        """base, times factor before step total_iters."""
        return [base * (self.factor if self.last_epoch < self.total_iters else 1.0) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Times a factor that goes linearly from `start_factor` to `end_factor` over `total_iters` steps.

    Raises ValueError for a start_factor outside (0, 1] or an end_factor outside [0, 1].

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0)
    >>> LinearLR(optimizer, start_factor=0.5).get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: factors are {start_factor} to {end_factor}; want (0, 1] to [0, 1]")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Times the quotient of this step's factor by the last one's."""
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        rise = self.end_factor - self.start_factor
        last = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [lr * (1.0 + rise / last) for lr in self._rates()]

    def lr_at_last_epoch(self) -> list[float]:
        """base times the factor."""
        rise = (self.end_factor - self.start_factor) * min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + rise) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times `gamma` at every step.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> ExponentialLR(optimizer, gamma=0.9).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Times gamma."""
        return [lr if self._is_initial else lr * self.gamma for lr in self._rates()]

    def lr_at_last_epoch(self) -> list[float]:
        """base * gamma^step."""
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Times (1 - step / total_iters)^power, which reaches 0 at step `total_iters`.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> PolynomialLR(optimizer, total_iters=4, power=2.0).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Times the quotient of this step's factor by the last one's."""
        step, total = self.last_epoch, self.total_iters
        if self._is_initial or step > total:
            return self._rates()
        return [lr * ((1.0 - step / total) / (1.0 - (step - 1) / total)) ** self.power for lr in self._rates()]

    def lr_at_last_epoch(self) -> list[float]:
        """base times the factor."""
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]
