"""The loader: orders and batches as torch's, with and without workers; how workers end and fail."""

import subprocess
import sys
import textwrap
import threading
import time
import traceback
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
import torch.utils.data

import genesis
from genesis.utils import data

WORKERS = pytest.mark.parametrize("workers", [0, 1, 3])


def running():
    return [t for t in threading.enumerate() if t.name.startswith("genesis-data-worker")]


@pytest.fixture(autouse=True)
def no_worker_stays():
    yield
    deadline = time.monotonic() + 10
    while running() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running()


def lists(loader):
    return [batch.tolist() if hasattr(batch, "tolist") else batch for batch in loader]


class Squares(data.Dataset):
    def __init__(self, count=10):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return np.float32(index) ** 2


class Stream(data.IterableDataset, torch.utils.data.IterableDataset):
    def __init__(self, count=10):
        self.count = count

    def __iter__(self):
        ours, theirs = data.get_worker_info(), torch.utils.data.get_worker_info()
        info = ours or theirs
        yield from range(info.id if info else 0, self.count, info.num_workers if info else 1)

    def __len__(self):
        return self.count


@WORKERS
@pytest.mark.parametrize("options", [
    {}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}, {"sampler": [4, 2, 2]},
    {"batch_size": 2, "sampler": range(9, 0, -2)}, {"batch_sampler": [[1, 2], [], [3, 0, 4]], "collate_fn": list},
    {"batch_size": 4, "collate_fn": sum}, {"batch_size": 20},
], ids=str)
def test_batches_are_torchs(options, workers):
    ours = data.DataLoader(Squares(), num_workers=workers, **options)
    theirs = torch.utils.data.DataLoader(Squares(), **options)
    for _ in range(2):
        assert lists(ours) == lists(theirs)
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("base", [data.DataLoader, torch.utils.data.DataLoader])
def test_a_loader_of_ones_own_may_fetch_a_batch_at_once(base):
    class Whole(base):
        at_once = False

        @property
        def _auto_collation(self):
            return super()._auto_collation and not self.at_once

        @property
        def _index_sampler(self):
            return self.batch_sampler if super()._auto_collation else self.sampler

    loader = Whole(np.arange(3) * 2, batch_sampler=[[1, 2], [0]], collate_fn=tuple)
    loader.at_once = True
    assert [tuple(batch) for batch in loader] == [(2, 4), (0,)] and len(loader) == 2


@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("options", [
    {}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None},
], ids=str)
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_streams_are_torchs(options, workers):
    ours = data.DataLoader(Stream(11), num_workers=workers, **options)
    theirs = torch.utils.data.DataLoader(Stream(11), num_workers=workers, **options)
    assert lists(ours) == lists(theirs) and len(ours) == len(theirs)


@WORKERS
def test_every_sample_comes_once_a_pass_in_another_order(workers):
    loader = data.DataLoader(Squares(30), batch_size=4, shuffle=True, num_workers=workers, generator=genesis.Generator(5))
    passes = [list(chain(*lists(loader))) for _ in range(2)]
    assert passes[0] != passes[1]
    assert sorted(passes[0]) == sorted(passes[1]) == [float(i * i) for i in range(30)]
    again = data.DataLoader(Squares(30), batch_size=4, shuffle=True, generator=genesis.Generator(5))
    if not workers:
        assert list(chain(*lists(again))) == passes[0]


@WORKERS
@pytest.mark.parametrize("split", [False, True])
def test_rows_of_tensors_come_as_one_gather_and_equal_those_collated(workers, split):
    x, y = genesis.rand(20, 3), genesis.arange(20)
    rows = data.TensorDataset(x, y)
    rows = data.Subset(rows, [3, 1, 4, 15, 9, 2, 6]) if split else rows
    quick = list(data.DataLoader(rows, 3, num_workers=workers))
    slow = list(data.DataLoader(rows, 3, collate_fn=lambda batch: data.default_collate(batch)))
    assert [[part.tolist() for part in batch] for batch in quick] == [[part.tolist() for part in batch] for batch in slow]
    assert [type(batch) for batch in quick] == [list] * len(slow)


def test_rows_that_require_gradients_pass_them_on():
    x = genesis.ones(4, 2, requires_grad=True)
    for (batch,) in data.DataLoader(data.TensorDataset(x), 3):
        batch.sum().backward()
    assert x.grad.tolist() == [[1, 1]] * 4


def test_a_dataset_may_fetch_many_at_once():
    class Table(Squares):
        def __getitems__(self, positions):
            return [-p for p in positions]

    assert lists(data.DataLoader(Table(4), 2)) == [[0, -1], [-2, -3]]


@WORKERS
def test_batch_objects_pass_through(workers):
    def collate(samples):
        return SimpleNamespace(inputs=genesis.tensor(samples), targets=len(samples))

    for loader in (
        data.DataLoader(Squares(4), 2, collate_fn=collate, num_workers=workers),
        data.DataLoader([collate([0.0, 1.0]), collate([4.0, 9.0])], None, num_workers=workers),
    ):
        assert [(b.inputs.tolist(), b.targets) for b in loader] == [([0, 1], 2), ([4, 9], 2)]


def test_steps_of_different_samples_run_one_program():
    rows = data.TensorDataset(genesis.rand(64, 4), genesis.rand(64, 1))
    model = genesis.nn.Linear(4, 1)
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)

    def epoch():
        for x, y in data.DataLoader(rows, 8, shuffle=True, num_workers=2):
            optimizer.zero_grad()
            genesis.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()

    epoch()
    genesis.debug.reset_stats()
    epoch()
    assert genesis.debug.stats()["plans_built"] == 0


# ---- workers ----


