"""Callbacks at the end of backward, once all gradients are in place."""

from __future__ import annotations

import threading
from collections.abc import Callable

from genesis.ir.replayable import replayable_module


class _Waiting(threading.local):
    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []


_waiting = _Waiting()


def queue_callback(callback: Callable[[], None]) -> bool:
    """Call `callback` once at the end of this thread's backward, however often it is queued; returns whether this is new."""
    if callback in _waiting.callbacks:
        return False
    _waiting.callbacks.append(callback)
    return True


def run_callbacks() -> None:
    """Call the queued callbacks, in order."""
    callbacks, _waiting.callbacks = _waiting.callbacks, []
    for callback in callbacks:
        callback()


def drop_callbacks() -> None:
    """Drop the queued callbacks: no `.grad` was written (`autograd.grad`), or backward failed."""
    _waiting.callbacks = []


replayable_module(__name__)
