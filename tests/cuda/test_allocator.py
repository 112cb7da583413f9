"""The caching allocator of a GPU: blocks apart, reused, split and joined; what is said when there is no more."""

import random

import pytest

from genesis.ir.errors import OutOfMemoryError
from genesis.runtime.cuda.allocator import LARGE_SEGMENT, QUANTUM, SMALL, SMALL_SEGMENT, Allocator
from genesis.runtime.cuda.simulated import SimulatedGpu

MIB = 1 << 20


def test_what_is_given_back_is_taken_again():
    allocator = Allocator(SimulatedGpu(0))
    first = allocator.take(1000)
    allocator.give(first)
    assert allocator.take(900) == first and allocator.reserved == SMALL_SEGMENT


def test_blocks_do_not_overlap_whatever_the_order():
    allocator, chance, held = Allocator(SimulatedGpu(0)), random.Random(0), {}
    for _ in range(2000):
        if held and chance.random() < 0.5:
            allocator.give(held.pop(chance.choice([*held]))[0])
            continue
        nbytes = chance.choice([1, 512, 700, 4096, 300_000, SMALL, SMALL + 1, 3 * MIB])
        address = allocator.take(nbytes)
        assert address % QUANTUM == 0
        assert all(address + nbytes <= other or other + size <= address for other, size in held.values())
        held[len(held), chance.random()] = address, nbytes
    assert allocator.held >= sum(size for _, size in held.values())
    for address, _ in held.values():
        allocator.give(address)
    assert allocator.held == allocator.blocks == 0
    before = allocator.reserved
    assert allocator.trim() == before, "all pieces were joined again"
    assert allocator.reserved == allocator.segments == 0


def test_a_large_block_is_split_and_its_neighbours_are_joined():
    allocator = Allocator(SimulatedGpu(0))
    parts = [allocator.take(4 * MIB) for _ in range(5)]
    assert allocator.reserved == LARGE_SEGMENT
    for part in parts[1:3]:
        allocator.give(part)
    assert allocator.take(8 * MIB) == parts[1] and allocator.reserved == LARGE_SEGMENT


def test_the_peak_is_the_most_there_was():
    allocator = Allocator(SimulatedGpu(0))
    block = allocator.take(3 * MIB)
    allocator.give(block)
    allocator.take(MIB)
    assert (allocator.held, allocator.peak, allocator.peak_reserved) == (MIB, 3 * MIB, LARGE_SEGMENT + SMALL_SEGMENT)


def test_idle_segments_are_given_up_for_a_large_request():
    gpu = SimulatedGpu(0, total=64 * MIB)
    allocator = Allocator(gpu)
    for block in [allocator.take(12 * MIB) for _ in range(4)]:
        allocator.give(block)
    allocator.take(60 * MIB)
    assert allocator.reserved == 60 * MIB and (allocator.blocks, allocator.segments) == (1, 1)
    assert (allocator.retries, allocator.shortages) == (1, 0)


def test_no_memory_says_how_much_of_it_is_where():
    gpu = SimulatedGpu(0, total=64 * MIB)
    allocator = Allocator(gpu)
    kept, _ = allocator.take(30 * MIB), allocator.take(20 * MIB)
    allocator.give(allocator.take(6 * MIB))
    with pytest.raises(OutOfMemoryError, match=(
        r"cuda:0: wanted 50.00 MiB; of 64.00 MiB, 14.00 MiB are free, 50.00 MiB are held .* and 0 bytes kept"
    )):
        allocator.take(50 * MIB)
    assert allocator.shortages == 1
    allocator.give(kept)
    assert allocator.take(44 * MIB), "an error leaves nothing behind"


def test_running_out_is_both_errors_that_programs_catch():
    assert issubclass(OutOfMemoryError, RuntimeError) and issubclass(OutOfMemoryError, MemoryError)
