"""DataLoader: iterates over batches of a dataset, which it or its workers fetch."""

from __future__ import annotations

import functools
import itertools
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, ClassVar

from genesis.ir.annotations import Tree
from genesis.runtime.rng import Generator
from genesis.utils.data.collate import default_collate, default_convert, gathered
from genesis.utils.data.dataset import IterableDataset
from genesis.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler, seed_of
from genesis.utils.data.workers import (
    END, NEXT_PASS, Batch, Context, Fetch, ProcessWorker, Task, ThreadWorker, Worker, WorkerInfo, end, get_worker_info, here,
    prefetched,
)


@dataclass(frozen=True)
class Fetching:
    """Turns a loader's samples into batches. It has no reference to the loader, so waiting workers do not keep it alive.

    Attributes:
        is_batched: whether a task is a list of positions or, for an iterable dataset, asks for a list of samples.
        batch_size, drop_last: of an iterable dataset's batches.
    """

    dataset: Any
    collate_fn: Fetch
    is_iterable: bool
    is_batched: bool
    batch_size: int | None
    drop_last: bool
    worker_init_fn: Callable[[int], None] | None

    def opened_in_worker(self) -> Fetch:
        """As `opened`, in a worker; calls `worker_init_fn` the first time."""
        info = get_worker_info()
        if info is not None and self.worker_init_fn is not None and not getattr(here, "is_initialized", False):
            self.worker_init_fn(info.id)
            here.is_initialized = True
        return self.opened()

    def opened(self) -> Fetch:
        """A function from a task (a position, a list of them, or None for the next) to a batch, for one pass."""
        if self.is_iterable:
            return self._following(iter(self.dataset))
        return self._at_positions if self.is_batched else lambda position: self.collate_fn(self.dataset[position])

    def fetched(self, tasks: Iterator[Task]) -> Iterator[Batch]:
        """The batches of `tasks`, fetched lazily; an error does not end them."""
        return itertools.takewhile(lambda batch: batch is not END, _each(self.opened(), tasks))

    def _at_positions(self, positions: Sequence[int]) -> Batch:
        dataset, collate = self.dataset, self.collate_fn
        if collate is default_collate and (batch := gathered(dataset, positions)) is not None:
            return batch
        if hasattr(dataset, "__getitems__"):
            return collate(dataset.__getitems__(positions))
        return collate([dataset[p] for p in positions])

    def _following(self, samples: Iterator[Tree]) -> Fetch:
        def next_batch(_: Task) -> Batch:
            if self.batch_size is None:
                sample = next(samples, END)
                return END if sample is END else self.collate_fn(sample)
            batch = list(itertools.islice(samples, self.batch_size))
            return self.collate_fn(batch) if batch and not (self.drop_last and len(batch) < self.batch_size) else END

        return next_batch


