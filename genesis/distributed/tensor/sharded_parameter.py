"""Tensor-parallel parameters: saving, loading and norms of parts."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.nn.functional import all_reduce
from genesis.distributed.process_group import ProcessGroup
from genesis.distributed.tensor.dtensor import DTensor, distribute_tensor
from genesis.distributed.tensor.placement_types import Placement, Shard
from genesis.functions.from_data import tensor as tensor_from
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor


class Sharding:
    """The sharding of a parameter, its attribute `sharding`."""

    def __init__(self, device_mesh: DeviceMesh, placements: Sequence[Placement]) -> None:
        self.device_mesh, self.placements = device_mesh, tuple(placements)

    def as_dtensor(self, local: Tensor) -> DTensor:
        """The DTensor with the part `local` on this rank."""
        return DTensor(local, self.device_mesh, self.placements)

    def span_of(self, shape: Sequence[int]) -> tuple[list[int], list[int]]:
        """The start of this rank's part, of `shape`, in the whole, and the whole's shape."""
        start, whole = [0] * len(shape), [*shape]
        for axis, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                start[placement.dim] += shape[placement.dim] * self.device_mesh.get_local_rank(axis)
                whole[placement.dim] *= self.device_mesh.size(axis)
        return start, whole

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
    """This rank's part of a parameter, with DTensor's attributes for the whole."""

    sharding: Sharding

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placements along each axis of the mesh."""
        return self.sharding.placements

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of ranks."""
        return self.sharding.device_mesh

    def to_local(self) -> Tensor:
        """This rank's part: itself."""
        return self

    def full_tensor(self) -> Tensor:
        """The whole, on every rank of the mesh. All of them must call it."""
        return self.sharding.as_dtensor(self.detach()).full_tensor()


def shard_parameters(
    module: Module, device_mesh: DeviceMesh, placements: dict[str, Placement], src_data_rank: int | None
) -> None:
    """Replace a module's parameters of these names by this rank's parts. Its state dict has them as DTensors."""
    for name, placement in placements.items():
        whole = getattr(module, name)
        if whole is not None:
            local = distribute_tensor(whole, device_mesh, [placement], src_data_rank=src_data_rank).to_local()
            kind = LocalParameter if isinstance(placement, Shard) else Parameter
            part = kind(local.clone(), requires_grad=whole.requires_grad)
            if isinstance(part, LocalParameter):
                part.sharding = Sharding(device_mesh, [placement])
            setattr(module, name, part)
    module.register_state_dict_post_hook(_as_dtensors)
    module.register_load_state_dict_pre_hook(_as_local)


def _sharded(module: Module) -> list[tuple[str, LocalParameter]]:
    """The parameters sharded only this way. State dicts have this rank's rows of those also sharded by `fully_shard`."""
    return [(name, p) for name, p in module._parameters.items() if isinstance(p, LocalParameter)]


def _as_dtensors(module: Module, state: dict[str, Any], prefix: str, metadata: object) -> None:
    for name, parameter in _sharded(module):
        state[prefix + name] = parameter.sharding.as_dtensor(state[prefix + name])


def _as_local(module: Module, state: dict[str, Any], prefix: str, *others: object) -> None:
    """Replaces loaded whole tensors or DTensors by this rank's parts."""
    for name, parameter in _sharded(module):
        given = state.get(prefix + name)
        if given is not None:
            how = parameter.sharding
            if not isinstance(given, DTensor):
                whole = given if isinstance(given, Tensor) else tensor_from(given)
                given = distribute_tensor(whole, how.device_mesh, how.placements, src_data_rank=None)
            state[prefix + name] = given.redistribute(how.placements).to_local()
