"""Loader workers that are processes: batches, ends and errors are those of threads."""

import os

import pytest

import genesis
from genesis.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Numbers(Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, place):
        if place == 6:
            raise KeyError("seven")
        return genesis.tensor([float(place), float(os.getpid())])


class Parts(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        yield from range(info.id, 6, info.num_workers)


def test_batches_come_in_order_from_other_processes():
    batches = [*DataLoader(Numbers(), 2, sampler=range(6), num_workers=2, multiprocessing_context="fork")]
    assert [batch[:, 0].tolist() for batch in batches] == [[0, 1], [2, 3], [4, 5]]
    workers = {batch[0, 1].item() for batch in batches}
    assert len(workers) == 2 and os.getpid() not in workers


def test_parts_of_an_iterable_dataset_and_numbers_of_workers():
    found = [batch.tolist() for batch in DataLoader(Parts(), 2, num_workers=2, multiprocessing_context="fork")]
    assert sorted(found) == [[0, 2], [1, 3], [4], [5]]
    seeds = [*DataLoader([0, 1], None, num_workers=2, multiprocessing_context="fork", collate_fn=drawn)]
    assert seeds[0] != seeds[1]


def drawn(sample):
    return genesis.rand(1).item()


def test_what_a_process_raises_is_raised_in_the_loop():
    loader = DataLoader(Numbers(), 1, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(KeyError, match="seven") as caught:
        list(loader)
    assert "__getitem__" in caught.value.__notes__[0]


def test_a_process_that_ends_is_told():
    with pytest.raises(RuntimeError, match="worker genesis-data-worker-0 ended with exit code 3"):
        list(DataLoader([1], None, num_workers=1, multiprocessing_context="fork", collate_fn=leaves))


def leaves(sample):
    os._exit(3)


def test_processes_may_begin_anew():
    assert [*DataLoader([1, 2, 3], None, num_workers=1, multiprocessing_context="spawn")] == [1, 2, 3]