def test_workers_are_only_so_far_ahead():
    fetched = []

    class Counted(Squares):
        def __getitem__(self, index):
            fetched.append(index)
            return index

    batches = iter(data.DataLoader(Counted(100), num_workers=2, prefetch_factor=3))
    next(batches)
    time.sleep(0.05)
    assert 1 <= len(fetched) <= 7
    del batches


def test_workers_know_who_they_are():
    begun = []

    class Info(Squares):
        def __getitem__(self, index):
            info = data.get_worker_info()
            return [info.id, info.num_workers, int(info.dataset is self)]

    loader = data.DataLoader(Info(6), None, num_workers=2, worker_init_fn=begun.append)
    assert lists(loader) == [[0, 2, 1], [1, 2, 1]] * 3
    assert sorted(begun) == [0, 1] and data.get_worker_info() is None


class Failing(Squares):
    def __getitem__(self, index):
        if index == 5:
            raise LookupError("sample 5 is broken")
        return super().__getitem__(index)


@WORKERS
def test_an_error_comes_up_in_the_loop_with_the_line_that_raised_it(workers):
    seen = []
    with pytest.raises(LookupError, match="sample 5 is broken") as caught:
        for batch in data.DataLoader(Failing(), 2, num_workers=workers):
            seen.append(batch.tolist())
    assert seen == [[0, 1], [4, 9]]
    frames = [(f.name, f.line) for f in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[0][0] == test_an_error_comes_up_in_the_loop_with_the_line_that_raised_it.__name__
    assert frames[-1] == ("__getitem__", 'raise LookupError("sample 5 is broken")')


@pytest.mark.parametrize(("lib", "workers"), [(torch.utils.data, 0), (data, 0), (data, 1), (data, 3)])
def test_an_error_in_a_batch_does_not_end_the_pass(lib, workers):
    batches, seen = iter(lib.DataLoader(Failing(), 2, num_workers=workers)), []
    while True:
        try:
            seen.append(next(batches).tolist())
        except LookupError:
            seen.append("broken")
        except StopIteration:
            break
    assert seen == [[0, 1], [4, 9], "broken", [36, 49], [64, 81]]


def test_what_samplers_know_cannot_be_assigned():
    for lib in (data, torch.utils.data):
        loader = lib.DataLoader(Squares())
        for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
            with pytest.raises(ValueError, match=name):
                setattr(loader, name, 3)
        loader.collate_fn = list
        assert next(iter(loader)) == [0]


@WORKERS
def test_a_dataset_that_says_stop_does_not_end_the_loop_in_silence(workers):
    class Stops(Squares):
        def __getitem__(self, index):
            raise StopIteration

    with pytest.raises(RuntimeError):
        list(data.DataLoader(Stops(), num_workers=workers))


def test_a_worker_that_cannot_begin_says_why():
    def begin(number):
        raise OSError(f"worker {number} found no file")

    with pytest.raises(OSError, match="worker 0 found no file"):
        list(data.DataLoader(Squares(), num_workers=2, worker_init_fn=begin))


def test_leaving_the_loop_ends_the_workers():
    for _ in data.DataLoader(Squares(1000), num_workers=3):
        break
    iter(data.DataLoader(Squares(1000), num_workers=3))


def test_a_slow_worker_meets_the_timeout():
    released = threading.Event()

    class Slow(Squares):
        def __getitem__(self, index):
            released.wait(10)
            return index

    with pytest.raises(RuntimeError, match=r"took longer than timeout=0.05 s"):
        next(iter(data.DataLoader(Slow(), num_workers=1, timeout=0.05)))
    released.set()


def test_an_interrupt_ends_a_program_whose_workers_are_stuck():
    program = textwrap.dedent("""
        import signal, threading, time
        from genesis.utils.data import DataLoader

        class Stuck:
            def __len__(self): return 4
            def __getitem__(self, index): time.sleep(60)

        threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
        for batch in DataLoader(Stuck(), num_workers=2):
            pass
    """)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode != 0 and "KeyboardInterrupt" in run.stderr


def test_importing_genesis_leaves_the_loader_for_later():
    program = """if True:
        import sys, genesis
        assert not {"genesis.utils.data", "concurrent.futures", "logging"} & {*sys.modules}
        assert len(genesis.utils.data.DataLoader([1, 2])) == 2
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("options, message", [
    ({"num_workers": -1}, "num_workers"), ({"prefetch_factor": 0}, "prefetch_factor"), ({"batch_size": 0}, "positive number"),
    ({"sampler": [0], "shuffle": True}, "sampler and shuffle exclude"), ({"batch_size": None, "drop_last": True}, "drop_last"),
    ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler excludes"),
    ({"batch_sampler": [[0]], "shuffle": True}, "batch_sampler excludes"),
], ids=str)
def test_arguments_that_exclude_each_other_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        data.DataLoader(Squares(), **options)


def test_a_stream_has_its_own_order():
    with pytest.raises(ValueError, match="has its own order"):
        data.DataLoader(Stream(), shuffle=True)


def test_pytorchs_other_arguments_are_accepted():
    loader = data.DataLoader(Squares(2), 2, pin_memory=True, persistent_workers=False, multiprocessing_context=None)
    assert lists(loader) == [[0, 1]]


def test_settings_of_a_loader_can_be_read_and_given_to_another():
    names = "pin_memory", "pin_memory_device", "persistent_workers", "in_order", "num_workers", "drop_last", "timeout"
    for lib in (data, torch.utils.data):
        loader = lib.DataLoader([1, 2], in_order=True, pin_memory_device="")
        settings = {name: getattr(loader, name) for name in names}
        assert settings == dict(zip(names, (False, "", False, True, 0, False, 0), strict=True))
        assert len(lib.DataLoader([1, 2], **settings)) == 2
