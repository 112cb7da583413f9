"""What waits for the end of a backward: it runs once all gradients are in place."""

from __future__ import annotations

import threading
from collections.abc import Callable

from genesis.ir.replayable import replayable_module


class _Waiting(threading.local):
    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []


_waiting = _Waiting()


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` at the end of this thread's backward, once, however often it is asked for."""
    if callback not in _waiting.callbacks:
        _waiting.callbacks.append(callback)


def run_callbacks() -> None:
    """Call those that wait, in the order in which they came."""
    callbacks, _waiting.callbacks = _waiting.callbacks, []
    for callback in callbacks:
        callback()


def drop_callbacks() -> None:
    """Forget those that wait: gradients were asked for, and none was put in place, or backward failed."""
    _waiting.callbacks = []


replayable_module(__name__)
