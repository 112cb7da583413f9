"""Keeps signal handlers that run during a recording out of it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from genesis.execution.flush import flush_all
from genesis.runtime.profile_hook import profile_hook
from genesis.tracing.state import thread_state
from genesis.tracing.trace import BUSY


@contextmanager
def handlers_in_other_traces() -> Iterator[None]:
    """A context in which the user's signal handlers are not part of the call that this thread records.

    Handlers run in the main thread, between any two instructions. In this context they run without the recorder and the watch,
    and find the open traces BUSY, so they record into traces of their own. The check after the call notices what they change.
    """
    replaced: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def in_other_traces(number: int, frame: FrameType | None) -> None:
        recorder, put_back = thread_state.recorder, profile_hook()
        opened = [trace for trace in thread_state.traces.values() if not trace.closed]
        sys.setprofile(None)
        thread_state.recorder = None
        for trace in opened:
            trace.closed = BUSY
        try:
            replaced[number](number, frame)
            flush_all()
        finally:
            for trace in opened:
                if trace.closed is BUSY:
                    trace.closed = False
            thread_state.recorder = recorder
            put_back()

    try:
        if threading.current_thread() is threading.main_thread():
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler) and handler is not signal.default_int_handler:
                    replaced[number] = handler
                    signal.signal(number, in_other_traces)
        yield
    finally:
        for caught, handler in replaced.items():
            if signal.getsignal(caught) is in_other_traces:  # unless the call has set another
                signal.signal(caught, handler)
