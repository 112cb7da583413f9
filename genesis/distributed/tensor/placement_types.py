"""Placements: how a tensor is distributed over a mesh axis: in parts, copies, or terms of a sum."""

from __future__ import annotations

from dataclasses import dataclass

from genesis.ir.errors import ArgumentError


class Placement:
    """The distribution of a tensor over the ranks along a mesh axis."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each rank has a part, along `dim` if given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each rank has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether each rank has a term of a sum."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """Rank k has the k-th of equal parts along axis `dim`.

    >>> genesis.distributed.tensor.Shard(0).is_shard(0)
    True
    """

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has all of it."""


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is the sum of the ranks' tensors, or another reduction. Raises ValueError for an unknown one."""

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in REDUCTIONS:
            raise ArgumentError(f"Partial: reduce_op is {self.reduce_op!r}; want one of {', '.join(REDUCTIONS)}")


REDUCTIONS = "sum", "avg", "max", "min", "prod"
