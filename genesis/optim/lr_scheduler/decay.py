"""Schedules by a factor: a function of the step, or one that applies at some steps."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from genesis.optim.lr_scheduler.scheduler import LRScheduler, per_group
from genesis.optim.optimizer import Optimizer


class LambdaLR(LRScheduler):
    """The first learning rate times `lr_lambda(step)`; one function, or one for each group.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> LambdaLR(optimizer, lambda step: 0.5 ** step).get_last_lr()
    [0.5]
    """

    _apart = "lr_lambdas"

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1
    ) -> None:
        self.lr_lambdas = per_group(type(self).__name__, "lr_lambda", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """base * lr_lambda(step)."""
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)]


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


class _Decay(LRScheduler):
    """Schedules by a factor of the first learning rate, and the ratio of a step's factor to that of the step before."""

    def _factor(self, step: int) -> float:
        raise NotImplementedError

    def _ratio(self, step: int) -> float:
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """Times the ratio of this step's factor to the last one's."""
        ratio = self._ratio(self.last_epoch)
        return self._rates() if ratio == 1 else [lr * ratio for lr in self._rates()]

    def lr_at_last_epoch(self) -> list[float]:
        """base times the factor."""
        factor = self._factor(self.last_epoch)
        return [base * factor for base in self.base_lrs]


class StepLR(_Decay):
    """Times `gamma` every `step_size` steps.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> StepLR(optimizer, step_size=30, gamma=0.1).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float: return self.gamma ** (step // self.step_size)
    def _ratio(self, step: int) -> float: return 1.0 if step % self.step_size or step <= 0 else self.gamma


class MultiStepLR(_Decay):
    """Times `gamma` at each of the steps `milestones`.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> MultiStepLR(optimizer, [30, 80]).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float: return self.gamma ** bisect_right(sorted(self.milestones.elements()), step)
    def _ratio(self, step: int) -> float: return self.gamma ** self.milestones.get(step, 0)


class ConstantLR(_Decay):
    """Times `factor` for the first `total_iters` steps, then back to the original rate.

    Raises ValueError for a factor outside [0, 1].

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=1.0)
    >>> ConstantLR(optimizer, factor=0.5).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor is {factor}; want it in [0, 1]")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float: return self.factor if step < self.total_iters else 1.0

    def _ratio(self, step: int) -> float:
        return self.factor if step == 0 else 1 / self.factor if step == self.total_iters and not self._is_initial else 1.0


class LinearLR(_Decay):
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
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.start_factor + (self.end_factor - self.start_factor) * min(self.total_iters, step) / self.total_iters

    def _ratio(self, step: int) -> float:
        rise = self.end_factor - self.start_factor
        if step == 0:
            return self.start_factor
        if self._is_initial or step > self.total_iters:
            return 1.0
        return 1.0 + rise / (self.total_iters * self.start_factor + (step - 1) * rise)


class ExponentialLR(_Decay):
    """Times `gamma` at every step.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> ExponentialLR(optimizer, gamma=0.9).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float: return self.gamma**step
    def _ratio(self, step: int) -> float: return 1.0 if self._is_initial else self.gamma


class PolynomialLR(_Decay):
    """Times (1 - step / total_iters)^power, which reaches 0 at step `total_iters`.

    >>> optimizer = genesis.optim.SGD([genesis.ones(1)], lr=0.5)
    >>> PolynomialLR(optimizer, total_iters=4, power=2.0).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float: return float((1.0 - min(self.total_iters, step) / self.total_iters) ** self.power)

    def _ratio(self, step: int) -> float:
        total = self.total_iters
        if self._is_initial or step > total:
            return 1.0
        return float(((1.0 - step / total) / (1.0 - (step - 1) / total)) ** self.power)
