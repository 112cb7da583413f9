"""The critical section of a replay: signal handlers and finalizers that interrupt it record and compute separately."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.runtime.instructions import MISSED
from genesis.tracing.state import thread_state
from genesis.tracing.trace import BUSY, critical


def has_come_between() -> bool:
    """Whether the caller, which holds LOCK, is a signal handler or finalizer that has interrupted a program."""
    opened = thread_state.trace
    return critical.running or (opened is not None and opened.closed is BUSY)


def run_critical(replay: Callable[..., Any], *arguments: Any) -> Any:
    """Run `replay` in the critical section, holding LOCK; returns its result, or MISSED if the call `has_come_between`.

    An interrupt may arrive at its end, too.
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
