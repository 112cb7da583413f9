"""`torch.amp.custom_fwd` and `custom_bwd`: the forward and backward of a Function under autocast."""

from __future__ import annotations

import functools
from typing import Any

import genesis
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType
from genesis.pytree import map_tree
from genesis.tensor.handle import Tensor


def custom_fwd(fwd: AnyFunction | None = None, *, device_type: str = "cpu", cast_inputs: DType | None = None) -> Any:
    """Decorator of `forward`: with `cast_inputs`, under autocast, it runs without autocast on cast floating arguments."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._fwd_used_autocast = genesis.is_autocast_enabled() and cast_inputs is None
        if cast_inputs is None or not genesis.is_autocast_enabled():
            return fwd(ctx, *args, **kwargs)

        def cast(leaf: Any) -> Any:
            return leaf.to(cast_inputs) if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf

        with genesis.autocast(enabled=False):
            return fwd(ctx, *map_tree(cast, args), **map_tree(cast, kwargs))

    return forward


def custom_bwd(bwd: AnyFunction | None = None, *, device_type: str = "cpu") -> Any:
    """Decorator of `backward`: it runs under autocast if `forward` did."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with genesis.autocast(enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward


def is_autocast_available(device_type: str) -> bool:
    """Whether there is mixed precision for a kind of device."""
    return device_type in ("cpu", "cuda")
