"""Watches the processes of other ranks on this machine for their end."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

KILLED = "gone: its process was killed, or ended without a word"
_MACHINE, _PROCESSES = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")


def machine() -> str:
    """An identifier shared by processes that can see each other; empty if they cannot."""
    return _MACHINE.read_text().strip() + os.readlink(_PROCESSES) if hasattr(os, "pidfd_open") else ""


class Neighbours:
    """Calls `tell(rank, all watched ranks)`, on a thread, when another rank's process ends.

    Linux only.
    """

    def __init__(self, comm: Any, tell: Callable[[int, Collection[int]], None]) -> None:
        self._tell = tell
        self._files: dict[int, int] = {}  # file descriptor of a process -> its rank
        here = machine()
        for rank, (there, process) in enumerate(comm.allgather((here, os.getpid()))):
            if here and there == here and rank != comm.rank:
                with contextlib.suppress(OSError):  # may be forbidden
                    self._files[os.pidfd_open(process)] = rank
        self._thread: threading.Thread | None = None
        if self._files:
            self._end = os.eventfd(0)
            self._thread = threading.Thread(target=self._watch, name="neighbours", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        if self._thread is not None:
            os.eventfd_write(self._end, 1)
            self._thread.join()
            self._thread = None
            for file in (self._end, *self._files):
                os.close(file)

    def _watch(self) -> None:
        poll = select.poll()
        for file in (self._end, *self._files):
            poll.register(file, select.POLLIN)
        while True:
            for file, _ in poll.poll():
                if file == self._end:
                    return
                poll.unregister(file)
                self._tell(self._files[file], self._files.values())
