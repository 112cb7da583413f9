"""What flushes know of tensors: how the changes of a root are counted, and which tensors hold a gradient."""

from __future__ import annotations

import weakref
from typing import Any

from genesis.tracing.trace import LOCK

# What a root's changes rise by: 1 for a write, this for one that PyTorch does not count, and when its memory is shown to the
# outside, not written to.
UNTRACKED, SHOWN = 1 << 32, 1 << 64

_holders: list[weakref.ref[Any]] = []  # without callbacks: an interrupt within one would be lost
_FEW = 64


def add_gradient_holder(tensor: Any) -> None:
    """Have `gradient_holders` list a tensor as long as it lives."""
    with LOCK:
        tensor._is_holder = True
        _holders.append(weakref.ref(tensor))
        if len(_holders) >= _FEW and len(_holders) & (len(_holders) - 1) == 0:  # at each doubling the dead are dropped
            _holders[:] = [reference for reference in _holders if reference() is not None]


def gradient_holders() -> list[Any]:
    """The living tensors of all threads that hold a gradient."""
    alive = [reference() for reference in _holders]
    return [tensor for tensor in alive if tensor is not None and tensor._grad is not None]
