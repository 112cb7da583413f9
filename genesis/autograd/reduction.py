"""Adding up what several devices computed: the one thing that they have to talk about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from genesis.runtime.devices import Device
from genesis.tensor.dispatch import moved
from genesis.tensor.handle import Tensor

__all__ = ["LocalReduction", "Reduction"]


class Reduction(Protocol):
    """How shards' gradients become one: within this process, or with others of its kind in other processes."""

    def all_reduce(self, tensors: Sequence[Tensor], devices: Sequence[Device]) -> list[Tensor]:
        """The sum of `tensors`, all of one shape and dtype, once on each of `devices`."""


class LocalReduction:
    """Sums on the first of the devices, in the order given, and copies to the others.

    >>> import genesis
    >>> parts = [genesis.ones(2), genesis.ones(2, device="cpu:1")]
    >>> LocalReduction().all_reduce(parts, [genesis.device("cpu"), genesis.device("cpu:1")])
    [tensor([2., 2.]), tensor([2., 2.], device='cpu:1')]
    """

    def all_reduce(self, tensors: Sequence[Tensor], devices: Sequence[Device]) -> list[Tensor]:
        """The sum of `tensors`, all of one shape and dtype, once on each of `devices`."""
        total, *rest = moved(tensors, devices[0])
        for tensor in rest:
            total = total + tensor
        return [moved([total], device)[0] for device in devices]
