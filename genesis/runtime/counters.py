"""Counts of what the runtime did; `genesis.debug.stats()` shows them."""

from __future__ import annotations

from array import array

counts = {
    "kernels_compiled": 0,  # made by LLVM in this process or one of its compile workers
    "kernels_loaded": 0,  # linked from the cache on disk
    "plans_built": 0,
    "plans_read": 0,  # of these, lowered by an earlier process
    "plan_hits": 0,
    "flushes": 0,
    "collective_bytes": 0,  # that programs gave to collectives: the operands
    "native_calls": 0,  # programs run
    "graphs_captured": 0,  # stretches of launches that a GPU now begins as one
    "graphs_refused": 0,  # and those that no graph could hold: `genesis.debug.explain` tells why
    "compile_microseconds": 0,  # wall time spent waiting for compilers
    "load_microseconds": 0,  # wall time spent reading and linking object code
}
replayed = array("Q", [0])  # replays by instructions: a flush, a plan found and a native call each


def count(name: str, amount: int = 1) -> None:
    """Add `amount` to the counter `name`. No lock: CPython does not switch threads within such a statement.

    >>> count("flushes")
    """
    counts[name] += amount


def stats() -> dict[str, int]:
    """A copy of every counter.

    >>> sorted(stats())[:2]
    ['collective_bytes', 'compile_microseconds']
    """
    found = dict(counts)
    for name in ("plan_hits", "flushes", "native_calls"):
        found[name] += replayed[0]
    return found


def reset() -> None:
    """Set every counter to zero."""
    replayed[0] = 0
    for name in counts:
        counts[name] = 0
