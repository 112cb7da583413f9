"""Samplers: the order of a dataset's positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from genesis.functions import sequential_draws
from genesis.ir.dtypes import int64
from genesis.ir.errors import ArgumentError
from genesis.random import multinomial
from genesis.runtime.groups import WORLD
from genesis.runtime.rng import Generator, default_generator
from genesis.tensor.from_python import from_data

Position = TypeVar("Position", covariant=True)


def _checked(generator: Generator | None) -> Generator:
    """The generator to draw from."""
    stream = default_generator if generator is None else generator
    if not isinstance(stream, Generator):
        raise TypeError(f"generator: wants a genesis.Generator, got {type(generator).__name__}")
    return stream


def _numbers(generator: Generator | None) -> np.random.Generator:
    """A NumPy generator seeded from genesis' stream, which advances."""
    stream = _checked(generator)
    return np.random.default_rng((stream.initial_seed(), stream.reserve(1)))


def seed_of(generator: Generator | None) -> int:
    """A 63-bit number, the seed of another stream."""
    stream = _checked(generator)
    if Generator.in_pytorchs_order:
        return int(sequential_draws.integers(stream.twister(), 1, int64, 0, 1 << 63)[0])
    return stream.initial_seed() + stream.reserve(1)


def shuffled(count: int, generator: Generator | None) -> list[int]:
    """0 to count-1 in random order."""
    if Generator.in_pytorchs_order:
        return sequential_draws.permutation(_checked(generator).twister(), count).tolist()
    return _numbers(generator).permutation(count).tolist()


def _some(count: int, wanted: int, generator: Generator | None) -> Iterator[int]:
    """`wanted` positions below `count`, drawn with replacement."""
    if not Generator.in_pytorchs_order:
        yield from _numbers(generator).integers(0, count, wanted).tolist() if wanted else ()
        return
    for start in range(0, wanted, 32):  # PyTorch's sampler draws 32 at once
        part = min(32, wanted - start)
        yield from sequential_draws.integers(_checked(generator).twister(), part, int64, 0, count).tolist()


def _check_count(name: str, count: int) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        raise ValueError(f"{name}: wants a positive number of samples, got {count!r}")


class Sampler(Generic[Position]):
    """Positions of a dataset, in some order. Subclasses define `__iter__` and `__len__`."""

    def __iter__(self) -> Iterator[Position]:
        raise NotImplementedError(f"{type(self).__name__}: a sampler wants a method __iter__()")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, .. for the samples of `data_source`."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]: return iter(range(len(self.data_source)))
    def __len__(self) -> int: return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All positions of `data_source` in a random order, a new one for each iteration.

    Args:
        data_source: an object with a length.
        replacement: draw with replacement, so that positions may repeat.
        num_samples: the number of positions, by default all; without replacement, further ones start a new order.
        generator: a `genesis.Generator`; by default the one of `genesis.manual_seed`.

    >>> sorted(RandomSampler(range(5)))
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Generator | None = None
    ) -> None:
        _check_count("RandomSampler", len(data_source) if num_samples is None else num_samples)
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """The number of positions."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, wanted = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None and Generator.in_pytorchs_order:
            generator = Generator(seed_of(None))
        if self.replacement:
            yield from _some(count, wanted, generator)
            return
        while wanted > 0:
            if not count:
                raise ValueError(f"RandomSampler: there are no samples to draw {wanted} from")
            yield from shuffled(count, generator)[:wanted]
            wanted -= count
        if count and not wanted and self.generator is not None and Generator.in_pytorchs_order:
            shuffled(count, generator)  # which PyTorch draws before it finds that no more is wanted

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The positions `indices` in a random order, a new one for each iteration."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in shuffled(len(self.indices), self.generator):
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` positions, position i with a probability in proportion to `weights[i]`.

    Without `replacement` positions do not repeat. Raises ValueError for weights that are not probabilities, and for more
    samples than positions to draw.

    >>> list(WeightedRandomSampler([0.0, 2.0, 0.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self, weights: ArrayLike, num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        _check_count("WeightedRandomSampler", num_samples)
        weights = np.asarray(weights, np.float64)
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise ArgumentError("WeightedRandomSampler: weights must be one row of finite numbers, none below 0 and some above")
        if not replacement and num_samples > np.count_nonzero(weights):
            raise ArgumentError(
                f"WeightedRandomSampler: cannot draw {num_samples} samples without replacement; "
                f"{np.count_nonzero(weights)} weights are above 0"
            )
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        if Generator.in_pytorchs_order:
            weights = from_data(self.weights)
            drawn: Any = multinomial(weights, self.num_samples, self.replacement, generator=self.generator)
        else:
            shares = self.weights / self.weights.sum()
            drawn = _numbers(self.generator).choice(len(shares), self.num_samples, self.replacement, shares)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler[int]):
    """The positions of one of several processes: every `num_replicas`-th from `rank` on, in an order that all share.

    They default to the number of ranks and this process's rank in `genesis.distributed`; 1 and 0 without it. With `shuffle`,
    `set_epoch` gives a new order. All processes get equally many: the first positions repeat at the end, or with `drop_last`
    the last ones are dropped. Raises ValueError for an invalid rank.

    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        world = next(iter(WORLD), None)
        num_replicas = (world.size if world else 1) if num_replicas is None else num_replicas
        rank = (world.rank if world else 0) if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler: rank is {rank}; want 0 to {num_replicas - 1}")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0

    def set_epoch(self, epoch: int) -> None:
        """Use the order of `epoch` from now on."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        count, total = len(self.dataset), len(self) * self.num_replicas
        if not self.shuffle:
            order = np.arange(count)
        elif Generator.in_pytorchs_order:
            order = np.array(shuffled(count, Generator(self.seed + self.epoch)))
        else:
            order = np.random.default_rng([self.seed, self.epoch]).permutation(count)
        return iter(np.resize(order, total)[self.rank :: self.num_replicas].tolist())

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.num_replicas if self.drop_last else -(-count // self.num_replicas)


class BatchSampler(Sampler[list[int]]):
    """The positions of `sampler` in lists of `batch_size`; the last may be shorter, or is dropped with `drop_last`.

    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_count("BatchSampler", batch_size)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        positions = iter(self.sampler)
        while batch := list(islice(positions, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
