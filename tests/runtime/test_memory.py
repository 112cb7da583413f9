"""Buffers and the pool behind them."""

from __future__ import annotations

import gc
import threading

import ml_dtypes
import numpy as np
import pytest

import genesis
from genesis.runtime import memory
from genesis.runtime.memory import Buffer, memory_stats


@pytest.mark.parametrize("nbytes", [0, 1, 64, 65, 1000, 1 << 20, (8 << 20) + 1])
def test_memory_is_aligned_and_writable_to_its_end(nbytes):
    buffer = Buffer(nbytes)
    assert buffer.ptr % 64 == 0 and buffer.nbytes == nbytes
    view = buffer.numpy(np.uint8, (nbytes,))
    view[:] = 255
    assert view.sum(dtype=np.int64) == 255 * nbytes


def test_freed_memory_is_used_again():
    buffer = Buffer(123_456)
    address = buffer.ptr
    del buffer
    assert Buffer(123_400).ptr == address


def test_a_finalizer_of_garbage_finds_its_memory():
    found = []

    class Finalized:
        def __init__(self):
            self.circle, self.buffer = self, Buffer(123_456)

        def __del__(self):
            found.extend((self.buffer.ptr, Buffer(123_456).ptr))

    Finalized()
    gc.collect()
    assert len({*found}) == 2
    assert Buffer(123_456).ptr in found  # both are free now


def test_size_classes_fit_and_waste_little():
    for nbytes in [*range(1, 3000), 10**6, 10**9 + 1]:
        size = memory._size_class(nbytes)
        assert size >= nbytes and size % 64 == 0
        assert size - nbytes < max(64, nbytes / 4)
        assert memory._size_class(size) == size


def test_statistics_follow_the_buffers():
    memory.trim()
    memory.reset_peak()
    before = memory_stats()
    buffer = Buffer(1 << 20)
    assert memory_stats().held == before.held + (1 << 20) == memory_stats().peak
    del buffer
    assert memory_stats() == (before.held, before.held + (1 << 20), 1 << 20)
    memory.trim()
    assert memory_stats().idle == 0


def test_idle_memory_is_bounded():
    pool = memory._Pool(idle_limit=1000)
    blocks = [pool.acquire(512) for _ in range(3)]
    for block in blocks:
        pool.release(block, 512)
    assert pool.idle <= 1000 and pool.held == 0 and pool.peak == 3 * 512


def test_blocks_that_steps_no_longer_use_go_back_to_the_system():
    pool = memory._Pool(idle_limit=1 << 30)

    def step(sizes):
        for size, address in [(size, pool.acquire(size)) for size in sizes]:
            pool.release(address, size)

    former, present, now_and_then = [1 << 20] * 8, [3 << 20] * 8, [5 << 20]
    step(former)
    for number in range(64):
        step(present + now_and_then * (number % 8 == 0))
    assert pool.idle == sum(present) + sum(now_and_then) and pool.held == 0
    pool.trim()


def test_memory_of_former_sizes_does_not_add_up(monkeypatch):
    monkeypatch.setattr(memory, "LEAST_TURN", 1 << 20)
    monkeypatch.setattr(memory, "TURNS", 1)  # a turn is as long as all that earlier tests have left is large
    monkeypatch.setattr(memory.host_pool, "_next_look", 0)
    memory.trim()
    for width in range(400, 1000, 100):
        x = genesis.ones(width, width)
        for _ in range(60):
            x = (x * 0.5).cos()
            x.sum().item()
    assert memory_stats().idle < 4 * x.nbytes, "that of the last size, and perhaps of the one before"


def test_an_impossible_request_is_a_memory_error():
    with pytest.raises(MemoryError, match="cannot allocate"):
        Buffer(1 << 60)


def test_threads_share_the_pool():
    held = memory_stats().held

    def work() -> None:
        for size in range(1, 2000):
            buffers = [Buffer(size), Buffer(5000)]
            buffers[0].numpy(np.uint8, (size,))[:] = 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory_stats().held == held


# ---- views ----


def test_a_view_keeps_the_buffer_alive():
    gc.collect()  # what other tests have left in cycles
    held = memory_stats().held
    view = Buffer(400).numpy(np.float32, (10, 10))[2:, 3]
    gc.collect()
    assert memory_stats().held > held
    del view
    gc.collect()
    assert memory_stats().held == held


def test_a_buffer_knows_whether_views_of_it_live():
    buffer = Buffer(400)
    assert not buffer.shared
    first, second = buffer.numpy(np.float32, (100,)), buffer.numpy(np.int32, (10, 10))
    part = first[5:].reshape(5, 19).T
    del first, second
    assert buffer.shared, "a view of a view is a view"
    del part
    assert not buffer.shared


def test_views_share_memory_whatever_their_type_and_strides():
    buffer = Buffer(64)
    buffer.numpy(np.int16, (32,))[:] = np.arange(32)
    rows = buffer.numpy(np.int16, (4, 3), (16, -2), offset=8)
    assert rows.tolist() == [[4 + 8 * i - j for j in range(3)] for i in range(4)]
    assert buffer.numpy(np.int16, (2, 3), (0, 2)).tolist() == [[0, 1, 2]] * 2
    assert buffer.numpy(np.int16, ()).shape == ()
    assert buffer.numpy(np.int16, (0, 5)).shape == (0, 5)
    half = buffer.numpy(ml_dtypes.bfloat16, (3,))
    half[:] = 1.5
    assert half.dtype == ml_dtypes.bfloat16 and half.tolist() == [1.5] * 3


def test_a_view_beyond_the_buffer_is_refused():
    for shape, strides, offset in [((9,), None, 0), ((4,), None, 40), ((2,), (64,), 0), ((2,), (-8,), 0)]:
        with pytest.raises((TypeError, ValueError)):
            Buffer(64).numpy(np.float64, shape, strides, offset)


# ---- outside memory ----


def test_wrapped_memory_is_the_arrays_own_and_lives_as_long():
    array = np.arange(12.0)
    buffer = Buffer.wrap(array)
    assert (buffer.ptr, buffer.nbytes, buffer.shared, buffer.writeable) == (array.ctypes.data, 96, True, True)
    buffer.numpy(np.float64, (12,))[3] = 50
    assert array[3] == 50
    del array
    gc.collect()
    assert buffer.numpy(np.float64, (12,))[3] == 50


def test_wrapping_a_strided_array_covers_all_its_elements():
    array = np.arange(12.0).reshape(3, 4)[::-1, ::2]
    buffer = Buffer.wrap(array)
    view = buffer.numpy(array.dtype, array.shape, array.strides, offset=array.ctypes.data - buffer.ptr)
    assert np.array_equal(view, array) and np.shares_memory(view, array)


def test_read_only_memory_stays_read_only():
    array = np.arange(3)
    array.flags.writeable = False
    buffer = Buffer.wrap(array)
    assert not buffer.writeable
    assert not buffer.numpy(np.int64, (3,)).flags.writeable


def test_wrapping_costs_no_pool_memory():
    before = memory_stats()
    Buffer.wrap(np.zeros(1000))
    assert memory_stats() == before
