"""Messages while a script runs: channels of `logging`, and a progress line on stderr during long compiles."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from types import ModuleType
from typing import Any

CHANNELS = {
    "compile": "kernels that were compiled, and how long that took",
    "guards": "why `genesis.compile` records a call anew, and why one cannot be replayed",
    "cache": "kernels that were loaded from disk, and files and directories that were passed over",
}
PATIENCE = 2.0  # seconds of compiling before a progress line

_told: set[str] = set()


def set_logs(*channels: str) -> None:
    """Switch these channels on, for the loggers `genesis.compile`, `genesis.guards` and `genesis.cache`.

    Other channels are switched off. Lines go to stderr, unless `logging` has been given a handler before. The
    environment variable GENESIS_LOGS, names between commas, does the same when genesis is imported.

    Args:
        channels: any of "compile" (kernels compiled), "guards" (calls that `genesis.compile` records anew, or cannot
            replay) and "cache" (kernels loaded, files passed over); none for silence.

    Raises ValueError for a channel that is not there.

    >>> genesis.set_logs("compile", "guards")
    >>> genesis.set_logs()
    """
    for name in channels:
        if name not in CHANNELS:
            raise ValueError(f"set_logs: there is no channel {name!r}; there are {', '.join(CHANNELS)}")
    _told.clear()
    _told.update(channels)
    if channels and not (top := _logging().getLogger("genesis")).hasHandlers():
        handler = _logging().StreamHandler()
        handler.setFormatter(_logging().Formatter("%(name)s: %(message)s"))
        top.addHandler(handler)
    for name in channels:
        _logging().getLogger(f"genesis.{name}").setLevel("INFO")


def _logging() -> ModuleType:
    """The standard library's module, imported late, as most processes log nothing."""
    import logging

    return logging


def tell(channel: str, message: str, *values: object) -> None:
    """Log `message % values`, if the channel is on."""
    if channel in _told:
        _logging().getLogger(f"genesis.{channel}").info(message, *values)


class CompilingLine:
    """A progress line for a terminal: how far a batch of kernels is, once compiling has taken `PATIENCE` seconds.

    Seconds add up from batch to batch until a line has been shown. Several threads may call.
    """

    _waited = 0.0  # in batches since the last line

    def __init__(self, kernels: int) -> None:
        self._kernels, self._done, self._width = kernels, 0, 0
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> CompilingLine:
        return self

    def step(self) -> None:
        """Another kernel is done."""
        with self._lock:
            self._done += 1
            waited = CompilingLine._waited + time.monotonic() - self._start
            if self._width or (waited > PATIENCE and is_watched()):
                self._show(f"genesis: compiling kernels, {self._done} of {self._kernels}; {waited:.0f} s so far")

    def __exit__(self, *_: object) -> None:
        took = time.monotonic() - self._start
        if self._width:
            waited = CompilingLine._waited + took
            self._show(f"genesis: compiled kernels for {waited:.1f} s; later runs find them on disk", "\n")
            CompilingLine._waited = 0.0
        else:
            CompilingLine._waited += took

    def _show(self, text: str, end: str = "") -> None:
        """Replace the line by `text`."""
        with contextlib.suppress(OSError, ValueError):  # it is closed
            sys.stderr.write(f"\r{text:<{self._width}}{end}")
            sys.stderr.flush()
        self._width = len(text)


def is_watched() -> bool:
    """Whether stderr is interactive: a terminal or a notebook."""
    stream: Any = sys.stderr
    return stream is not None and (stream.isatty() or hasattr(sys, "ps1"))


set_logs(*filter(None, os.environ.get("GENESIS_LOGS", "").replace(" ", "").split(",")))
