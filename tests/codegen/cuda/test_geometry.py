"""How kernels are shared out on a device of 132 multiprocessors, which an H100 and an H200 have."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import genesis
from genesis.codegen.cuda.emit import Team
from genesis.codegen.cuda.geometry import launch, team_of
from genesis.codegen.cuda.program import _Assembly
from genesis.codegen.cuda.target import LARGE, SIMULATED
from genesis.runtime.cuda.simulated import SimulatedGpu
from tests.codegen.cuda.schedules import calls_of, program_of

pytestmark = pytest.mark.skipif(SIMULATED, reason="the simulator's blocks are small")

MULTIPROCESSORS = 132


def shared_out(computed, extents):
    """The team and the launch for the one kernel of a reduction, built of a small tensor, over other extents, kept first."""
    (call,) = calls_of(program_of(computed(genesis.tensor(np.ones([20] * len(extents)))))[1])
    if computed is columns:
        extents = extents[::-1]
    team = team_of(call.kernel, extents, MULTIPROCESSORS)
    return team, launch(call.kernel, extents, team, MULTIPROCESSORS)


def columns(x):
    return x.sum(0)


def rows(x):
    return x.sum(1)


def channels(x):
    return x.sum((0, 2))


def places(x):
    return x.argmax()


FEW = [(columns, (512, 2048)), (columns, (4000, 100_000)), (rows, (4, 10_000_000)), (rows, (100, 60_000)),
       (channels, (64, 256, 3136)), (channels, (64, 4, 50176)), (places, (1 << 20,))]


@pytest.mark.parametrize(("computed", "extents"), FEW)
def test_few_points_with_much_to_reduce_are_shared_by_about_as_many_threads_as_a_device_holds(computed, extents):
    team, grid = shared_out(computed, extents)
    assert team.shared and grid.shares > 1 and math.prod(grid.threads) == team.threads
    assert MULTIPROCESSORS * 512 < math.prod(grid.blocks) * team.threads <= MULTIPROCESSORS * 1024


ALONE = [
    (columns, (65536, 2048), Team("column")), (columns, (512, 900), Team("column", LARGE)), (columns, (64, 16), Team("thread")),
    (rows, (50_000, 1000), Team("block")), (rows, (4, 10_000), Team("block", LARGE)), (rows, (50_000, 100), Team("warp")),
    (channels, (64, 32, 49), Team("block")), (channels, (9999, 3, 500), Team("block", 128)),
]


@pytest.mark.parametrize(("computed", "extents", "team"), ALONE)
def test_points_have_a_team_each_where_they_are_many_or_another_launch_would_take_longer(computed, extents, team):
    assert shared_out(computed, extents)[0] == team


def test_rows_of_several_passes_are_not_shared():
    for extents in ((200, 10_000_000), (4, 10_000)):
        assert shared_out(lambda x: x.softmax(1), extents)[0] == Team("block", LARGE)


def test_a_share_is_no_more_than_a_thread_s_turns():
    """Parts have to be joined: each of a column's 16 threads goes around eight times at least."""
    _, grid = shared_out(columns, (64, 2048))
    assert grid.shares == 2048 // (16 * 8)


def test_what_is_read_for_every_point_is_read_by_neighbouring_threads():
    """Sums of columns of normalised rows: the rows' means and deviations lie along the reduced axis, but are few."""
    x, means, deviations = (genesis.tensor(np.ones(shape)) for shape in ((40, 50), (40, 1), (40, 1)))
    (call,) = calls_of(program_of(((x - means) / deviations).sum(0))[1])
    assert not call.kernel.lane_is_reduced and call.extents == (40, 50)


def test_no_launch_serves_more_calls_than_a_grid_has_layers():
    _, program = program_of(genesis.ones(3) * 2)
    (call,) = calls_of(program)
    device = SimpleNamespace(memory=SimpleNamespace(gpu=SimulatedGpu(0)))
    assembly = _Assembly(program.schedule, 0, 0, 0, device)
    assert [len(group) for group in assembly.launch_groups([call] * 70_000)] == [65535, 4465]


LONG = {
    "softmax": lambda x: x.softmax(1), "log-softmax": lambda x: x.log_softmax(1), "variance": lambda x: x.var(1),
    "layer norm": lambda x: genesis.nn.functional.layer_norm(x, x.shape[1:]),
}


@pytest.mark.parametrize("name", LONG)
def test_few_long_rows_of_several_passes_have_a_kernel_for_each_and_every_multiprocessor(name):
    """What is reduced is shared by teams; what depends on it is spread over the elements of all rows."""
    calls = calls_of(program_of(LONG[name](genesis.tensor(np.ones((3, 11_000), np.float32))))[1])
    assert len(calls) > 1
    for call in calls:
        extents = [{3: 4, 11_000: 4_000_000}[extent] for extent in call.extents]
        grid = launch(call.kernel, extents, team_of(call.kernel, extents, MULTIPROCESSORS), MULTIPROCESSORS)
        assert call.kernel.steps == [0] and math.prod(grid.blocks) >= MULTIPROCESSORS


def test_no_thread_is_without_a_row():
    """Of three rows a block has one or all, not eight."""
    x = genesis.tensor(np.ones((3, 5000), np.float32))
    (call,) = calls_of(program_of(x * genesis.tensor(np.ones((3, 1), np.float32)))[1])
    assert launch(call.kernel, call.extents, Team("thread"), MULTIPROCESSORS).threads == (256, 1)
