"""Kernels of every kind, run by numba's simulator, give what the NumPy references give."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis
import genesis.nn.functional as F
from genesis.codegen.cuda.emit import Team, emit_kernel
from genesis.codegen.cuda.geometry import launch, team_of
from genesis.codegen.cuda.simulate import run
from genesis.codegen.cuda.target import LARGE, SIMULATED
from genesis.execution import flush as execute
from genesis.ir.dtypes import DTYPES
from genesis.lower import levels
from genesis.ops.registry import OPERATIONS
from tests.codegen.cuda.schedules import MULTIPROCESSORS, Device, calls_of, check, lowered, program_of, results
from tests.fuzz import programs
from tests.fuzz.oracle import LOOSE, unlike
from tests.fuzz.steps import STEPS
from tests.ops.checks import cast
from tests.ops.checks import run as called
from tests.ops.samples import INTERNAL, is_elementwise, samples_of

pytest.importorskip("numba_cuda")
pytestmark = pytest.mark.skipif(not SIMULATED, reason="runs in the simulator: see test_in_the_simulator.py")

NOT_OF_BOOLS = {"sub", "neg", "pow", "floor_divide", "fmod", "bitwise_left_shift", "bitwise_right_shift"}


def normal(*shape, dtype=np.float32, seed=0):
    return genesis.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


# ---- values at each point ----


@pytest.mark.parametrize("name", [name for name in sorted(set(OPERATIONS) - INTERNAL) if is_elementwise(name)])
def test_elementwise_operations_in_every_dtype(name):
    """NaN, infinities, zeros and wrapping integers among the operands."""
    computed = []
    for dtype in DTYPES.values():
        if dtype is genesis.bool and name in NOT_OF_BOOLS:
            continue
        for sample in samples_of(name, dtype):
            arguments = [cast(a, dtype) for a in sample.arguments]
            some = tuple(a[:: max(1, a.size // 60)] if isinstance(a, np.ndarray) and a.ndim == 1 else a for a in arguments)
            with contextlib.suppress(TypeError):
                computed.append(called(name, sample._replace(arguments=some), genesis.tensor, genesis))
    check(*computed)


@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16", "float16", "int64", "int8", "uint8", "bool"])
def test_conversions(source):
    numbers = np.array([0, 1, 2.5, 3.75, 100, 77] + ([-1, -2.5, -128, 300.25, 60000, -2000] if "float" in source else []))
    x = genesis.tensor(numbers.astype(np.float32)).to(DTYPES[source])
    check(*(x.to(dtype) for name, dtype in DTYPES.items() if name != source))


def test_what_does_not_fit_saturates_at_the_ends_of_integers():
    x = genesis.tensor([float("nan"), float("inf"), -float("inf"), 1e30, -1e30])
    y32, y64 = x.to(genesis.int32), x.to(genesis.int64)
    trace, program = program_of(y32, y64)
    found = {program.nodes[value].dtype.name: ours for value, ours, _, _ in results(trace, program)}
    assert found["int32"].tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31)]
    assert found["int64"].tolist() == [0, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63)]


# ---- reductions: whoever works on a row ----

ROWS = {
    "sums": lambda x: (x.sum(1), (x * 2).exp().sum(1)), "extremes": lambda x: (x.amax(1), x.amin(1), x.argmax(1), x.argmin(1)),
    "softmax": lambda x: (F.softmax(x, 1), F.log_softmax(x, 1)), "norms": lambda x: (F.layer_norm(x, x.shape[1:]),),
    "truth": lambda x: ((x > 2).any(1), (x < 3).all(1)), "products": lambda x: (x.prod(1),),
    "integers": lambda x: ((x * 3).int().sum(1), (x * 3).to(genesis.int8).amax(1), x.abs().to(genesis.uint8).amin(1)),
    "16 bits": lambda x: (x.to(genesis.bfloat16).sum(1), x.to(genesis.float16).amax(1)),
    "variance and a total": lambda x: (x.var(1), (x - x.mean(1, keepdim=True)).square().sum()),
    "columns of normalised rows": lambda x: ((x - x.mean(1, keepdim=True)).sum(0), x.sum(1)),
}


@pytest.mark.parametrize("team", [Team("warp"), Team("block"), Team("block", LARGE)], ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_rows(name, team):
    x = normal(5, 21)
    for y in ROWS[name](x):
        check(y, teams=team if all(call.kernel.lane_is_reduced for call in calls_of(program_of(y)[1])) else None)


@pytest.mark.parametrize("team", [Team("thread"), Team("column"), Team("column", LARGE)], ids=str)
@pytest.mark.parametrize("name", [name for name in ROWS if not name.startswith("columns")])
def test_rows_that_lie_across_memory(name, team):
    """Lanes are kept: neighbouring threads are neighbouring results."""
    x = normal(19, 6).T
    for y in ROWS[name](x):
        kernels = [call.kernel for call in calls_of(program_of(y)[1])]
        check(y, teams=team if all(any(r for _, r in k.axes) and not k.lane_is_reduced for k in kernels) else None)


NAN = float("nan")
PLACES = [[1, 3, 3, 2], [NAN, 5, NAN, 1], [1, NAN, 9, NAN], [-1, -1, -1, -1], [0.0, -0.0, 0.0, -0.0]]


@pytest.mark.parametrize("team", [Team("warp"), Team("block")], ids=str)
def test_positions_are_those_of_the_first_nan_or_else_the_first_extreme(team):
    rows = np.tile(np.array(PLACES, np.float32), (1, 3))
    x = genesis.tensor(rows)
    check(x.argmax(1), x.argmin(1), teams=team)
    check(x.amax(1), x.amin(1), teams=team)


TOTALS = {
    "sum of all": lambda x: x.sum(), "two of all": lambda x: (x.sum() / x.exp().sum()), "all reduced": lambda x: x.argmax(),
    "over axes apart": lambda x: x.reshape(3, 5, 8).sum((0, 2)), "over leading axes": lambda x: x.reshape(3, 5, 8).amax((0, 1)),
    "none": lambda x: genesis.ones(0, 4).sum(1) + genesis.ones(3, 0).sum(), "mean of 0-d": lambda x: x[0, 0].mean() * 2,
    "loss": lambda x: F.cross_entropy(x, genesis.tensor([i % 8 for i in range(15)])),
}


@pytest.mark.parametrize("name", TOTALS)
def test_totals(name):
    check(TOTALS[name](normal(15, 8)))


# ---- points that several teams share ----

PLENTY = 6  # multiprocessors for the few points of tests
SHAPES = {
    "rows": ((3, 37), 1), "columns": ((37, 6), 0), "a row": ((53,), 0), "columns of each": ((2, 23, 5), 1),
    "planes": ((5, 3, 11), (0, 2)),
    "lines of planes": ((6, 2, 2, 7), (0, 3)), "outer two": ((5, 2, 7, 3), (0, 2)), "few in many": ((2, 2, 61), (0, 2)),
}
SHARED = [(where, dtype) for where in SHAPES for dtype in (DTYPES if where in ("rows", "columns") else ("float32", "int8"))]


@pytest.mark.parametrize(("where", "dtype"), SHARED)
def test_shares_are_joined_to_what_one_team_finds(where, dtype):
    shape, axes = SHAPES[where]
    numbers = np.random.default_rng(0).integers(-2, 3, size=shape)  # of which many are extreme
    x = genesis.tensor(numbers if dtype == "int64" else numbers.astype(np.float32)).to(DTYPES[dtype])
    x = x * 0.75 if x.dtype.is_floating_point else x
    ys = [x.sum(axes), x.prod(axes), x.amax(axes), x.amin(axes), (x != 2).all(axes), (x > 1).any(axes)]
    ys += [x.mean(axes)] if x.dtype.is_floating_point else []
    ys += [x.argmax(axes), x.argmin(axes)] if isinstance(axes, int) else []
    assert any("share_of" in source for source in check(*ys, multiprocessors=PLENTY))


@pytest.mark.parametrize("across", [False, True])
def test_shares_tell_the_first_nan_or_else_the_first_extreme(across):
    rows = np.tile(np.array(PLACES, np.float32), (1, 9))
    rows[3, 20], rows[4, 30], rows[4, 7] = 5, NAN, NAN
    x = genesis.tensor(rows.T if across else rows)
    for y in (x.argmax(1 - across), x.argmin(1 - across), x.amax(1 - across), x.amin(1 - across)):
        assert all("share_of" in source for source in check(y, multiprocessors=PLENTY))


def test_what_depends_on_shared_points_is_computed_when_all_are_joined():
    x, w = normal(37, 6), normal(6)
    for ys in (((x - w).square().sum(0) / 36,), (w - 0.1 * (x.sum(0) / 37).exp() * w,), (x * 2, (x * 2).sum(0)),
               (x.bfloat16().sum(0), x.half().amin(0), x.double().prod(0), x.argmax(0), (x > 0).all(0))):
        assert any("share_of" in source for source in check(*ys, multiprocessors=PLENTY))


def test_shares_may_be_empty():
    """Of six turns each of four shares has two, and the last none: its result is that of no point."""
    x = genesis.tensor([-math.inf] * 81, dtype=genesis.float64)
    (call,) = calls_of(program_of(x.argmax())[1])
    team = team_of(call.kernel, call.extents, 1)
    assert team == Team("block", shared=True) and launch(call.kernel, call.extents, team, 1).shares == 4
    check(x.argmax(), x.argmin(), multiprocessors=1)


@pytest.mark.parametrize("name", ["softmax", "norms", "variance and a total"])
def test_few_long_rows_are_passed_over_by_kernels_that_share_them(name, monkeypatch):
    monkeypatch.setattr(levels, "SMALL", 100)
    assert any("share_of" in source for source in check(*ROWS[name](normal(3, 70)), multiprocessors=PLENTY))


# ---- memory ----

INDICES = genesis.tensor([3, 0, 3, 3, 1, 0])
MOVES = {
    "transposed": lambda x: x.T + 1, "flipped": lambda x: x.flip(0, 1) * 2, "diagonal": lambda x: x.diagonal() + x[0, :5],
    "embedding": lambda x: F.embedding(INDICES, x), "gather": lambda x: x.gather(1, INDICES.reshape(6, 1) % 5),
    "negative indices": lambda x: x[genesis.tensor([-1, 2, -6])], "cat": lambda x: genesis.cat([x, x[:2] * 2, x.exp()]),
    "scatter, in order": lambda x: x.scatter(0, INDICES.reshape(6, 1).expand(6, 5), x * 2),
    "sums that meet": lambda x: genesis.zeros(4, 5).index_add(0, INDICES, x),
    "integer sums that meet": lambda x: genesis.zeros(4, 5).long().index_add(0, INDICES, (x * 9).long()),
    "16-bit sums that meet": lambda x: genesis.zeros(4, 5, dtype=genesis.float16).index_add(0, INDICES, x.to(genesis.float16)),
    "sums in one line": lambda x: genesis.zeros(4).index_add(0, INDICES, x[:, 0]),
    "windows": lambda x: F.max_pool2d(x.reshape(1, 1, 6, 5), 2) + F.avg_pool2d(x.reshape(1, 1, 6, 5), 2),
    "running sums": lambda x: (x.cumsum(0) + x.bfloat16().cumsum(1).float() + (x * 9).to(genesis.int8).cumsum(1)),
    "padding": lambda x: F.pad(x, (1, 2, 0, 3)), "broadcast": lambda x: x[:, :1] * x[:1] + x.sum(0),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    check(MOVES[name](normal(6, 5)))


def test_an_index_out_of_range_is_noted_and_0_taken():
    """What is noted first stays, of whatever threads and launches come after: a record is never of two faults."""
    x, where = normal(4), genesis.tensor([1, 7, 0])
    device, (call, other) = planned(x[where], normal(3)[genesis.tensor([0, 9, -8, 1])])
    device.launch(call)
    taken = x.numpy()[[1, 0, 0]]
    np.testing.assert_array_equal(device.array(call.writes[0]), taken)
    noted = [1, site_of(call), 7, 4]
    assert device.fault.tolist() == noted
    device.launch(other)
    assert device.fault.tolist() == noted
    device.fault[:] = 0
    device.launch(other)
    assert device.fault.tolist() in [[1, site_of(other), 9, 3], [1, site_of(other), -8, 3]]


def planned(*tensors):
    """A device with the inputs of pending tensors, and the calls that compute them."""
    trace, program = program_of(*tensors)
    numbers = [index for index, node in enumerate(trace.nodes) if node.op == "input"]
    inputs = {i: trace.inputs[numbers.index(program.origins[i])].memory for i in program.inputs}
    return Device(program.nodes, {i: memory.pointer for i, memory in inputs.items()}, trace.scalars), calls_of(program)


def site_of(call):
    return next(word.value for word in call.kernel.words if word.kind == "site")


# ---- random numbers ----


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_are_the_reference_s_bit_for_bit(dtype):
    genesis.manual_seed(-3)
    y = genesis.rand(50, dtype=DTYPES[dtype])
    trace, program = program_of(y)
    ((_, ours, theirs, _),) = results(trace, program)
    np.testing.assert_array_equal(ours, theirs)


def test_normal_draws_and_dropout():
    check(genesis.randn(40), genesis.randn(40, dtype=genesis.float64), F.dropout(normal(40), 0.3), scale=8)


# ---- many calls in one launch ----


def test_one_launch_serves_many_calls():
    sizes = [(30, 2), (7,), (1, 16), (40,)]
    updated = [p - 0.1 * genesis.sign(p) * p.abs().sqrt() for p in (normal(*size) for size in sizes)]
    trace, program = program_of(*updated)
    (calls,) = [stage for stage in program.schedule.stages if len(stage) == len(sizes)]
    expected = {value: theirs for value, _, theirs, _ in results(trace, program)}
    numbers = [index for index, node in enumerate(trace.nodes) if node.op == "input"]
    device = Device(program.nodes, {i: trace.inputs[numbers.index(program.origins[i])].memory.pointer for i in program.inputs},
                    trace.scalars)
    function = emit_kernel(calls[0].kernel, Team("thread"), many=True)
    grids = [launch(call.kernel, call.extents, Team("thread"), MULTIPROCESSORS) for call in calls]
    table = np.zeros((len(calls), len(function.row)), np.int64)
    for row, call in zip(table, calls, strict=True):
        for column, word in enumerate(function.row):
            value = device.word(call.kernel.words[word], {})
            row[column] = np.float64(value).view(np.int64) if isinstance(value, float) else value
    blocks = (max(grid.blocks[0] for grid in grids), max(grid.blocks[1] for grid in grids), len(calls))
    run(function, blocks, grids[0].threads, [table.ctypes.data] * len(function.parameters))
    for call in calls:
        (value,) = call.writes
        np.testing.assert_allclose(device.array(value), expected[value], 1e-6)


# ---- whatever comes ----


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.data(), st.integers(1, 8), st.booleans(), st.sampled_from([MULTIPROCESSORS, PLENTY]))
def test_random_programs(data, length, gradients, multiprocessors):
    """Every value that any kernel of a random program writes is that of the reference."""
    def compared(trace, held):
        found = lowered(trace, held)
        loose = max(LOOSE.get(node.dtype.name, 0) for node in found.nodes)
        for value, ours, theirs, source in results(trace, found, multiprocessors=multiprocessors):
            difference = unlike(ours, theirs, loose)
            assert not difference, f"{found.nodes[value].op}: {difference}\n{source}"
        return plan(trace, held)

    plan = execute.find_plan
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(execute, "find_plan", compared)
        patched.setattr(programs, "LARGE", [(30, 25), (70,), (6, 11, 4)])
        patched.setattr(programs, "LENGTHS", [0, 1, 15, 16, 17, 33])
        genesis.manual_seed(0)
        program = programs.Program(lambda low, high: data.draw(st.integers(low, high)), gradients)
        program.run(length, STEPS)
        program.finish()
