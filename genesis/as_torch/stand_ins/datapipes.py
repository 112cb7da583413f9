"""Datasets with chained functions: PyTorch's `IterDataPipe` and `MapDataPipe`, and their decorators."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from genesis.as_torch.stand_ins.compiler import returned
from genesis.as_torch.stand_ins.settings import no_effect
from genesis.utils.data.dataset import Dataset, IterableDataset, Sample
from genesis.utils.data.loader import DataLoader

argument_validation = runtime_validation = returned
runtime_validation_disabled = guaranteed_datapipes_determinism = no_effect


def non_deterministic(arg: Any) -> Any:
    """A decorator that changes nothing."""
    return arg if isinstance(arg, type) else returned


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Any:
    """Decorator that makes a class of pipes the method `name` of all pipes of its kind; the pipe is its first argument."""
    def register(cls: type) -> type:
        kind = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        setattr(kind, name, lambda self, *args, **options: cls(self, *args, **options))
        return cls

    return register


class DataChunk(list[Any]):
    """A list of samples."""

    def raw_iterator(self) -> Iterator[Any]:
        """The samples."""
        return iter(self)


class IterDataPipe(IterableDataset[Sample]):
    """An iterable dataset with functions that return derived datasets.

    >>> class Numbers(IterDataPipe):
    ...     def __iter__(self):
    ...         yield from range(6)
    >>> [*Numbers().filter(lambda x: x % 2).map(lambda x: x * 10).batch(2)]
    [[10, 30], [50]]
    """

    def map(self, fn: Callable[[Any], Any]) -> IterDataPipe:
        """`fn` applied to each sample."""
        return _Piped(lambda: (fn(sample) for sample in self))

    def filter(self, filter_fn: Callable[[Any], bool]) -> IterDataPipe:
        """The samples for which `filter_fn` holds."""
        return _Piped(lambda: (sample for sample in self if filter_fn(sample)))

    def batch(self, batch_size: int, drop_last: bool = False) -> IterDataPipe:
        """Lists of `batch_size` samples."""
        return _Piped(lambda: _batches(iter(self), batch_size, drop_last))

    def shuffle(self, *, buffer_size: int = 10000) -> IterDataPipe:
        """The samples in random order, by a buffer of `buffer_size` samples."""
        return _Piped(lambda: _shuffled(iter(self), buffer_size))


DFIterDataPipe = IterDataPipe


class _Piped(IterDataPipe):
    def __init__(self, samples: Callable[[], Iterator[Any]]) -> None:
        self._samples = samples

    def __iter__(self) -> Iterator[Any]:
        return self._samples()


def _batches(samples: Iterator[Any], size: int, drop_last: bool) -> Iterator[DataChunk]:
    chunk = DataChunk()
    for sample in samples:
        chunk.append(sample)
        if len(chunk) == size:
            yield chunk
            chunk = DataChunk()
    if chunk and not drop_last:
        yield chunk


def _shuffled(samples: Iterator[Any], size: int) -> Iterator[Any]:
    buffered: list[Any] = []
    for sample in samples:
        buffered.append(sample)
        if len(buffered) > size:
            yield buffered.pop(random.randrange(len(buffered)))
    random.shuffle(buffered)
    yield from buffered


class MapDataPipe(Dataset[Sample]):
    """An indexed dataset with a function that returns a derived dataset."""

    def map(self, fn: Callable[[Any], Any]) -> MapDataPipe:
        """`fn` applied to each sample."""
        return _Mapped(self, fn)


class _Mapped(MapDataPipe):
    def __init__(self, source: Any, fn: Callable[[Any], Any]) -> None:
        self._source, self._fn = source, fn

    def __getitem__(self, index: Any) -> Any:
        return self._fn(self._source[index])

    def __len__(self) -> int:
        return len(self._source)


# ---- iterators of loaders by PyTorch's private names, which libraries make of loaders of their own ----
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
    vars(made).update(
        _iterable=loader._dataset_kind == _DatasetKind.Iterable, _auto_collation=loader._auto_collation,
        batch_size=getattr(loader, "batch_size", None), drop_last=loader.drop_last)
    return made
