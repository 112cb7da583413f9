"""Data parallelism: splits a batch into one shard per device, and reduces the devices' results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from operator import add

from genesis.ir.annotations import Tree
from genesis.pytree import leaves_of, map_tree
from genesis.runtime.devices import Device, DeviceLike, device_of
from genesis.tensor.dispatch import moved
from genesis.tensor.handle import Tensor
from genesis.tensor.views import view


def scatter(inputs: Tree, devices: Sequence[DeviceLike], dim: int = 0) -> list[Tree]:
    """`inputs` for each device that gets rows, with its shard of every tensor.

    Shards are of equal size, except the last. Raises ValueError for tensors of different extents along `dim`.

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

    def share(x: Tree, start: int, device: Device) -> Tree:
        if not isinstance(x, Tensor):
            return x
        return (view(x, "narrow", dim, start, min(size, extent - start)) if x.shape else x).to(device)

    return [
        map_tree(partial(share, start=start, device=device), inputs)
        for start, device in zip(starts, map(device_of, devices), strict=False)
    ]


def total(tensors: Sequence[Tensor], device: Device) -> Tensor:
    """The sum of tensors of one shape and dtype on `device`, in the order given.

    >>> total([genesis.ones(2), genesis.ones(2, device="cpu:1")], genesis.device("cpu"))
    tensor([2., 2.])
    """
    return reduce(add, moved(tensors, device))
