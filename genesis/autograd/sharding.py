"""Cutting a batch into shards, one a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.devices import device_of
from genesis.storage import view
from genesis.tensor import Tensor

__all__ = ["mapped", "scatter"]


def mapped(function: Callable[[Tensor], Any], value: Any) -> Any:
    """`value` with its tensors, in lists, tuples and dicts too, replaced by what `function` makes of them."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return type(value)((k, mapped(function, v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        members = [mapped(function, v) for v in value]
        return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
    return value


def scatter(inputs: Any, devices: Sequence[Any], dim: int = 0) -> list[Any]:
    """`inputs` once for each device that gets rows, with its share of every tensor.

    Shares are of equal size, but for the last. Raises ValueError for tensors of different extents along `dim`.

    >>> import genesis
    >>> scatter({"x": genesis.arange(3), "scale": 2}, ["cpu", "cpu:1"])
    [{'x': tensor([0, 1]), 'scale': 2}, {'x': tensor([2], device='cpu:1'), 'scale': 2}]
    """
    found: list[Tensor] = []
    mapped(found.append, inputs)
    whole = [tensor for tensor in found if tensor.shape]
    if any(not -t.ndim <= dim < t.ndim for t in whole):
        raise ValueError(f"scatter: inputs of shapes {[t.shape for t in whole]} do not all have an axis {dim}")
    extents = list(dict.fromkeys([t.shape[dim] for t in whole]))
    if len(extents) > 1:
        raise ValueError(f"scatter: inputs have extents {extents} along dim {dim}; want the same for all")
    extent = extents[0] if extents else 0
    size = max(1, -(-extent // len(devices)))
    starts = range(0, max(1, extent), size)

    def share(tensor: Tensor, start: int, device: Any) -> Tensor:
        part = view(tensor, "narrow", dim, start, min(size, extent - start)) if tensor.shape else tensor
        return part.to(device)

    return [
        mapped(lambda tensor, start=start, device=device: share(tensor, start, device), inputs)  # type: ignore[misc]
        for start, device in zip(starts, map(device_of, devices), strict=False)
    ]
