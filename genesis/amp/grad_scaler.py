"""GradScaler: scales losses up so that small gradients survive float16, and skips steps that overflow."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from genesis.functions.from_data import scalar_tensor
from genesis.ir.annotations import Options, Tree
from genesis.ir.dtypes import float16, float32
from genesis.nn.utils.parameters import update_all
from genesis.optim.optimizer import Optimizer, State
from genesis.runtime.devices import DeviceLike
from genesis.sparse.sparse_tensor import SparseTensor, each_once
from genesis.tensor.composite import differentiated
from genesis.tensor.handle import Tensor
from genesis.tensor.modes import device_is_here
from genesis.tracing.state import grad_mode

_LATE = "was called after step(); one update() ends the iteration"


class GradScaler:
    """Scales losses, unscales gradients, and skips steps with infinite or NaN gradients.

    Args:
        device: no effect; a number here is `init_scale`.
        init_scale: the initial scale.
        growth_factor: multiplies the scale after `growth_interval` consecutive steps without overflow; above 1.
        backoff_factor: multiplies the scale after an overflow; below 1.
        enabled: if False, every method passes its argument through.

    Raises ValueError for factors out of range.

    >>> w = genesis.ones(2, requires_grad=True)
    >>> optimizer = genesis.optim.SGD([w], lr=0.5)
    >>> scaler = genesis.amp.GradScaler()
    >>> for x in (genesis.ones(2), genesis.tensor([1e38, 1.0])):  # the second overflows: the scale moves, not w
    ...     optimizer.zero_grad()
    ...     scaler.scale((w * x).sum()).backward()
    ...     stepped = scaler.step(optimizer)
    ...     scaler.update()
    ...     w.tolist(), scaler.get_scale()
    ([0.5, 0.5], 65536.0)
    ([0.5, 0.5], 32768.0)
    """

    def __init__(
        self, device: DeviceLike = None, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:
        if isinstance(device, int | float):
            device, init_scale = None, device
        enabled = device_is_here(device, "GradScaler", enabled) and enabled
        if growth_factor <= 1:
            raise ValueError(f"GradScaler: growth_factor must be above 1, got {growth_factor}")
        if backoff_factor >= 1:
            raise ValueError(f"GradScaler: backoff_factor must be below 1, got {backoff_factor}")
        self._enabled = enabled
        self._scale = _rounded(init_scale)
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._growth_tracker = 0
        self._used = False  # whether something has been scaled
        self._overflowed: dict[Optimizer, bool] = {}  # for the gradients unscaled in this iteration
        self._stepped: set[Optimizer] = set()

    def scale(self, outputs: Tree) -> Tree:
        """`outputs`, a tensor or an iterable of them, times the scale. Raises TypeError for anything else."""
        if not self._enabled:
            return outputs
        self._used = True
        if isinstance(outputs, Tensor):
            return outputs * scalar_tensor(self._scale, dtype=float32)
        if not isinstance(outputs, Iterable):
            raise TypeError(f"GradScaler.scale: wants a tensor or an iterable of them, got {type(outputs).__name__}")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of `optimizer`'s parameters by the scale, for clipping; otherwise `step` does it.

        For sharded parameters, an overflow on one rank counts on all.

        Raises RuntimeError if called twice before `update`, after `step`, or if nothing was scaled; ValueError for float16
        gradients, which unscaling would make inexact.
        """
        if not self._enabled:
            return
        self._check_used("unscale_")
        if optimizer in self._stepped:
            raise RuntimeError(f"GradScaler.unscale_: {_LATE}")
        if optimizer in self._overflowed:
            raise RuntimeError("GradScaler.unscale_: the gradients of this optimizer were unscaled since the last update()")
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        held: list[Any] = [differentiated(p).grad for p in parameters]
        gradients = [each_once(gradient) if isinstance(gradient, SparseTensor) else gradient for gradient in held]
        if not gradients:
            raise RuntimeError("GradScaler.unscale_: no parameter of this optimizer has a gradient; call backward() first")
        if any(g.dtype is float16 for g in gradients):
            raise ValueError("GradScaler.unscale_: gradients are float16; keep the parameters float32 and use autocast")
        with grad_mode(False):
            (overflow,) = update_all(gradients, "unscale", 1 / self._scale)
            for sharding in {getattr(p, "sharding", None): None for p in parameters}:
                if sharding is not None:  # all ranks must step, or none
                    overflow = sharding.norm_of_all(overflow.to(float32), math.inf) > 0
        self._overflowed[optimizer] = bool(overflow)  # now: gradients that a failed program was to unscale are not unscaled

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients if necessary, and call `optimizer.step(*args, **kwargs)` unless they have an inf or NaN.

        Returns the result of the optimizer's step, None if skipped. Raises RuntimeError for a closure, if called twice before
        `update`, and as `unscale_`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if args or "closure" in kwargs:
            raise RuntimeError("GradScaler.step: a closure is not supported; compute the loss before")
        self._check_used("step")
        if optimizer in self._stepped:
            raise RuntimeError(f"GradScaler.step: {_LATE}")
        if optimizer not in self._overflowed:
            self.unscale_(optimizer)
        result = None if self._overflowed[optimizer] else optimizer.step(**kwargs)
        self._stepped.add(optimizer)
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """End the iteration: lower the scale after an overflow, raise it after enough steps without one; or set it.

        Raises RuntimeError if no gradients were unscaled since the last `update`.
        """
        if not self._enabled:
            return
        self._check_used("update")
        if new_scale is not None:
            self._scale = _rounded(float(new_scale))
        elif not self._overflowed:
            raise RuntimeError("GradScaler.update: no gradients were checked; call step(optimizer) first")
        elif any(self._overflowed.values()):
            self._scale, self._growth_tracker = _rounded(self._scale * self._backoff_factor), 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                grown, self._growth_tracker = _rounded(self._scale * self._growth_factor), 0
                self._scale = grown if math.isfinite(grown) else self._scale
        self._overflowed, self._stepped = {}, set()

    def _check_used(self, name: str) -> None:
        if not self._used:
            raise RuntimeError(f"GradScaler.{name}: nothing was scaled; call scale(loss).backward() first")

    # ---- settings and state ----
    def is_enabled(self) -> bool:
        """Whether scaling is enabled."""
        return self._enabled

    def get_scale(self) -> float:
        """The current scale; 1 if not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """The factor for growing the scale after enough steps without overflow."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor for growing the scale after enough steps without overflow."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor for shrinking the scale after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor for shrinking the scale after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of steps without overflow before the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps without overflow before the scale grows."""
        self._growth_interval = new_interval

    def state_dict(self) -> State:
        """The scale, its settings and the steps since an overflow, under PyTorch's names; empty if not enabled."""
        return {
            "scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker,
        } if self._enabled else {}

    def load_state_dict(self, state_dict: Options) -> None:
        """Load the state dict of this or PyTorch's scaler. Raises RuntimeError for that of a disabled one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("GradScaler.load_state_dict: the state is empty, as that of a scaler with enabled=False")
        self._scale = _rounded(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]


def _rounded(scale: float) -> float:
    """The scale rounded to float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(scale))
