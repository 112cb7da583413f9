"""The arena: nothing that lives shares memory, and what has died makes room."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from genesis.ir.dtypes import float32
from genesis.ir.graph import Node
from genesis.lower.allocate import allocate


class Call(NamedTuple):
    """A stage's only call, by the values it touches."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]


def scheduled(sizes, reads):
    """Value k is written in stage k, of `sizes[k]` elements, from the values `reads[k]`."""
    nodes = [Node("add", (), {}, (size,), float32) for size in sizes]
    stages = [[Call(tuple(read), (k,))] for k, read in enumerate(reads)]
    return nodes, allocate(nodes, stages, [], [])


def lifetimes(reads):
    last = list(range(len(reads)))
    for stage, read in enumerate(reads):
        for value in read:
            last[value] = stage
    return [range(first, end + 1) for first, end in enumerate(last)]


@st.composite
def programs(draw):
    count = draw(st.integers(1, 14))
    sizes = draw(st.lists(st.integers(0, 200), min_size=count, max_size=count))
    reads = [draw(st.sets(st.integers(0, k - 1), max_size=3)) if k else set() for k in range(count)]
    return sizes, reads


@given(programs())
def test_values_that_live_at_once_do_not_overlap(program):
    nodes, schedule = scheduled(*program)
    lives = lifetimes(program[1])
    for a in range(len(nodes)):
        for b in range(a):
            if set(lives[a]) & set(lives[b]):
                first, second = schedule.locations[a].position, schedule.locations[b].position
                apart = first + nodes[a].nbytes <= second or second + nodes[b].nbytes <= first
                assert apart or not nodes[a].nbytes or not nodes[b].nbytes
                assert first != second


@given(programs())
def test_every_value_lies_within_the_arena(program):
    nodes, schedule = scheduled(*program)
    assert all(schedule.locations[k].position + node.nbytes <= schedule.arena_bytes for k, node in enumerate(nodes))


def test_a_long_chain_takes_the_memory_of_two_values():
    _, schedule = scheduled([256] * 50, [set()] + [{k} for k in range(49)])
    assert schedule.arena_bytes == 2 * 256 * 4
