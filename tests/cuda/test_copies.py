"""A GPU's memory as buffers see it, on one that does nothing before it is waited for."""

import threading

import numpy as np
import pytest

from genesis.runtime.cuda import memory
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.cuda.simulated import SimulatedGpu

CHUNK = 256


class Late(SimulatedGpu):
    """A GPU that copies when it must: once somebody waits for a mark behind the copy."""

    def __init__(self):
        super().__init__(0)
        self.asked, self.done = [], 0

    def copy_in(self, address, values):
        self.asked.append(lambda: super(Late, self).copy_in(address, values))

    def copy_out(self, values, address):
        self.asked.append(lambda: super(Late, self).copy_out(values, address))

    def copy(self, address, source, nbytes):
        self.asked.append(lambda: super(Late, self).copy(address, source, nbytes))

    def mark(self, timed=False, sleeping=False):
        return len(self.asked)

    def wait(self, mark):
        for each in self.asked[self.done : mark]:
            each()
        self.done = max(self.done, mark)


@pytest.fixture
def late(monkeypatch):
    monkeypatch.setattr(memory, "CHUNK", CHUNK)
    return GpuMemory(Late())


class Owner:
    pass


def test_what_is_written_may_be_changed_at_once_and_read_at_any_time(late):
    random, owner = np.random.default_rng(0), Owner()
    address = late.lend(owner, 100_000)
    there = np.zeros(100_000, np.uint8)
    late.write(address, there)
    for _ in range(300):
        start, size = random.integers(90_000), random.choice([1, 8, 100, CHUNK, 1000, 5000])
        values = random.integers(256, size=size, dtype=np.uint8)
        if random.random() < 0.6:
            there[start : start + size] = values
            late.write(address + start, values)
            values[:] = 0
        else:
            late.read(address + start, values)
            assert np.array_equal(values, there[start : start + size])
    late.copy(address, address + 50_000, 1000)
    there[:1000] = there[50_000:51_000]
    found = np.empty_like(there)
    late.read(address, found)
    assert np.array_equal(found, there)


def test_small_writes_wait_for_nothing(late):
    owner = Owner()
    address = late.lend(owner, 4096)
    for step in range(CHUNK // memory.ALIGNMENT):
        late.write(address, np.array([step]))
    assert late.gpu.done == 0
    found = np.empty(1, np.int64)
    late.read(address, found)
    assert found.tolist() == [step]


def test_synchronizing_waits_for_what_was_asked_for_and_keeps_nobody_from_asking(late):
    owner = Owner()
    address = late.lend(owner, 512)
    late.write(address, np.ones(8, np.uint8))
    others = []
    waited = late.gpu.wait

    def wait(mark):
        other = threading.Thread(target=late.write, args=(address, np.zeros(8, np.uint8)))
        other.start()
        other.join(10)
        others.append(other.is_alive())
        waited(mark)

    late.gpu.wait = wait
    late.synchronize()
    assert others == [False] and late.gpu.done == 1


def test_nobody_asks_for_copies_while_a_graph_is_made(late):
    owner = Owner()
    address = late.lend(owner, 512)
    with late.lock:
        other = threading.Thread(target=late.copy, args=(address + 256, address, 256))
        other.start()
        other.join(0.05)
        assert not late.gpu.asked, "it would have become part of the graph"
    other.join()
    assert len(late.gpu.asked) == 1
