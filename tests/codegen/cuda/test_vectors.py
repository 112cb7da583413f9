"""Loads and stores of sixteen bytes: the compiler makes them where rows lie so, and elsewhere the same numbers come out."""

import re

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.codegen.cuda.binaries import names, toolchain
from genesis.codegen.cuda.emit import Team, emit_kernel
from genesis.codegen.cuda.geometry import team_of
from genesis.codegen.cuda.target import LARGE, SIMULATED
from tests.codegen.cuda.schedules import calls_of, check, program_of

vectors = pytest.importorskip("genesis.codegen.cuda.device.indexing")
compiled = pytest.mark.skipif(SIMULATED, reason="the simulator compiles nothing")
simulated = pytest.mark.skipif(not SIMULATED, reason="runs in the simulator: see test_in_the_simulator.py")


def normal(*shape, dtype=genesis.float32):
    """A tensor with memory of its own, which views of it are read from where they lie."""
    x = genesis.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32)).to(dtype)
    x.tolist()
    return x


# ---- what the compiler makes of them ----


def assembly(function, capability=(8, 0)):
    return toolchain().compile_ptx(
        function.source, function.name, function.parameters, names(), capability, function.threads)


def moved(ptx):
    """How the assembly moves several numbers at once."""
    return set(re.findall(r"\b(?:ld|st)\.global\.v\d\.\w+", ptx))


ONES, PAIRS = {"ld.global.v4.f32", "st.global.v4.f32"}, {"ld.global.v2.f64", "st.global.v2.f64"}
KERNELS = {
    "elementwise": (lambda: normal(40, 50) * 2 + normal(50), ONES),
    "double": (lambda: normal(99, dtype=genesis.float64).exp(), PAIRS),
    "eight of 16 bits": (lambda: normal(99, dtype=genesis.bfloat16).relu(), {"ld.global.v4.u32", "st.global.v4.u32"}),
    "to 16 bits": (lambda: normal(99).half(), {"ld.global.v4.f32", "st.global.v4.u16"}),
    "strided rows": (lambda: normal(9, 60)[:, :30].sqrt(), ONES),
    "what is filled": (lambda: genesis.rand(90), {"st.global.v4.f32"}),
    "rows looked up": (lambda: F.embedding(genesis.tensor([1, 2, 2]), normal(20, 30)), ONES),
    "sums of rows": (lambda: normal(30, 90).sum(1), {"ld.global.v4.f32"}),
    "long rows, shared": (lambda: normal(2, 30000).amax(1), {"ld.global.v4.f32"}),
    "planes": (lambda: normal(30, 4, 90).transpose(0, 1).exp().sum((1, 2)), {"ld.global.v4.f32"}),
    "a total": (lambda: (normal(300) - 1).square().mean(), {"ld.global.v4.f32"}),
    "softmax by warps": (lambda: F.softmax(normal(300, 90), 1), ONES),
    "softmax by blocks": (lambda: F.softmax(normal(3, 2000), 1), ONES),
    "layer norm": (lambda: F.layer_norm(normal(300, 90), (90,), normal(90), normal(90)), ONES),
}


@compiled
@pytest.mark.parametrize("name", KERNELS)
def test_what_lies_side_by_side_is_loaded_and_stored_sixteen_bytes_at_once(name):
    make, wanted = KERNELS[name]
    (call,) = calls_of(program_of(make())[1])
    function = emit_kernel(call.kernel, team_of(call.kernel, call.extents, 132))
    ptx = assembly(function)
    assert wanted <= moved(ptx), function.source
    assert ".local" not in ptx, "a thread's points are in registers"


@compiled
def test_updates_of_many_tensors_are_vectors_for_both_architectures():
    updated = []
    for size in ((30, 2), (7,), (1, 16)):
        p, momentum = normal(*size), 0.9 * normal(*size) + normal(*size)
        updated += [momentum, p - 0.1 * momentum]
    (calls,) = program_of(*updated)[1].schedule.stages
    assert len(calls) == 3
    function = emit_kernel(calls[0].kernel, Team("thread"), many=True)
    for capability in ((8, 0), (9, 0)):
        ptx = assembly(function, capability)
        assert moved(ptx) >= ONES and not toolchain().link(ptx, (9, 0)).spilled, function.source


# ---- what comes out ----

AGAIN = {
    "chains": lambda x: (x * 2 + x.exp(), x.bfloat16() + 1, (x > 0), x.double() * x),
    "rows": lambda x: (x.sum(-1), x.argmax(-1), F.softmax(x, -1), x.var(-1)),
}
LENGTHS = (1, 3, 4, 5, 31, 32, 33, 64, 67)


@pytest.fixture
def taken(monkeypatch):
    """Collects the addresses at which vectors are read or written."""
    found, aligned = [], vectors.aligned

    def noted(memory, offset, nbytes):
        vector = aligned(memory, offset, nbytes)
        found.append(vector.address)
        assert vector.address == memory.address + int(offset) * memory.dtype.itemsize
        return vector

    monkeypatch.setattr(vectors, "aligned", noted)
    return found


@simulated
@pytest.mark.parametrize("name", AGAIN)
@pytest.mark.parametrize("first", [0, 1, 4])
def test_vectors_give_what_elements_give(name, first, taken):
    """Rows of every length that a vector divides or does not, which begin anywhere."""
    for length in LENGTHS:
        for rows in (1, 3):
            x = normal(rows, length + first)[:, first:]
            check(*AGAIN[name](x if rows > 1 else x[0]))
    assert taken


@simulated
@pytest.mark.parametrize("team", [Team("warp"), Team("block"), Team("block", LARGE)], ids=str)
def test_teams_read_vectors_where_a_row_is_aligned_and_elements_where_not(team, taken):
    x = normal(4, 70)[:, 2:]  # of rows of 280 bytes, from the eighth on
    check(x[::2].sum(1), teams=team)
    assert not taken
    check(x[1::2].sum(1), teams=team)
    assert len(set(taken)) == 2 * 68 // 4
    check(F.layer_norm(x, (68,)), F.softmax(x, 1), teams=team)


@simulated
def test_in_place_and_empty(taken):
    x = normal(3, 64)
    y = x.clone()
    y[:, 4:].mul_(2)
    y[1:].add_(y[1:].sum(1, keepdim=True))
    check(y, normal(0) * 2, normal(3, 0).sum(1), normal(0, 3).amax(1), normal(1).sum())
    assert taken


@simulated
def test_elements_that_start_anywhere_are_never_taken_for_vectors(taken):
    x = normal(130)
    for first in (1, 2, 3):
        check(x[first:] * x[: -first or None])
    assert not taken
    check(x[4:] * x[:-4])
    assert taken
