"""What runs side by side, and which outputs may be written over which inputs."""

import numpy as np

import genesis
from genesis.execution import flush as execute
from genesis.lower import lower
from genesis.lower.allocate import last_failing_stage
from genesis.lower.stages import may_fail
from genesis.lower.target import Target
from tests.lower.text import parsed


def offered(text):
    """(input, output) of each offer of memory, numbered as the text's inputs and outputs are."""
    graph = parsed(text)
    lowered = lower(graph.nodes, graph.outputs, Target(threads=1))
    number = [k for k, node in enumerate(graph.nodes) if node.op == "input"].index
    position = {lowered.schedule.locations[base].position: k for k, (base, _) in enumerate(lowered.outputs)}
    return [(number(lowered.origins[lowered.inputs[i]]), position[o]) for i, o in lowered.donations]


def plan_of_adam(monkeypatch, clipped=False):
    """The plan of a step over three parameters, whose gradients may be clipped first."""
    parameters = [genesis.ones(*shape) * 2 for shape in [(30, 20), (20,), (5, 4, 3)]]
    for p in parameters:
        p.requires_grad = True
    optimizer = genesis.optim.Adam(parameters)
    for p in parameters:
        p.grad = genesis.ones(*p.shape) * 3
        p.grad.numpy()
    plans = []
    monkeypatch.setattr(execute, "FLUSH_HOOKS", [lambda trace, plan: plans.append(plan)])
    if clipped:
        genesis.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    return plans[-1]


def test_adam_over_three_parameters_is_one_stage_of_one_kernel(monkeypatch):
    stages = plan_of_adam(monkeypatch).lowered.schedule.stages
    assert [len(stage) for stage in stages] == [3]
    assert len({call.kernel.text for call in stages[0]}) == 1
    assert sorted(call.extents for call in stages[0]) == [(20,), (60,), (600,)]


def test_clipping_is_one_stage_of_sums_and_the_updates_that_join_them(monkeypatch):
    assert [len(stage) for stage in plan_of_adam(monkeypatch, clipped=True).lowered.schedule.stages] == [3, 3]


def test_adam_writes_parameters_and_averages_over_themselves(monkeypatch):
    plan = plan_of_adam(monkeypatch)
    assert len(plan.lowered.donations) == len(plan.sizes) == 9
    assert plan.arena_bytes == 0


def test_parts_of_a_concatenation_are_copied_side_by_side():
    graph = parsed("""
        %0 = input() : float32[4, 8]
        %1 = input() : float32[4, 8]
        %2 = input() : float32[4, 8]
        %3 = cat(%0, %1, %2, dim=1) : float32[4, 24]
        return %3
    """)
    stages = lower(graph.nodes, graph.outputs, Target(threads=2)).schedule.stages
    assert max(sum(call.writes == stage[0].writes for call in stage) for stage in stages) == 3


def test_an_index_that_several_kernels_read_is_checked_once():
    graph = parsed("""
        %0 = input() : float32[7, 64]
        %1 = input() : int64[5, 1]
        %2 = input() : float32[5, 64]
        %3 = check_index(%1, extent=7, wrap=False, name='embedding') : int64[5, 1]
        %4 = expand(%3, shape=(5, 64), strides=(1, 0), offset=0) : int64[5, 64]
        %5 = gather(%0, %4, dim=0) : float32[5, 64]
        %6 = exp(%5) : float32[5, 64]
        %7 = constant(value=0.0) : float32[]
        %8 = expand(%7, shape=(7, 64), strides=(0, 0), offset=0) : float32[7, 64]
        %9 = mul(%6, %2) : float32[5, 64]
        %10 = scatter(%8, %4, %9, dim=0, mode='add') : float32[7, 64]
        return %6, %10
    """)
    stages = lower(graph.nodes, graph.outputs, Target(threads=2)).schedule.stages
    assert [may_fail(call) for stage in stages for call in stage].count(True) == 1
    assert last_failing_stage(stages) == 0


# ---- offers ----


def test_the_memory_of_a_parameter_is_offered_to_its_update():
    assert offered("""
        %0 = input() : float32[8, 3]
        %1 = input() : float32[3]
        %2 = expand(%1, shape=(8, 3), strides=(0, 1), offset=0) : float32[8, 3]
        %3 = sub(%0, %2) : float32[8, 3]
        return %3
    """) == [(0, 0)]


