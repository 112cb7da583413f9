"""Datasets and samplers: what they give, beside torch's where there is one order."""

import numpy as np
import pytest
import torch.utils.data

import genesis
from genesis.utils import data


def test_tensor_datasets_give_rows():
    x, y = genesis.arange(6).reshape(3, 2), genesis.tensor([5, 6, 7])
    rows = data.TensorDataset(x, y)
    assert len(rows) == 3
    assert [(a.tolist(), b.item()) for a, b in (rows[i] for i in range(3))] == [([0, 1], 5), ([2, 3], 6), ([4, 5], 7)]
    with pytest.raises(ValueError, match=r"wants tensors with the same number of rows, got shapes \[\(3, 2\), \(2,\)\]"):
        data.TensorDataset(x, genesis.ones(2))
    with pytest.raises(ValueError, match="TensorDataset"):
        data.TensorDataset(genesis.ones(()))


@pytest.mark.parametrize("index", [0, 4, 5, 8, -1, -9])
def test_concatenated_datasets_count_through(index):
    parts = [list(range(5)), [], list(range(5, 9))]
    assert data.ConcatDataset(parts)[index] == torch.utils.data.ConcatDataset(parts)[index]


def test_concatenation_refuses_what_has_no_positions():
    joined = data.ConcatDataset([[1, 2]])
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"index {index} is out of range for 2 samples"):
            joined[index]
    with pytest.raises(TypeError, match="no positions"):
        data.Dataset() + data.IterableDataset()
    with pytest.raises(ValueError, match="one dataset at least"):
        data.ConcatDataset([])


@pytest.mark.parametrize("lib", [data, torch.utils.data])
def test_streams_are_added_and_subsets_take_slices_and_lists(lib):
    class Stream(lib.IterableDataset):
        def __iter__(self):
            yield from (1, 2)

    assert list(Stream() + Stream() + Stream()) == [1, 2] * 3
    rows = lib.Subset(lib.Subset(np.arange(10), [9, 2, 5, 0]), [3, 0, 2])
    assert rows[:2].tolist() == [0, 9] and rows[[2, 0]].tolist() == [5, 0] and rows[1] == 9


@pytest.mark.parametrize("lib", [genesis, torch])
@pytest.mark.parametrize("sampler", [
    lambda data: data.WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False), lambda data: data.RandomSampler(range(9)),
    lambda data: data.SubsetRandomSampler(range(9)), lambda data: data.RandomSampler(range(9), replacement=True)])
def test_samplers_draw_when_the_first_position_is_taken(sampler, lib):
    drawn = sampler(lib.utils.data)
    lib.manual_seed(3)
    expected, begun = list(drawn), iter(drawn)
    lib.manual_seed(3)
    assert list(begun) == expected


@pytest.mark.parametrize("lengths", [[7, 3], [0.55, 0.25, 0.2], [1.0], [10, 0], [0.5, 0.5]])
def test_random_splits_share_no_sample_and_have_torchs_sizes(lengths):
    parts = data.random_split(range(11 if lengths[0] < 1 else 10), lengths)
    theirs = torch.utils.data.random_split(range(11 if lengths[0] < 1 else 10), lengths)
    assert [len(p) for p in parts] == [len(p) for p in theirs]
    drawn = [p[i] for p in parts for i in range(len(p))]
    assert sorted(drawn) == list(range(len(drawn)))


def test_splits_that_do_not_add_up_are_refused():
    with pytest.raises(ValueError, match=r"lengths \[4, 5\] add up neither to the dataset's 10 nor to 1"):
        data.random_split(range(10), [4, 5])


def test_a_generator_decides_the_order():
    def orders(generator):
        sampler = data.RandomSampler(range(50), generator=generator)
        return [list(sampler), list(sampler)]

    first = orders(genesis.Generator(3))
    assert first == orders(genesis.Generator().manual_seed(3)) != orders(genesis.Generator(4))
    assert first[0] != first[1] and sorted(first[0]) == sorted(first[1]) == list(range(50))
    genesis.manual_seed(3)
    assert orders(None) == first
    with pytest.raises(TypeError, match=r"generator: wants a genesis.Generator, got int"):
        list(data.RandomSampler(range(3), generator=3))


def test_random_samplers_draw_as_many_as_they_say():
    assert len(list(data.RandomSampler(range(4), num_samples=10))) == len(data.RandomSampler(range(4), num_samples=10)) == 10
    assert sorted(list(data.RandomSampler(range(4), num_samples=8))[4:]) == [0, 1, 2, 3]
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=300))
    assert set(drawn) == {0, 1, 2} and len(drawn) == 300
    for source, count in (([], None), (range(3), 0)):
        with pytest.raises(ValueError, match="a positive number of samples, got 0"):
            data.RandomSampler(source, num_samples=count)


def test_subset_samplers_visit_their_positions():
    assert sorted(data.SubsetRandomSampler([3, 5, 9])) == [3, 5, 9]


def test_weighted_samplers_follow_their_weights():
    counts = np.bincount(list(data.WeightedRandomSampler([1.0, 0.0, 3.0], 4000, generator=genesis.Generator(0))), minlength=3)
    assert counts[1] == 0 and 2800 < counts[2] < 3200
    assert sorted(data.WeightedRandomSampler([1.0, 2.0, 0.5], 3, replacement=False)) == [0, 1, 2]
    assert list(data.WeightedRandomSampler(genesis.tensor([0.0, 1.0]), 2)) == [1, 1]
    with pytest.raises(ValueError, match="cannot draw 2 samples without replacement; 1 weights are above 0"):
        data.WeightedRandomSampler([1.0, 0.0], 2, replacement=False)
    with pytest.raises(ValueError, match="none below 0"):
        data.WeightedRandomSampler([-1.0, 2.0], 2)


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("count", [0, 1, 6, 7])
def test_batches_of_positions_are_torchs(count, drop_last):
    ours = data.BatchSampler(data.SequentialSampler(range(count)), 3, drop_last)
    theirs = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(range(count)), 3, drop_last)
    assert list(ours) == list(theirs) and len(ours) == len(theirs)


def test_what_a_subclass_forgot_is_named():
    class Mine(data.Dataset):
        pass

    with pytest.raises(NotImplementedError, match="Mine: a dataset wants a method __getitem__"):
        Mine()[0]
    with pytest.raises(NotImplementedError, match="an iterable dataset wants a method __iter__"):
        iter(data.IterableDataset())
    with pytest.raises(NotImplementedError, match="a sampler wants a method __iter__"):
        iter(data.Sampler())
