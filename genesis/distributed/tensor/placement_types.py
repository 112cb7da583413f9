"""Placements: how a tensor is distributed over a mesh axis: in parts, copies, or terms of a sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from genesis.distributed.device_mesh import DeviceMesh
from genesis.ir.errors import ArgumentError
from genesis.ops.collective import chunks


class Placement:
    """The distribution of a tensor over the ranks along a mesh axis."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each rank has a part, along `dim` if given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each rank has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each rank has a term of a sum, or of reduction `reduce_op` if given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Rank k has the k-th of equal parts along axis `dim`.

    >>> genesis.distributed.tensor.Shard(0).is_shard(0)
    True
    """

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has all of it."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is the sum of the ranks' tensors, or another reduction. Raises ValueError for an unknown one."""

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in REDUCTIONS:
            raise ArgumentError(f"Partial: reduce_op is {self.reduce_op!r}; want one of {', '.join(REDUCTIONS)}")

    def __repr__(self) -> str: return f"Partial({self.reduce_op})"
    def __str__(self) -> str: return f"P({self.reduce_op})"


REDUCTIONS = "sum", "avg", "max", "min", "prod"


def checked(placements: Sequence[Placement], mesh: DeviceMesh, shape: Sequence[int]) -> tuple[Placement, ...]:
    """Placements of a tensor of `shape`, with nonnegative axes. Raises ValueError unless there is one per axis of the mesh."""
    if len(placements) != mesh.ndim or not all(isinstance(each, Placement) for each in placements):
        raise ArgumentError(f"placements {placements}; want {mesh.ndim}, one for each axis of the mesh")
    ndim = len(shape)
    for each in placements:
        if isinstance(each, Shard) and not -ndim <= each.dim < ndim:
            raise IndexError(f"{each} of a tensor of shape {tuple(shape)}; want one of its axes")
    return tuple([Shard(each.dim % ndim) if isinstance(each, Shard) else each for each in placements])


def part_at(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> tuple[list[int], list[int]]:
    """(start, shape) of this rank's part of a tensor of `shape`, by the placements along the first axes of the mesh."""
    start, extents = [0] * len(shape), [*shape]
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard):
            group, dim = mesh.get_group(axis), placement.dim
            sizes = chunks(extents[dim], group.size())
            start[dim] += sum(sizes[: group.rank()])
            extents[dim] = sizes[group.rank()]
    return start, extents
