"""Worker processes, for datasets that are slow in Python itself, which threads cannot parallelize.

A process fetches tasks and sends batches back pickled. A thread here waits for it, so that the loop sees futures, as with
worker threads.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from genesis.runtime import rng
from genesis.utils.data.workers import END, LAST, NEXT_PASS, Fetch, Worker, WorkerInfo, here

Context = Any  # a context of `multiprocessing`, or the name of a start method

__all__ = ["ProcessWorker"]


class ProcessWorker(Worker):
    """A process, and the queue of its tasks. It ends at the first None, or with this process."""

    def __init__(self, info: WorkerInfo, opened: Callable[[], Fetch], context: Context) -> None:
        super().__init__()
        start: Any = multiprocessing.get_context(context) if isinstance(context, str) else context
        self._connection: Connection
        self._connection, theirs = start.Pipe()
        name = f"genesis-data-worker-{info.id}"
        self._process = start.Process(target=_work, args=(self._connection, theirs, info, opened), name=name, daemon=True)
        self._process.start()
        theirs.close()
        threading.Thread(target=self._pass_on, name=name, daemon=True).start()

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def _pass_on(self) -> None:
        """Send tasks and receive their batches, one after the other."""
        while (item := self.tasks.get()) is not None:
            future, task = item
            if future.set_running_or_notify_cancel():
                try:
                    self._connection.send(task)
                    kind, content = self._connection.recv()
                except (EOFError, OSError):
                    self._process.join(1)
                    future.set_exception(RuntimeError(
                        f"DataLoader: worker {self._process.name} ended with exit code {self._process.exitcode}"))
                    continue
                if kind == "error":
                    problem, text = content
                    problem.add_note(f"in {self._process.name}:\n{text}")
                    future.set_exception(problem)
                else:
                    future.set_result(END if kind == "end" else content)
            del item, future, task
        with contextlib.suppress(OSError):  # the process has already ended
            self._connection.send(LAST)
        self._connection.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.terminate()


def _work(others: Connection, connection: Connection, info: WorkerInfo, opened: Callable[[], Fetch]) -> None:
    """The process's loop: tasks until the last one, or until the other side closes."""
    others.close()  # this process's copy would keep the other side open
    here.info = info
    random.seed(info.seed)
    base = info.seed - info.id
    np.random.seed(np.random.SeedSequence([info.id, base % (1 << 32), base >> 32, 0]).generate_state(4))  # as PyTorch does
    rng.manual_seed(info.seed)
    fetch = None
    while True:
        try:
            task = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        if task is LAST:
            return
        try:
            if task is NEXT_PASS:
                fetch, batch = None, None
            else:
                fetch = fetch or opened()
                batch = fetch(task)
            answer = ("end", None) if batch is END else ("batch", batch)
        except Exception as problem:
            answer = "error", (problem, traceback.format_exc())
        try:
            connection.send(answer)
        except Exception as problem:  # the batch does not pickle
            connection.send(("error", (RuntimeError(f"DataLoader: a batch or an error does not pickle: {problem}"), "")))
