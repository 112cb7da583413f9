"""Parameters sharded by rows over a group, and how they are split and gathered."""

from __future__ import annotations

from typing import Any, NamedTuple

from genesis.distributed.nn.functional import collective
from genesis.distributed.process_group import ProcessGroup
from genesis.distributed.tensor.dtensor import distribute_tensor
from genesis.distributed.tensor.sharded_parameter import joint_norm
from genesis.ir.errors import ArgumentError
from genesis.nn.parameter import Parameter
from genesis.ops import collective as rows
from genesis.tensor.handle import Tensor


class Rows(NamedTuple):
    """A parameter's sharding: by rows over a group, possibly of a part given by `within`."""

    group: ProcessGroup
    within: Any = None  # a `tensor.sharded_parameter.Sharding`

    def norm_of_all(self, norm: Tensor, norm_type: float) -> Tensor:
        """The norm over all ranks, from the norm of this rank's rows."""
        norm = joint_norm(norm, norm_type, self.group)
        return norm if self.within is None else self.within.norm_of_all(norm, norm_type)  # type: ignore[no-any-return]


class ShardedParameter(Parameter):
    """This rank's rows of a parameter, possibly none; `sizes` are all ranks' numbers of rows."""

    sizes: tuple[int, ...] = ()
    sharding: Rows  # `nn.utils.clip_grad_norm_` asks it for the norm over all ranks

    @property
    def start(self) -> int:
        """The first of this rank's rows."""
        return sum(self.sizes[: self.sharding.group.rank()])

    def to_local(self) -> Tensor:
        """This rank's rows: itself."""
        return self

    def full_tensor(self) -> Tensor:
        """All rows, on every rank of the group. All of them must call it."""
        return whole_of(self, self)


def rows_of(whole: Parameter, group: ProcessGroup, offloads: bool = False) -> ShardedParameter:
    """This rank's rows, split as by `chunk`: equally many for each rank, until they are used up.

    With `offloads` they are in CPU memory.
    """
    sizes = tuple(rows.chunks(whole.shape[0], group.size()))
    start = sum(sizes[: group.rank()])
    part = whole.detach()[start : start + sizes[group.rank()]].clone()
    shard = ShardedParameter(part.cpu() if offloads else part, whole.requires_grad)
    shard.sizes, shard.sharding = sizes, Rows(group, getattr(whole, "sharding", None))
    return shard


def whole_of(value: Tensor, parameter: Tensor) -> Tensor:
    """The whole of a tensor sharded like `parameter`, of which this rank has `value`. All ranks must call it."""
    how = getattr(parameter, "sharding", None)
    whole = value.detach()
    if isinstance(how, Rows) and isinstance(parameter, ShardedParameter):
        whole = collective(rows.all_gather, whole, parameter.sizes, how.group.number)
    within = how.within if isinstance(how, Rows) else how
    return whole if within is None else within.as_dtensor(whole).full_tensor()  # type: ignore[no-any-return]


def part_of_whole(whole: Tensor, parameter: Tensor, name: str) -> Tensor:
    """This rank's part of `whole`, sharded like `parameter`. Raises ValueError for another shape."""
    how = getattr(parameter, "sharding", None)
    within = how.within if isinstance(how, Rows) else how
    part = whole
    if within is not None:
        part = distribute_tensor(whole, within.device_mesh, within.placements, src_data_rank=None).to_local()
    if isinstance(parameter, ShardedParameter):
        rest = tuple(parameter.shape[1:])
        if tuple(part.shape) != (sum(parameter.sizes), *rest):
            raise ArgumentError(f"{name} has shape {whole.shape}; want {(sum(parameter.sizes), *rest)}")
        part = part[parameter.start : parameter.start + len(parameter)]
    return part
