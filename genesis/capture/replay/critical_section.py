"""The section of a replay that what comes in between knows of: signal handlers and finalizers record and compute apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.runtime.instructions import MISSED
from genesis.tracing.state import thread_state
from genesis.tracing.trace import BUSY, critical


def has_come_between() -> bool:
    """Whether who calls, as the holder of LOCK, is a signal handler or finalizer that has interrupted a program."""
    opened = thread_state.trace
    return critical.running or (opened is not None and opened.closed is BUSY)


def run_critical(replay: Callable[..., Any], *arguments: Any) -> Any:
    """What `replay` returns, run in that section by the holder of LOCK; MISSED where the call `has_come_between`.

    An interrupt may come at its end, too.
    """
    if has_come_between():
        return MISSED
    opened = thread_state.trace
    if opened is not None and opened.closed:
        opened = None
    try:
        critical.running = True
        if opened is not None:
            opened.closed = BUSY
        return replay(*arguments)
    finally:
        critical.running = False
        if opened is not None:
            opened.closed = False
