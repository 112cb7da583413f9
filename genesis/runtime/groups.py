"""The groups of processes that communicate, by number, and their collectives. `collectives` has the class of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

GROUPS: dict[int, Any] = {}  # by number, unique in the process
WORLD: list[Any] = []  # the group of all ranks, if there is one


class CollectiveError(RuntimeError):
    """Processes disagree about a collective, one did not arrive in time, or MPI failed."""


class Library(NamedTuple):
    """Functions by name, the words of dtypes (of NumPy's names) and reductions, how many bytes a status takes, and whether
    several threads may call it at once."""

    functions: Mapping[str, int]
    dtypes: Mapping[str, int]
    reductions: Mapping[str, int]
    status_bytes: int
    is_shared: bool


class Collective(NamedTuple):
    """A collective as its node describes it: the primitive, the reduction, the root's rank in the group, how many elements are
    sent to and received from each rank, and what all ranks must agree on. In an exchange, between two, the root is the
    other."""

    op: str
    reduce: str
    root: int
    sends: tuple[int, ...]
    receives: tuple[int, ...]
    said: str

    @classmethod
    def of(cls, op: str, attrs: Mapping[str, Any]) -> Collective:
        """The collective of a node."""
        return cls(op, *[attrs[name] for name in cls._fields[1:]])

    @property
    def between(self) -> int | None:
        """The other rank of an exchange."""
        return self.root if self.op == "exchange" else None
