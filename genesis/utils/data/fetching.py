"""From tasks to batches: done in the loop, or by each of the loader's workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from genesis.ir.annotations import Tree
from genesis.utils.data.collate import default_collate, gathered
from genesis.utils.data.workers import END, Batch, Fetch, Task, get_worker_info, here

__all__ = ["Fetching"]


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
        """The batches of `tasks`, fetched lazily."""
        fetch = self.opened()
        for task in tasks:
            batch = fetch(task)
            if batch is END:
                return
            yield batch

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
