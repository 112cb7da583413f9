"""Parameters that are DTensors. Each has a leaf, this rank's part, which optimizers move."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.nn.functional import all_reduce
from genesis.distributed.process_group import ProcessGroup
from genesis.distributed.tensor.dtensor import DTensor, distribute_tensor
from genesis.distributed.tensor.placement_types import Placement, Shard
from genesis.ir.errors import ArgumentError
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor


class Sharding:
    """How a parameter is distributed, its leaf's attribute `sharding`."""

    def __init__(self, device_mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int]) -> None:
        self.device_mesh, self.placements, self.shape = device_mesh, tuple(placements), tuple(shape)

    def as_dtensor(self, local: Tensor) -> DTensor:
        """The DTensor with the part `local` on this rank."""
        return DTensor.from_local(local, self.device_mesh, self.placements, shape=self.shape)

    def norm_of_all(self, norm: Tensor, norm_type: float) -> Tensor:
        """The norm over all ranks' parts, from this rank's `norm`."""
        for axis, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                norm = joint_norm(norm, norm_type, self.device_mesh.get_group(axis))
        return norm

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sharding) and (self.device_mesh, self.placements) == (other.device_mesh, other.placements)

    def __hash__(self) -> int:
        return hash((self.device_mesh, self.placements))


def joint_norm(norm: Tensor, norm_type: float, group: ProcessGroup) -> Tensor:
    """The norm of the parts that a group's ranks have, by those of the parts."""
    if norm_type == inf:
        return all_reduce(norm, "max", group)
    return all_reduce(norm**norm_type, "sum", group) ** (1 / norm_type)


class LocalParameter(Parameter):
    """This rank's part of a parameter."""

    sharding: Sharding


class DistributedParameter(DTensor, Parameter):
    """A parameter that is a DTensor, as `nn.Parameter` of one is."""


def parameter_of(local: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int],
                 requires_grad: bool = True) -> DistributedParameter:
    """The parameter whose part on this rank shares the memory of `local`."""
    leaf = LocalParameter(local, requires_grad)
    made = object.__new__(DistributedParameter)
    made._local, made.device_mesh, made.placements, made._shape = leaf, device_mesh, tuple(placements), tuple(shape)
    if any(isinstance(placement, Shard) for placement in placements):
        leaf.sharding = Sharding(device_mesh, placements, shape)
    return made


def _as_parameter(held: DTensor, requires_grad: bool) -> Parameter:
    return parameter_of(held._local.detach(), held.device_mesh, held.placements, held.shape, requires_grad)


DTensor.as_parameter = _as_parameter  # type: ignore[method-assign, assignment]


def whole_of(value: Tensor, parameter: Tensor) -> Tensor:
    """The whole of a tensor sharded like the leaf `parameter`, of which this rank has `value`. All ranks must call it."""
    how: Sharding | None = getattr(parameter, "sharding", None)
    return value.detach() if how is None else how.as_dtensor(value.detach()).full_tensor()


def part_of_whole(whole: Tensor, parameter: Tensor, name: str) -> Tensor:
    """This rank's part of `whole`, sharded like the leaf `parameter`. Raises ValueError for another shape."""
    how: Sharding | None = getattr(parameter, "sharding", None)
    if how is None:
        return whole
    if tuple(whole.shape) != how.shape:
        raise ArgumentError(f"{name} has shape {whole.shape}; want {how.shape}")
    return distribute_tensor(whole, how.device_mesh, how.placements, src_data_rank=None)._local
