"""The pool of a program's results: what nobody owns is computed into again, what somebody owns never is."""

import genesis
from genesis.execution.flush import OFTEN
from genesis.execution.plan import plan_for
from genesis.execution.result_pool import SMALL, ResultBuffer, ResultPool, reusable
from genesis.ir.dtypes import float32
from genesis.ops.layout import Layout, contiguous_layout
from genesis.runtime.memory import Buffer
from genesis.tracing.state import current_trace
from genesis.tracing.trace import Array

LARGE = SMALL // 4 + 1  # elements of a result that a pool does not keep


def address(tensor):
    return tensor._array.memory.buffer.ptr


def ones(elements):
    tensor = genesis.ones(elements)
    tensor.tolist()
    return tensor


def array(elements=4):
    return Array.realized(Buffer(4 * elements), contiguous_layout((elements,)), float32)


def test_small_results_lie_where_the_last_one_did_if_nobody_owns_it_else_in_two_places_in_turn():
    x = ones(8)

    def result():
        y = x * 3.25 + 1.5
        y.tolist()
        return y

    lie_in_one_place_or_in_two(result)


def lie_in_one_place_or_in_two(result):
    for _ in range(OFTEN + 1):  # instructions, once they are made, have runs of their own
        result()
    assert len({address(result()) for _ in range(4)}) == 1
    found = []
    for _ in range(9):
        y = result()  # the one before lives until here
        found.append(address(y))
    first, second, *rest = found[3:]  # the first ones make the second place
    assert first != second and rest == [first, second] * 2


def test_a_result_that_somebody_keeps_is_not_computed_into():
    x = ones(8)
    kept = []
    for step in range(6):
        y = x * 2.75 + step
        y.tolist()
        kept.append(y)
    assert len({address(y) for y in kept}) == 6
    assert [y.tolist()[0] for y in kept] == [2.75 + step for step in range(6)]


def test_a_run_keeps_no_large_result():
    x, few = ones(LARGE), ones(8)
    y = x * 1.75
    plan = plan_for(current_trace())
    y.tolist()
    assert {memory for run in plan.pool.idle for memory in run.memories} == {None}  # another test may have had the plan
    z = few * 1.75
    plan = plan_for(current_trace())
    z.tolist()
    assert plan.pool.idle and all(memory is not None for run in plan.pool.idle for memory in run.memories)


def test_a_large_result_is_written_over_an_input_that_dies():
    x = ones(LARGE)
    where = address(x)
    x.mul_(2.5)
    x.tolist()
    assert address(x) == where
    kept = x.detach() * 1
    alias = x._array
    x.mul_(2.5)
    x.tolist()
    assert address(x) != where and alias.memory.buffer.ptr == where and kept.tolist()[0] == 2.5


def test_an_array_may_be_written_over_if_all_its_owners_are_known():
    owned, other = array(), array()
    assert reusable([owned, other], [1, 1], [16, 16]) == [True, True]
    again = owned
    assert reusable([owned, other], [1, 1], [16, 16]) == [False, True]
    assert reusable([again], [2], [16]) == [True]


def test_shared_memory_a_part_of_a_buffer_and_another_size_are_not_written_over():
    memory_kept, seen, wide = array(), array(), array(8)
    memory = memory_kept.memory
    seen.memory.buffer.expose()
    part = Array.realized(Buffer(32), contiguous_layout((4,))._replace(offset=4), float32)
    assert reusable([memory_kept, seen, wide, part], [1, 1, 1, 1], [16, 16, 16, 32]) == [False] * 4
    assert memory is memory_kept.memory


def test_a_replay_computes_into_a_pool_of_its_own_by_the_same_rule():
    double = genesis.compile(lambda x: x * 2.125)
    x = genesis.ones(8)
    double(x)
    lie_in_one_place_or_in_two(lambda: double(x))
    kept = [double(x) for _ in range(4)]
    assert len({address(y) for y in kept}) == 4


def test_a_recorded_call_keeps_results_that_take_little_together():
    def pool(*sizes):
        buffers = [ResultBuffer(n, n, size, Layout((size // 4,), (1,), 0), 0, None) for n, size in enumerate(sizes)]
        return ResultPool(buffers, len(sizes), [], 16 << 10).for_replays(())

    def has_large(*sizes):
        return pool(*sizes).has_large

    assert not has_large(256 << 10) and not has_large(512 << 10, 512 << 10) and not has_large(*[64 << 10] * 20)
    assert has_large(512 << 10, 768 << 10) and has_large(2 << 20)
    assert not pool(4 << 20, 4 << 20).keeping_large().has_large and pool(12 << 20).keeping_large().has_large
