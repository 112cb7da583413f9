"""Workers that stay from one pass over a loader to the next."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading

import pytest
import torch.utils.data

from genesis.utils import data
from genesis.utils.data import get_worker_info


def names():
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("genesis-data-worker")}


def workers_end():
    for thread in threading.enumerate():
        if thread.name.startswith("genesis-data-worker"):
            thread.join(30)
    return not names()


class Where(data.Dataset):
    """Which thread of which process fetches, and how many samples its dataset has given by then."""

    def __init__(self):
        self.given = 0

    def __len__(self):
        return 6

    def __getitem__(self, index):
        self.given += 1
        return index, os.getpid(), threading.get_ident(), self.given


class Stream(data.IterableDataset, torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(get_worker_info().id * 10, get_worker_info().id * 10 + 3))


def plain(batch):
    return batch


@pytest.mark.parametrize("context", [None, "fork"])
def test_the_same_workers_serve_each_pass(context):
    begun = []
    loader = data.DataLoader(
        Where(), None, num_workers=2, persistent_workers=True, collate_fn=plain, multiprocessing_context=context,
        worker_init_fn=begun.append)
    passes = [list(loader) for _ in range(3)]
    assert all([sample[0] for sample in one] == [*range(6)] for one in passes)
    homes = [{sample[1:3] for sample in one} for one in passes]
    assert homes[0] == homes[1] == homes[2] and len(homes[0]) == 2
    assert max(sample[3] for sample in passes[2]) > 6  # the dataset is the one of the passes before
    assert sorted(begun) == ([] if context else [0, 1])  # a process has a list of its own
    del loader
    gc.collect()
    assert workers_end()


def test_a_stream_begins_anew_in_each_pass():
    loader = data.DataLoader(Stream(), None, num_workers=2, persistent_workers=True)
    assert [sorted(loader) for _ in range(2)] == [[0, 1, 2, 10, 11, 12]] * 2
    first, *_ = loader  # left in the middle
    assert sorted(loader) == [0, 1, 2, 10, 11, 12] and first == 0
    del loader
    assert workers_end()


def test_passes_at_the_same_time_have_a_stream_each():
    loader = data.DataLoader(Stream(), None, num_workers=2, persistent_workers=True)
    for _ in range(2):
        pairs = [*zip(loader, loader, strict=True)]
        assert [sorted(one) for one in zip(*pairs, strict=True)] == [[0, 1, 2, 10, 11, 12]] * 2
    assert len([thread for thread in threading.enumerate() if thread.name in names()]) <= 4
    del loader
    assert workers_end()


def test_an_error_leaves_the_workers_for_the_next_pass():
    class Failing(Where):
        def __getitem__(self, index):
            if index == 3 and self.given < 6:
                self.given = 6
                raise LookupError("once")
            return index

    loader = data.DataLoader(Failing(), None, num_workers=1, persistent_workers=True)
    with pytest.raises(LookupError, match="once"):
        list(loader)
    assert list(loader) == [*range(6)]
    del loader
    assert workers_end()


def test_a_loop_holds_its_loader():
    fetched = list(data.DataLoader(Where(), None, num_workers=2, persistent_workers=True, collate_fn=plain))
    assert [sample[0] for sample in fetched] == [*range(6)]
    gc.collect()
    assert workers_end()


def test_processes_end_by_themselves():
    before = {*multiprocessing.active_children()}
    loader = data.DataLoader(
        Where(), None, num_workers=2, persistent_workers=True, collate_fn=plain, multiprocessing_context="fork")
    assert len(list(loader)) == 6
    processes = {*multiprocessing.active_children()} - before
    del loader
    gc.collect()
    assert workers_end()  # the threads that wait for them
    assert [process.exitcode for process in processes] == [0, 0]  # they were not terminated


@pytest.mark.parametrize("option", [{"persistent_workers": True}, {"prefetch_factor": 2}])
def test_settings_of_workers_want_some(option):
    for lib in (data, torch.utils.data):
        with pytest.raises(ValueError, match="num_workers"):
            lib.DataLoader([1, 2], **option)
    assert data.DataLoader([1]).prefetch_factor is torch.utils.data.DataLoader([1]).prefetch_factor is None


def test_a_pass_that_takes_no_batch_gives_its_workers_back():
    loader = data.DataLoader(Where(), None, num_workers=1, persistent_workers=True, collate_fn=plain)
    list(loader)
    _, [worker] = loader._kept
    iter(loader)
    assert loader._kept[1] == [worker]
