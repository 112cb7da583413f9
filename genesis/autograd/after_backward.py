"""Callbacks at the end of backward, once all gradients are in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.tracing.thread import thread_state


class RunningBackward:
    """One backward: what it queues waits for its own end, not for that of one within it, as of a hook."""

    __slots__ = ("_callbacks", "found")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        self.found: dict[Callable[[], None], dict[int, Any]] = {}  # what a callback will need: gradients by number

    def run_callbacks(self) -> None:
        """Call the queued callbacks, in order, and those that they queue."""
        while self._callbacks:
            self._callbacks.pop(0)()


def innermost_backward() -> RunningBackward:
    """This thread's backward that runs. Raises RuntimeError if there is none."""
    running: RunningBackward | None = thread_state.backward
    if running is None:
        raise RuntimeError("no backward is running; want a call within one, as of a hook")
    return running


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` once at the end of the backward that runs, however often it is queued.

    Where no `.grad` is written (`autograd.grad`), and where backward fails, it is dropped.
    """
    callbacks = innermost_backward()._callbacks
    if callback not in callbacks:
        callbacks.append(callback)
