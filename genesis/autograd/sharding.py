"""Cutting a batch into shards, one a device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from genesis.pytree import leaves_of, map_tree
from genesis.runtime.devices import device_of
from genesis.tensor.handle import Tensor
from genesis.tensor.views import view

__all__ = ["scatter"]


def scatter(inputs: Any, devices: Sequence[Any], dim: int = 0) -> list[Any]:
    """`inputs` once for each device that gets rows, with its share of every tensor.

    Shares are of equal size, but for the last. Raises ValueError for tensors of different extents along `dim`.

    >>> import genesis
    >>> scatter({"x": genesis.arange(3), "scale": 2}, ["cpu", "cpu:1"])
    [{'x': tensor([0, 1]), 'scale': 2}, {'x': tensor([2], device='cpu:1'), 'scale': 2}]
    """
    whole = [x for x in leaves_of(inputs) if isinstance(x, Tensor) and x.shape]
    if any(not -t.ndim <= dim < t.ndim for t in whole):
        raise ValueError(f"scatter: inputs of shapes {[t.shape for t in whole]} do not all have an axis {dim}")
    extents = list(dict.fromkeys([t.shape[dim] for t in whole]))
    if len(extents) > 1:
        raise ValueError(f"scatter: inputs have extents {extents} along dim {dim}; want the same for all")
    extent = extents[0] if extents else 0
    size = max(1, -(-extent // len(devices)))
    starts = range(0, max(1, extent), size)

    def share(x: Any, start: int, device: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        return (view(x, "narrow", dim, start, min(size, extent - start)) if x.shape else x).to(device)

    return [
        map_tree(partial(share, start=start, device=device), inputs)
        for start, device in zip(starts, map(device_of, devices), strict=False)
    ]
