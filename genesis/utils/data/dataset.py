"""Datasets: samples by position, or in sequence."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from genesis.ir.errors import FormError
from genesis.runtime.rng import Generator
from genesis.tensor.handle import Tensor
from genesis.utils.data.sampler import shuffled

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Samples by position. Subclasses define `__getitem__` and, for most uses, `__len__`.

    A method `__getitems__(positions)`, which returns a list of samples, fetches a whole batch.

    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         return index ** 2
    >>> data = Squares() + Squares()
    >>> [data[i] for i in range(len(data))]
    [0, 1, 4, 0, 1, 4]
    """

    def __getitem__(self, index: int) -> Sample:
        raise NotImplementedError(f"{type(self).__name__}: a dataset wants a method __getitem__(index)")

    def __add__(self, other: Dataset[Sample]) -> ConcatDataset[Sample]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample]):
    """A stream of samples. Subclasses define `__iter__`.

    A loader with several workers iterates once in each; `get_worker_info()` identifies the worker, to choose its part.
    """

    def __iter__(self) -> Iterator[Sample]:
        raise NotImplementedError(f"{type(self).__name__}: an iterable dataset wants a method __iter__()")

    def __add__(self, other: Any) -> ChainDataset[Sample]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors: sample i is (t[i], ..). Raises ValueError if the first extents differ.

    >>> data = TensorDataset(genesis.arange(6).reshape(3, 2), genesis.arange(3))
    >>> data[1], len(data)
    ((tensor([2, 3]), tensor(1)), 3)
    """

    def __init__(self, *tensors: Tensor) -> None:
        rows = {t.shape[:1] for t in tensors}
        if len(rows) != 1 or () in rows:
            raise FormError(
                f"TensorDataset: wants tensors with the same number of rows, got shapes {[t.shape for t in tensors]}"
            )
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Tensor, ...]: return tuple([t[index] for t in self.tensors])
    def __len__(self) -> int: return self.tensors[0].shape[0]


class Subset(Dataset[Sample]):
    """The samples of `dataset` at the positions `indices`."""

    def __init__(self, dataset: Dataset[Sample], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Sample:
        chosen: Any = [self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]
        return self.dataset[chosen]

    def __len__(self) -> int: return len(self.indices)


class ConcatDataset(Dataset[Sample]):
    """Datasets one after the other. Raises ValueError for an empty list, TypeError for an iterable dataset."""

    def __init__(self, datasets: Iterable[Dataset[Sample]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: wants one dataset at least")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise TypeError("ConcatDataset: an IterableDataset has no positions; chain the iterators instead")
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Sample:
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"ConcatDataset: index {index} is out of range for {len(self)} samples")
        which = bisect_right(self.cumulative_sizes, position)
        return self.datasets[which][position - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Sample]):
    """Iterable datasets, one after the other.

    >>> list(ChainDataset([[1, 2], [3]]))
    [1, 2, 3]
    """

    def __init__(self, datasets: Iterable[Iterable[Sample]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Sample]:
        for dataset in self.datasets:
            yield from dataset

    def __len__(self) -> int:
        return sum(map(len, self.datasets))  # type: ignore[arg-type]


class StackDataset(Dataset[Any]):
    """The samples of several datasets of one length at the same position: as a tuple, or by name as a dict.

    Raises ValueError for no datasets, for datasets given both ways, and for different lengths.

    >>> StackDataset(image=["a", "b"], label=[0, 1])[1]
    {'image': 'b', 'label': 1}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.datasets: Any = args or kwargs
        lengths = {len(dataset) for dataset in (args or kwargs.values())}
        if bool(args) == bool(kwargs) or len(lengths) != 1:
            raise ValueError(f"StackDataset: wants datasets of one length, by position or by name; got {sorted(lengths)}")

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return len(next(iter(self.datasets.values())) if isinstance(self.datasets, dict) else self.datasets[0])


def random_split(
    dataset: Dataset[Sample], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[Sample]]:
    """Disjoint random subsets with `lengths` samples each (or fractions that add up to 1).

    Samples left over by fractions go one by one to the first subsets. Raises ValueError for lengths that do not add up.

    >>> [len(part) for part in random_split(list(range(10)), [0.75, 0.25])]
    [8, 2]
    """
    size = len(dataset)  # type: ignore[arg-type]
    sizes = list(lengths)
    if math.isclose(sum(sizes), 1) and all(0 <= fraction <= 1 for fraction in sizes):
        sizes = [math.floor(size * fraction) for fraction in sizes]
        for i in range(size - sum(sizes)):  # type: ignore[arg-type]
            sizes[i % len(sizes)] += 1
    if sum(sizes) != size:
        raise ValueError(f"random_split: lengths {list(lengths)} add up neither to the dataset's {size} nor to 1")
    order = shuffled(size, generator)
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[int(end - count) : int(end)]) for end, count in zip(ends, sizes, strict=True)]
