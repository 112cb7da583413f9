"""Workers that prefetch batches for the loop: threads, unless processes are requested.

Threads share the dataset, so nothing is pickled or copied, and no process is forked while threads run. File reads, NumPy and
genesis's kernels release the interpreter's lock and run concurrently with the training step. A process, for datasets that are
slow in Python itself, fetches tasks and sends batches back pickled; a thread here waits for it, so that the loop sees futures.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import multiprocessing
import random
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import numpy as np

from genesis.runtime import rng
from genesis.runtime.rng import Generator

Task = Any  # a position, a list of them, or None for the next
Batch = Any
Fetch = Callable[[Task], Batch]
END: Batch = object()  # a worker's result once it has no more batches


class _Order(enum.Enum):  # members keep their identity when pickled
    NEXT_PASS = enum.auto()
    LAST = enum.auto()


NEXT_PASS: Task = _Order.NEXT_PASS  # the following tasks are another pass over the dataset
LAST: Task = _Order.LAST  # no task comes after it


@dataclass(frozen=True)
class WorkerInfo:
    """A worker's number, the number of workers, its seed, and the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: object


here = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """This thread's worker information; None outside of workers."""
    return getattr(here, "info", None)


def thread_safe_generator() -> Generator | None:
    """This worker's random number generator, with its seed; None outside of workers, meaning the default one."""
    info = get_worker_info()
    if info is None:
        return None
    if not hasattr(here, "generator"):
        here.generator = Generator().manual_seed(info.seed)
    return here.generator  # type: ignore[no-any-return]


class Worker:
    """A thread or process that fetches batches, and the queue of its tasks. It ends at the first None."""

    def __init__(self) -> None:
        self.tasks: SimpleQueue[tuple[Future[Batch], Task] | None] = SimpleQueue()

    def submit(self, task: Task) -> Future[Batch]:
        """The future of a task's batch."""
        future: Future[Batch] = Future()
        self.tasks.put((future, task))
        return future

    def is_alive(self) -> bool:
        """Whether it runs."""
        raise NotImplementedError(f"{type(self).__name__} has no is_alive()")


class ThreadWorker(Worker):
    """A thread; as a daemon it never keeps a program alive."""

    def __init__(self, info: WorkerInfo, opened: Callable[[], Fetch]) -> None:
        super().__init__()
        name = f"genesis-data-worker-{info.id}"
        threading.Thread(target=_work, args=(self.tasks, info, opened), name=name, daemon=True).start()

    def is_alive(self) -> bool:
        return True


def _work(tasks: SimpleQueue[tuple[Future[Batch], Task] | None], info: WorkerInfo, opened: Callable[[], Fetch]) -> None:
    here.info = info
    fetch = None
    while (item := tasks.get()) is not None:
        future, task = item
        if future.set_running_or_notify_cancel():
            try:
                fetch = None if task is NEXT_PASS else fetch or opened()
                future.set_result(None if fetch is None else fetch(task))
            except BaseException as problem:
                future.set_exception(problem)
        del item, future, task  # do not keep the batch alive after the consumer has it


def end(workers: Sequence[Worker]) -> None:
    """Make workers end after their pending tasks."""
    for worker in workers:
        worker.tasks.put(None)


def prefetched(
    tasks: Iterator[Task], workers: list[Worker], ahead: int, timeout: float | None, release: Callable[[list[Worker]], None]
) -> Iterator[Any]:
    """None, then the done futures of `tasks` in order, computed by the workers, each at most `ahead` tasks in advance.

    When the loop ends, for any reason, the workers are released.
    """
    pending: deque[tuple[Worker, Future[Batch]]] = deque()
    try:
        yield None
        for worker, task in zip(itertools.cycle(workers), itertools.islice(tasks, ahead * len(workers))):
            pending.append((worker, worker.submit(task)))
        while pending:
            worker, future = pending[0]
            try:
                has_ended = future.exception(timeout) is None and future.result() is END
            except TimeoutError:
                raise RuntimeError(f"DataLoader: a worker took longer than timeout={timeout} s for a batch") from None
            del future  # do not keep the batch alive after the consumer has it
            if has_ended:
                pending.popleft()
                continue
            for task in itertools.islice(tasks, 1):
                pending.append((worker, worker.submit(task)))
            yield pending.popleft()[1]
    finally:
        for _, future in pending:
            future.cancel()
        release(workers)


Context = Any  # a context of `multiprocessing`, or the name of a start method


class ProcessWorker(Worker):
    """A process, and the queue of its tasks. It ends at the first None, or with this process."""

    def __init__(self, info: WorkerInfo, opened: Callable[[], Fetch], context: Context) -> None:
        super().__init__()
        start: Any = multiprocessing.get_context(context) if isinstance(context, str) else context
        self._connection: Connection
        self._connection, theirs = start.Pipe()
        name = f"genesis-data-worker-{info.id}"
        self._process = start.Process(target=_serve, args=(self._connection, theirs, info, opened), name=name, daemon=True)
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


def _serve(others: Connection, connection: Connection, info: WorkerInfo, opened: Callable[[], Fetch]) -> None:
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
