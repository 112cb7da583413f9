"""DTensor: this rank's part of a distributed tensor and its placements. It does not compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.nn.functional import collective
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from genesis.distributed.tensor.redistribution import cut, redistribute_local
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.ops import collective as rows
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording


class DTensor:
    """A tensor of shape `shape` distributed over the ranks of `device_mesh`, with one placement per axis of the mesh.

    State dicts of sharded modules contain DTensors. `to_local()` is this rank's part, `full_tensor()` the whole.

    >>> genesis.distributed.init_process_group()
    >>> mesh = genesis.distributed.init_device_mesh("cpu", (1,))
    >>> held = genesis.distributed.tensor.distribute_tensor(genesis.arange(4), mesh, [genesis.distributed.tensor.Shard(0)])
    >>> held.shape, held.full_tensor()
    ((4,), tensor([0, 1, 2, 3]))
    >>> genesis.distributed.destroy_process_group()
    """

    def __init__(self, local: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement]) -> None:
        self._local, self.device_mesh, self.placements = local, device_mesh, _checked(placements, device_mesh, local)

    @staticmethod
    def from_local(local_tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None) -> DTensor:
        """The tensor with each rank's part given; by default each rank has the whole."""
        return DTensor(local_tensor, device_mesh, placements or [Replicate()] * device_mesh.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole."""
        shape = [*self._local.shape]
        for axis, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                shape[placement.dim] *= self.device_mesh.size(axis)
        return tuple(shape)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._local.dtype

    @property
    def start(self) -> tuple[int, ...]:
        """The start of this rank's part in the whole, along each axis."""
        start, extent = [0] * self._local.ndim, [*self.shape]
        for axis, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                extent[placement.dim] //= self.device_mesh.size(axis)
                start[placement.dim] += extent[placement.dim] * self.device_mesh.get_local_rank(axis)
        return tuple(start)

    def to_local(self) -> Tensor:
        """This rank's part."""
        return self._local

    def redistribute(self, placements: Sequence[Placement]) -> DTensor:
        """The same tensor with other placements, differentiably."""
        wanted, local = _checked(placements, self.device_mesh, self._local), self._local
        steps = [*zip(range(len(wanted)), self.placements, wanted, strict=True)]
        if _shares_an_axis(self.placements) or _shares_an_axis(wanted):  # nested parts are joined from the last mesh axis on
            steps = [*[(axis, old, Replicate()) for axis, old, _ in reversed(steps)],
                     *[(axis, Replicate(), new) for axis, _, new in steps]]
        for axis, old, new in steps:
            if old != new:
                local = redistribute_local(local, old, new, self.device_mesh.get_group(axis))
        return DTensor(local, self.device_mesh, wanted)

    def full_tensor(self) -> Tensor:
        """The whole tensor, on every rank of the mesh."""
        return self.redistribute([Replicate()] * self.device_mesh.ndim).to_local()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a DTensor is of several ranks; want full_tensor(), or genesis.distributed.checkpoint.save")

    def __repr__(self) -> str:
        return f"DTensor(local_tensor={self._local}, device_mesh={self.device_mesh}, placements={self.placements})"


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement], *, src_data_rank: int | None = 0
) -> DTensor:
    """Distributes `tensor` from rank `src_data_rank` along each axis; if that is None, each rank uses its own.

    Raises ValueError for a tensor that cannot be divided evenly, and for Partial.
    """
    wanted = _checked(placements, device_mesh, tensor)
    with recording(False) as again, again:
        local = tensor.detach()
        for axis, placement in enumerate(wanted):
            group = device_mesh.get_group(axis)
            if src_data_rank is not None and group.size() > 1:
                local = collective(rows.broadcast_from, local, src_data_rank, group.number)
            if isinstance(placement, Partial):
                raise ArgumentError("distribute_tensor: Partial; want Shard or Replicate")
            if isinstance(placement, Shard):
                local = cut(local, placement.dim, group)
    return DTensor(local.contiguous(), device_mesh, wanted)


def _checked(placements: Sequence[Placement], mesh: DeviceMesh, tensor: Any) -> tuple[Placement, ...]:
    """Placements with nonnegative axes. Raises ValueError unless there is one per axis of the mesh."""
    if len(placements) != mesh.ndim or not all(isinstance(each, Placement) for each in placements):
        raise ArgumentError(f"placements {placements}; want {mesh.ndim}, one for each axis of the mesh")
    for each in placements:
        if isinstance(each, Shard) and not -tensor.ndim <= each.dim < tensor.ndim:
            raise IndexError(f"{each} of a tensor of shape {tensor.shape}; want one of its axes")
    return tuple([Shard(each.dim % tensor.ndim) if isinstance(each, Shard) else each for each in placements])


def _shares_an_axis(placements: Sequence[Placement]) -> bool:
    """Whether several axes of the mesh shard the same axis of the tensor."""
    cuts = [each.dim for each in placements if isinstance(each, Shard)]
    return len({*cuts}) < len(cuts)
