"""Tensor state for flushes: counts of a root's changes, and the tensors that have a gradient."""

from __future__ import annotations

import weakref
from typing import Any

from genesis.tracing.trace import LOCK

# A root's change count rises by 1 for a write, and by this for a write that PyTorch does not count, or when its memory is
# exposed to the outside without a write.
UNTRACKED, EXPOSED = 1 << 32, 1 << 64


class Versions:
    """A count of writes, for the tensors that share it; a new one is that of a `.data`."""

    count: int = 0
    are_ignored: bool = True  # by backward


_holders: list[weakref.ref[Any]] = []  # weak references without callbacks: an interrupt within one would be lost
_FEW = 64


def add_gradient_holder(tensor: Any) -> None:
    """List a tensor in `gradient_holders` as long as it is alive."""
    with LOCK:
        tensor._is_holder = True
        _holders.append(weakref.ref(tensor))
        if len(_holders) >= _FEW and len(_holders) & (len(_holders) - 1) == 0:  # prune dead references at each doubling
            _holders[:] = [reference for reference in _holders if reference() is not None]


def gradient_holders() -> list[Any]:
    """The living tensors of all threads that have a gradient."""
    alive = [reference() for reference in _holders]
    return [tensor for tensor in alive if tensor is not None and tensor._grad is not None]
