"""Iterators of loaders by PyTorch's private names: libraries make them of loaders of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from genesis.utils.data.loader import DataLoader


class _DatasetKind:
    """Whether a loader's dataset is asked for positions or iterated over."""

    Map = 0
    Iterable = 1


class _BaseDataLoaderIter:
    """One pass over `loader`: a DataLoader, or an object that has what PyTorch's iterators ask of one."""

    def __init__(self, loader: Any) -> None:
        self._batches = iter(loader if isinstance(loader, DataLoader) else _loader_like(loader))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._batches)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter): ...
class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter): ...


class _Asked(DataLoader):
    """A DataLoader that is told whether its samples are collated."""

    _auto_collation = False


def _loader_like(loader: Any) -> DataLoader:
    """A DataLoader that makes the batches which PyTorch's iterator makes of these attributes."""
    workers = loader.num_workers
    made = _Asked(
        loader.dataset, None, sampler=loader._index_sampler, num_workers=workers, collate_fn=loader.collate_fn,
        timeout=loader.timeout, worker_init_fn=loader.worker_init_fn, generator=loader.generator,
        multiprocessing_context=loader.multiprocessing_context, prefetch_factor=loader.prefetch_factor if workers else None)
    made._iterable, made._auto_collation = loader._dataset_kind == _DatasetKind.Iterable, loader._auto_collation
    made.batch_size, made.drop_last = getattr(loader, "batch_size", None), loader.drop_last
    return made


NAMES = {f"torch.utils.data.dataloader.{kind.__name__}": kind for kind in (
    _DatasetKind, _BaseDataLoaderIter, _SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter)}
NAMES["torch.utils.data._DatasetKind"] = _DatasetKind
