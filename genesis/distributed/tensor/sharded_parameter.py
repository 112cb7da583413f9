"""Parameters that are DTensors. Each has a leaf, this rank's part, which optimizers move."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.tensor.dtensor import DTensor, distribute_tensor
from genesis.distributed.tensor.placement_types import Placement, Shard
from genesis.distributed.tensor.redistribution import Sharding
from genesis.ir.errors import ArgumentError
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor


class LocalParameter(Parameter):
    """This rank's part of a parameter."""

    sharding: Sharding


class DistributedParameter(DTensor, Parameter):
    """A parameter that is a DTensor, as `nn.Parameter` of one is."""

    def leaf_part(self) -> Tensor:
        return self._local


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


def as_dtensor(local: Tensor, how: Sharding) -> DTensor:
    """The DTensor with the part `local` on this rank."""
    return DTensor.from_local(local, how.device_mesh, how.placements, shape=how.shape)


def whole_of(value: Tensor, parameter: Tensor) -> Tensor:
    """The whole of a tensor sharded like the leaf `parameter`, of which this rank has `value`. All ranks must call it."""
    how: Sharding | None = getattr(parameter, "sharding", None)
    return value.detach() if how is None else as_dtensor(value.detach(), how).full_tensor()


def part_of_whole(whole: Tensor, parameter: Tensor, name: str) -> Tensor:
    """This rank's part of `whole`, sharded like the leaf `parameter`. Raises ValueError for another shape."""
    how: Sharding | None = getattr(parameter, "sharding", None)
    if how is None:
        return whole
    if tuple(whole.shape) != how.shape:
        raise ArgumentError(f"{name} has shape {whole.shape}; want {how.shape}")
    return distribute_tensor(whole, how.device_mesh, how.placements, src_data_rank=None)._local