class DataLoader:
    """The samples of a dataset in batches; each `for` loop over it is one pass.

    Args:
        dataset: an object with `__getitem__` and `__len__`, or an `IterableDataset`.
        batch_size: samples per batch; None gives single samples, which may already be batches.
        shuffle: visit the samples in a random order, a new one each pass.
        sampler: the positions to visit, in order, instead of `shuffle`.
        batch_sampler: lists of positions, a batch each, instead of `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers: threads that prefetch and share the dataset; 0 fetches in the loop.
        multiprocessing_context: "fork", "spawn", "forkserver" or a context of `multiprocessing`: the workers are processes
            started this way, for datasets that are slow in Python itself. They have copies of the dataset.
        collate_fn: makes a batch from a list of samples; `default_collate` stacks them.
        drop_last: drop an incomplete last batch.
        timeout: the seconds to wait for a worker's batch; 0 waits forever.
        worker_init_fn: called once in each worker, with its number.
        generator: a `genesis.Generator` for the random order; by default the one of `genesis.manual_seed`.
        prefetch_factor: the number of batches that each worker prefetches.
        persistent_workers: keep the workers, and their copies of the dataset, between passes; they end with the loader.
        pin_memory, pin_memory_device, in_order: no effect; nothing needs pinning, and batches always come in order.

    A worker's exception is raised in the loop, with the worker's traceback. Raises ValueError for conflicting arguments.

    >>> data = genesis.utils.data.TensorDataset(genesis.arange(5), genesis.arange(5) ** 2)
    >>> for x, y in DataLoader(data, batch_size=2, drop_last=True):
    ...     print(x, y)
    tensor([0, 1]) tensor([0, 1])
    tensor([2, 3]) tensor([4, 9])
    """

    default_context: ClassVar[Context] = None  # of workers; None for threads
    __class_getitem__ = classmethod(GenericAlias)  # type: ignore[var-annotated]

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None, num_workers: int = 0, collate_fn: Fetch | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None, multiprocessing_context: Context = None,
        generator: Generator | None = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:
        self._iterable = isinstance(dataset, IterableDataset)
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_order(self._iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        elif not self._iterable:
            if sampler is None:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
            batch_sampler = None if batch_size is None else BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = (prefetch_factor or 2) if num_workers else None
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._kept: tuple[int, list[Worker]] = 0, []  # (process id of their owner, workers between two passes)

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"
        if name in fixed and "_kept" in vars(self):
            raise ValueError(f"{type(self).__name__}: {name} cannot change, as samplers know it; want another loader")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        """Whether samples are fetched one by one and collated. Libraries override this, and `_index_sampler`."""
        return self.batch_sampler is not None or (self._iterable and self.batch_size is not None)

    @property
    def _index_sampler(self) -> Any:
        """The sampler of the keys by which batches, or samples, are fetched."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Batch]:
        tasks: Iterator[Task] = itertools.repeat(None) if self._iterable else iter(self._index_sampler)
        fetching = Fetching(
            self.dataset, self.collate_fn, self._iterable, self._auto_collation, self.batch_size, self.drop_last,
            self.worker_init_fn)
        if not self.num_workers:
            seed_of(self.generator)  # drawn even without workers, as in PyTorch
            return fetching.fetched(tasks)
        process, workers = self._kept
        self._kept = 0, []  # a second pass at the same time has workers of its own
        if process != os.getpid() or not all([worker.is_alive() for worker in workers]):
            workers = self._started(fetching)
            if self.persistent_workers:
                weakref.finalize(self, end, workers)
        release = functools.partial(self._keep, os.getpid()) if self.persistent_workers else end
        futures = prefetched(tasks, workers, self.prefetch_factor or 2, self.timeout or None, release)
        next(futures)  # it has begun, so its end releases the workers even if no batch is taken
        return _each(Future.result, futures)

    def _keep(self, process: int, workers: list[Worker]) -> None:
        """Let workers wait for another pass, unless others do."""
        if self._kept[1]:
            end(workers)
        else:
            for worker in workers:
                worker.submit(NEXT_PASS)
            self._kept = process, workers

    def _started(self, fetching: Fetching) -> list[Worker]:
        base = seed_of(self.generator)
        infos = [WorkerInfo(i, self.num_workers, base + i, self.dataset) for i in range(self.num_workers)]
        context = self.default_context if self.multiprocessing_context is None else self.multiprocessing_context
        start = ThreadWorker if context is None else functools.partial(ProcessWorker, context=context)
        return [start(info, fetching.opened_in_worker) for info in infos]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": (0, [])}

    def __len__(self) -> int:
        """The number of batches. Raises TypeError if the dataset or the sampler has no length."""
        if not self._iterable:
            return len(self._index_sampler)
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _each(outcome: Callable[[Any], Batch], items: Iterator[Any]) -> Iterator[Batch]:
    """The outcome of each item. An error does not end them, and a StopIteration, which would, is a RuntimeError."""
    def checked(item: Any) -> Batch:
        try:
            return outcome(item)
        except StopIteration as problem:
            raise RuntimeError("DataLoader: fetching a batch raised StopIteration, which is no end of the data") from problem

    return map(checked, items)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    """Raise ValueError for worker settings that are out of range, or given without workers."""
    if num_workers < 0 or timeout < 0 or (prefetch_factor is not None and prefetch_factor < 1):
        raise ValueError(
            f"DataLoader: want num_workers and timeout not below 0 and prefetch_factor above it, got {num_workers}, "
            f"{timeout} and {prefetch_factor}"
        )
    if not num_workers and (prefetch_factor is not None or persistent_workers):
        raise ValueError("DataLoader: prefetch_factor and persistent_workers are of workers; want num_workers > 0")


def _check_order(
    is_iterable: bool, batch_size: int | None, shuffle: bool | None, sampler: Iterable[int] | None,
    batch_sampler: Iterable[Sequence[int]] | None, drop_last: bool,
) -> None:
    """Raise ValueError for conflicting arguments: several that determine the order or the batches."""
    if is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
        raise ValueError("DataLoader: an IterableDataset has its own order; leave out shuffle, sampler and batch_sampler")
    if sampler is not None and shuffle:
        raise ValueError("DataLoader: sampler and shuffle exclude each other")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last")
    if batch_size is None and drop_last:
        raise ValueError("DataLoader: drop_last wants a batch_size")
