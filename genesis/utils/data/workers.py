"""Workers that prefetch batches for the loop: threads, unless processes are requested.

Threads share the dataset, so nothing is pickled or copied, and no process is forked while threads run. File reads, NumPy and
genesis's kernels release the interpreter's lock and run concurrently with the training step.
"""

from __future__ import annotations

import enum
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from genesis.runtime.rng import Generator

__all__ = ["END", "LAST", "NEXT_PASS", "Batch", "Fetch", "Task", "ThreadWorker", "Worker", "WorkerInfo", "end",
           "get_worker_info", "here", "prefetched", "thread_safe_generator"]

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
    tasks: Iterator[Task], workers: Sequence[Worker], ahead: int, timeout: float | None, keep: bool = False
) -> Iterator[Batch]:
    """The results of `tasks` in order, computed by the workers, each at most `ahead` tasks in advance.

    A worker's exception is raised here, with the worker's traceback. When the loop ends, for any reason, the workers end too,
    or, if they are to be kept, wait for the tasks of another pass.
    """
    pending: deque[tuple[Worker, Future[Batch]]] = deque()
    try:
        for worker, task in zip(itertools.cycle(workers), itertools.islice(tasks, ahead * len(workers))):
            pending.append((worker, worker.submit(task)))
        while pending:
            worker, future = pending.popleft()
            try:
                result = future.result(timeout)
            except TimeoutError:
                if future.done():
                    raise
                raise RuntimeError(f"DataLoader: a worker took longer than timeout={timeout} s for a batch") from None
            if result is END:
                continue
            for task in itertools.islice(tasks, 1):
                pending.append((worker, worker.submit(task)))
            del future
            yield result
    finally:
        for _, future in pending:
            future.cancel()
        if keep:
            for worker in workers:
                worker.submit(NEXT_PASS)
        else:
            end(workers)