def test_memory_is_offered_once():
    assert offered("""
        %0 = input() : float32[8]
        %1 = exp(%0) : float32[8]
        %2 = neg(%0) : float32[8]
        return %1, %2
    """) in ([(0, 0)], [(0, 1)])


def test_memory_of_another_size_is_not_offered():
    assert offered("""
        %0 = input() : float32[8]
        %1 = cast(%0, dtype='float64') : float64[8]
        return %1
    """) == []


def test_what_is_read_in_another_order_is_not_offered():
    assert offered("""
        %0 = input() : float32[8, 8]
        %1 = transpose(%0, shape=(8, 8), strides=(1, 8), offset=0) : float32[8, 8]
        %2 = add(%0, %1) : float32[8, 8]
        return %2
    """) == []


def test_what_a_row_reads_twice_is_offered_to_what_is_written_in_the_last_pass():
    assert offered("""
        %0 = input() : float32[8, 100]
        %1 = exp(%0) : float32[8, 100]
        %2 = sum(%1, axes=(1,)) : float32[8]
        %3 = expand(%2, shape=(8, 100), strides=(1, 0), offset=0) : float32[8, 100]
        %4 = sub(%0, %3) : float32[8, 100]
        return %4
    """) == [(0, 0)]


def test_what_a_later_pass_reads_again_is_not_offered():
    """exp(x) is written in the first pass over a row, x read again in the second."""
    assert offered("""
        %0 = input() : float32[8, 100]
        %1 = exp(%0) : float32[8, 100]
        %2 = sum(%1, axes=(1,)) : float32[8]
        %3 = expand(%2, shape=(8, 100), strides=(1, 0), offset=0) : float32[8, 100]
        %4 = mul(%0, %3) : float32[8, 100]
        %5 = sum(%4, axes=(1,)) : float32[8]
        return %1, %5
    """) == []


def test_what_a_later_kernel_reads_is_not_offered():
    assert offered("""
        %0 = input() : float32[8, 8]
        %1 = exp(%0) : float32[8, 8]
        %2 = matmul(%1, %0) : float32[8, 8]
        return %1, %2
    """) == []


def test_what_a_neighbour_reads_is_not_offered():
    """Two kernels of one stage, side by side: one reads a part of what the other could write over."""
    assert offered("""
        %0 = input() : float32[64]
        %1 = slice(%0, shape=(32,), strides=(1,), offset=32) : float32[32]
        %2 = exp(%0) : float32[64]
        %3 = exp(%1) : float32[32]
        return %2, %3
    """) == []


def test_a_parameter_is_not_offered_before_an_index_is_checked():
    """A run that fails on an index has destroyed nothing."""
    assert offered("""
        %0 = input() : float32[4, 4]
        %1 = input() : int64[4, 4]
        %2 = neg(%0) : float32[4, 4]
        %3 = matmul(%2, %2) : float32[4, 4]
        %4 = check_index(%1, extent=4, wrap=True, name='gather') : int64[4, 4]
        %5 = gather(%3, %4, dim=0) : float32[4, 4]
        return %2, %5
    """) == []


def test_a_parameter_is_offered_once_all_indices_are_checked():
    assert offered("""
        %0 = input() : float32[5, 5]
        %1 = input() : int64[5, 5]
        %2 = check_index(%1, extent=5, wrap=True, name='gather') : int64[5, 5]
        %3 = input() : float32[5, 5]
        %4 = gather(%3, %2, dim=0) : float32[5, 5]
        %5 = matmul(%4, %4) : float32[5, 5]
        %6 = sub(%0, %5) : float32[5, 5]
        return %6
    """) == [(0, 0)]


def test_a_parameter_is_not_offered_before_python_is_called():
    """An operation that Python computes may raise."""
    assert offered("""
        %0 = input() : float32[4]
        %1 = neg(%0) : float32[4]
        %2 = argsort(%1, dim=0, descending=False) : int64[4]
        return %1, %2
    """) == []


def test_windows_are_joined_as_rows_of_another_length():
    numbers = np.random.default_rng(0).normal(size=(6, 6))
    rows = genesis.tensor(numbers).exp().unfold(1, 5, 2).reshape(15, 2, 1)
    wanted = np.lib.stride_tricks.sliding_window_view(np.exp(numbers), 5, 1)[:, ::2].reshape(15, 2)
    np.testing.assert_allclose(genesis.cat([rows, rows], 2).numpy(), np.stack([wanted, wanted], 2))
