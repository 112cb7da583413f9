"""Distributed tensors of a shape: constants, uninitialized ones and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis import random
from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.tensor.dtensor import DTensor, distribute_tensor
from genesis.distributed.tensor.placement_types import Placement
from genesis.functions import creation
from genesis.tensor.handle import Tensor


def _distributed(make: Callable[..., Tensor]) -> Callable[..., DTensor]:
    def created(
        *size: Any, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, **settings: Any
    ) -> DTensor:
        return distribute_tensor(make(*size, **settings), device_mesh, placements, src_data_rank=None)

    name = created.__name__ = created.__qualname__ = make.__name__
    created.__doc__ = f"""`genesis.{name}`, distributed over a mesh, by default of all ranks, where each has the whole.

    Random numbers are those of the whole tensor, if all ranks have one seed.
    """
    return created


_MADE: list[Callable[..., Tensor]] = [
    creation.empty, creation.full, creation.ones, random.rand, random.randn, creation.zeros]
empty, full, ones, rand, randn, zeros = map(_distributed, _MADE)
