"""Averages of a model's weights over training, under PyTorch's names.

P. Izmailov, D. Podoprikhin, T. Garipov, D. Vetrov, A. Wilson, "Averaging Weights Leads to Wider Optima and Better
Generalization" (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

from genesis.functions.from_data import tensor
from genesis.ir.annotations import Tree
from genesis.nn.module import Module
from genesis.nn.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from genesis.optim.lr_scheduler.scheduler import LRScheduler, per_group
from genesis.optim.optimizer import Optimizer
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn",
]
__dir__ = __all__.copy

Average = Callable[[Tensor, Tensor, int], Tensor]
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], int], None]


# ---- averages ----
def get_swa_avg_fn() -> Average:
    """The mean of all: averaged + (model - averaged) / (n + 1)."""
    return _mean


def _mean(averaged: Tensor, model: Tensor, n: int) -> Tensor:
    return averaged + (model - averaged) / (n + 1)


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential moving average: decay * averaged + (1 - decay) * model. Raises ValueError outside [0, 1].

    >>> get_ema_avg_fn(0.75)(genesis.tensor(4.0), genesis.tensor(8.0), 3)
    tensor(5.)
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn: decay is {decay}; want 0 to 1")
    return lambda averaged, model, n: decay * averaged + (1 - decay) * model


def _update_all(average: Average, averaged: Sequence[Tensor], models: Sequence[Tensor], n: int) -> None:
    with grad_mode(False):
        for mean, value in zip(averaged, models, strict=True):
            mean.copy_(average(mean, value, n))


def get_swa_multi_avg_fn() -> Averages:
    """`get_swa_avg_fn` for lists of tensors, in place."""
    return partial(_update_all, get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """`get_ema_avg_fn` for lists of tensors, in place."""
    return partial(_update_all, get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of `model` whose parameters average those of `model` over the calls of `update_parameters`.

    Args:
        model: any module of leaf parameters; it is copied deeply.
        device: the copy's device; by default the model's.
        avg_fn: (averaged, model's, number so far) -> the new average; by default the mean.
        multi_avg_fn: the same for lists of tensors, in place.
        use_buffers: average buffers too; otherwise they are copied.

    Raises ValueError if both functions are given.

    >>> model = genesis.nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.75))
    >>> for weight in (4.0, 8.0):
    ...     _ = genesis.nn.init.constant_(model.weight, weight)
    ...     averaged.update_parameters(model)
    >>> averaged(genesis.ones(1)).item()
    5.0
    """

    n_averaged: Tensor

    def __init__(
        self, model: Module, device: DeviceLike = None, avg_fn: Average | None = None, multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: got both avg_fn and multi_avg_fn; want one of them")
        self.module = deepcopy(model) if device is None else deepcopy(model).to(device)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self.multi_avg_fn = multi_avg_fn or partial(_update_all, avg_fn or get_swa_avg_fn())
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Tree:
        """The module's result."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Include the parameters of `model` in the averages; the first call copies them."""
        pairs: list[tuple[Tensor, Tensor]] = [*zip(self.module.parameters(), model.parameters(), strict=True)]
        buffers = [*zip(self.module.buffers(), model.buffers(), strict=True)]
        averaged, copied = ([*pairs, *buffers], []) if self.use_buffers else (pairs, buffers)
        count = int(self.n_averaged)
        with grad_mode(False):
            if averaged and count:
                means, values = ([detach(t) for t in side] for side in zip(*averaged, strict=True))
                self.multi_avg_fn(means, [v.to(m.device) for m, v in zip(means, values, strict=True)], count)
            for to, value in copied if count else [*averaged, *copied]:
                to.copy_(detach(value))
            self.n_averaged += 1


def update_bn(loader: Iterable[Tree], model: Module, device: DeviceLike = None) -> None:
    """Recompute the running statistics of the batch norms in `model`, as means over the batches of `loader`.

    A batch is a tensor, or a list or tuple that begins with one; it is moved to `device`, if that is given.
    """
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, BatchNorm1d | BatchNorm2d | BatchNorm3d)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for norm in momenta:
        norm.reset_running_stats()
        norm.momentum = None
    with grad_mode(False):
        for batch in loader:
            first = batch[0] if isinstance(batch, list | tuple) else batch
            model(first if device is None else first.to(device))
    for norm, momentum in momenta.items():
        norm.momentum = momentum
    model.train(was_training)


# ---- the schedule ----
class SWALR(LRScheduler):
    """From the current learning rate to `swa_lr` (one, or one per group) in `anneal_epochs` steps, then constant.

    `anneal_strategy` is "cos" or "linear". Raises ValueError for another, and for negative or fractional `anneal_epochs`.

    >>> scheduler = SWALR(genesis.optim.SGD([genesis.ones(1)], lr=0.5), swa_lr=0.25, anneal_epochs=2, anneal_strategy="linear")
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | Sequence[float], anneal_epochs: int = 10, anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR: anneal_strategy is {anneal_strategy!r}; want 'cos' or 'linear'")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs is {anneal_epochs}; want an integer of 0 or more")
        for group, rate in zip(optimizer.param_groups, per_group("SWALR", "swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs = anneal_epochs
        self._anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """The fraction of `swa_lr` in the learning rate of a step."""
        turn = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return turn if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * turn)) / 2

    def get_lr(self) -> list[float]:
        """The rates, from the current ones and the original ones that these imply."""
        step = self._step_count - 1
        step = step if self.anneal_epochs else max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, self._rates(), strict=True):
            aim = group["swa_lr"]
            start = aim if before == 1 else (lr - before * aim) / (1 - before)
            rates.append(aim * now + start * (1 - now))
        return rates
