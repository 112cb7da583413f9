"""A trace's state that only backward reads. Most traces have none, so it is created on first use."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from types import MappingProxyType
from typing import Any, NamedTuple


class CopiedTrace(NamedTuple):
    """The values of a flushed trace, up to position `last`, in the open trace, from position `start` on.

    Attributes:
        entered: (position in the flushed trace, position in the open one) of what was saved; the rest follows from that.
        positions: position in the flushed trace -> position in the open one.
        origins: position in the open trace of what is derived again -> position in the flushed one.
        shape_only: positions that have a shape but no value: results of collectives, which do not run again, and what
            depends on them.
        regathered: those among them that have a value if transient collectives run again.
    """

    last: int
    start: int
    entered: tuple[tuple[int, int], ...]
    positions: dict[int, int]
    origins: dict[int, int]
    shape_only: set[int]
    regathered: set[int]


class BackwardState:
    """The hooks, custom Functions and saved values for a backward over one trace.

    `NOTHING` and `FREED` are shared by all traces without state, and are read-only.
    """

    __slots__ = ("copies", "custom_calls", "graph_freed", "hooks", "node_hooks", "retained", "saved")

    def __init__(self, graph_freed: bool = False) -> None:
        self.graph_freed = graph_freed  # nothing was saved at the flush: backward is impossible
        self.hooks: MutableMapping[int, dict[int, Any]] = {}  # position -> the hooks on its gradient
        self.node_hooks: MutableMapping[int, Any] = {}  # first position of a call -> the hooks on all its gradients
        self.custom_calls: MutableMapping[int, Any] = {}  # position of a result -> the custom Function's call
        self.retained: MutableMapping[int, weakref.ref[Any]] = {}  # position -> the result that retains its gradient
        self.copies: MutableMapping[Any, Any] = {}  # (flushed trace, create_graph) -> its CopiedTrace
        self.saved: MutableMapping[int, Any] = {}  # position -> the realized Array of what backward reads


def _constant(graph_freed: bool) -> BackwardState:
    state = BackwardState(graph_freed)
    for name in BackwardState.__slots__:
        if name != "graph_freed":
            setattr(state, name, MappingProxyType({}))
    return state


NOTHING = _constant(False)
FREED = _constant(True)
