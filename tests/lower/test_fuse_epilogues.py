"""Epilogues: which calls follow a product's rows, which must not, and that the values are those of NumPy and torch."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis
from genesis.execution import flush as execute
from genesis.execution.plan import plan_for
from genesis.lower import lower
from genesis.lower.stages import Product
from genesis.lower.target import SequentialTiles, Target
from genesis.runtime.number_of_threads import get_num_threads, set_num_threads
from genesis.tensor.dispatch import array_of
from tests.lower.text import parsed

FEW = SequentialTiles(1 << 20, 1 << 20, 100)
EPILOGUES, TILES = map(importlib.import_module, ("genesis.lower.fuse_epilogues", "genesis.lower.fuse_tiles"))


@pytest.fixture(autouse=True)
def _eager_to_follow(monkeypatch):
    """Small products are followed too, and become no loops."""
    monkeypatch.setattr(EPILOGUES, "LEAST_SAVED", 1)
    monkeypatch.setattr(EPILOGUES, "PACKING", 0)
    monkeypatch.setattr(TILES, "LEAST_SAVED", 1 << 40)


def followers(stages):
    """The epilogue of each product that has one."""
    return [call.epilogue for stage in stages for call in stage if isinstance(call, Product) and call.epilogue]


def followers_of(*tensors):
    return followers(plan_for(array_of(tensors[0]).trace).lowered.schedule.stages)


def operands(*shapes, dtype=np.float32):
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


# ---- values ----

@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "n", "k"), [(70, 80, 20), (301, 64, 13), (97, 131, 800), (13, 1024, 5)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_elementwise_kernel_follows_the_rows_of_a_product(dtype, m, n, k, threads):
    x, w, b = operands((m, k), (k, n), (n,), dtype=dtype)
    before = get_num_threads()
    set_num_threads(threads)
    try:
        h = genesis.tensor(x) @ genesis.tensor(w)
        y = (h + genesis.tensor(b)).sigmoid()
        assert [len(calls) for calls in followers_of(y)] == [1]
        got = y.numpy()
    finally:
        set_num_threads(before)
    np.testing.assert_allclose(got, 1 / (1 + np.exp(np.minimum(-(x @ w + b), 80))), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(h.numpy(), x @ w, rtol=1e-3, atol=1e-3)


def test_kernels_over_whole_rows_follow_one_another():
    x, w, residual = operands((150, 40), (40, 96), (150, 96))
    h = genesis.tensor(x) @ genesis.tensor(w) + genesis.tensor(residual)
    normal = genesis.nn.functional.layer_norm(h, (96,))
    y = normal.softmax(-1) * 2
    [calls] = followers_of(y)
    assert 1 <= len(calls) <= 3
    want = torch.from_numpy(x) @ torch.from_numpy(w) + torch.from_numpy(residual)
    np.testing.assert_allclose(h.numpy(), want, rtol=1e-4, atol=1e-4)
    want = torch.nn.functional.layer_norm(want, (96,)).softmax(-1) * 2
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-5)


def test_values_are_the_same_to_the_bit_as_without(monkeypatch):
    x, w, b = map(genesis.tensor, operands((203, 417), (417, 72), (72,)))

    def network():
        return genesis.nn.functional.gelu(x @ w + b) * 1.5

    y = network()
    assert followers_of(y)
    there = y.numpy()
    monkeypatch.setattr("genesis.lower.fuse_epilogues", lambda nodes, stages, *rest: stages)
    z = network() + 0
    assert not followers_of(z)
    np.testing.assert_array_equal(z.numpy(), there)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 120), st.integers(64, 140), st.integers(1, 60), st.booleans(),
    st.lists(st.sampled_from(["relu", "neg", "row", "column", "product", "softmax"]), min_size=1, max_size=4))
def test_any_chain_of_kernels_gives_what_numpy_gives(m, n, k, turned, chain):
    x, w, row, column = operands((m, k), (n, k) if turned else (k, n), (n,), (m, 1), dtype=np.float64)
    want = x @ (w.T if turned else w)
    y = product = genesis.tensor(x) @ (genesis.tensor(w).mT if turned else genesis.tensor(w))
    held = []
    plain = want
    for step in chain:
        if step == "relu":
            y, want = y.relu(), np.maximum(want, 0)
        elif step == "neg":
            y, want = -y, -want
        elif step == "softmax":
            shifted = np.exp(want - want.max(-1, keepdims=True))
            y, want = y.softmax(-1), shifted / shifted.sum(-1, keepdims=True)
        else:
            other, number = {
                "row": (genesis.tensor(row), row), "column": (genesis.tensor(column), column), "product": (product, plain)
            }[step]
            y, want = y + other, want + number
        held.append((y, want))
    for got, wanted in held:
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-9, atol=1e-9)


# ---- what may not follow ----

def lowered(text, threads=2, **kwargs):
    graph = parsed(text)
    return lower(graph.nodes, graph.outputs, Target(threads, **kwargs))


UPDATE = """
    %0 = input() : float32[96, 64]
    %1 = input() : float32[96, 32]
    %2 = input() : float32[32, 64]
    %3 = matmul(%1, %2) : float32[96, 64]
    %4 = sub(%0, %3) : float32[96, 64]
    return %4
"""


def test_an_update_follows_its_gradient_and_is_written_over_the_parameter():
    program = lowered(UPDATE)
    assert [len(calls) for calls in followers(program.schedule.stages)] == [1]
    assert len(program.donations) == 1


def test_where_the_machine_computes_tiles_in_turn_nothing_follows():
    assert not followers(lowered(UPDATE, sequential_tiles=FEW, unroll=False, strided=True).schedule.stages)


def test_an_update_waits_for_who_reads_the_parameter_after_the_gradient():
    program = lowered("""
        %0 = input() : float32[96, 64]
        %1 = input() : float32[96, 32]
        %2 = input() : float32[32, 64]
        %3 = input() : float32[20, 96]
        %4 = matmul(%1, %2) : float32[96, 64]
        %5 = matmul(%3, %0) : float32[20, 64]
        %6 = sub(%0, %4) : float32[96, 64]
        return %6, %5
    """)
    assert not followers(program.schedule.stages)
    assert len(program.donations) == 1


def test_an_update_waits_for_a_product_that_reads_the_parameter_itself():
    program = lowered("""
        %0 = input() : float32[96, 96]
        %1 = input() : float32[96, 96]
        %2 = matmul(%1, %0) : float32[96, 96]
        %3 = sub(%0, %2) : float32[96, 96]
        return %3
    """)
    assert not followers(program.schedule.stages)
    assert len(program.donations) == 1


def test_an_update_waits_for_the_last_index_to_be_checked():
    program = lowered("""
        %0 = input() : float32[96, 64]
        %1 = input() : float32[96, 32]
        %2 = input() : float32[32, 64]
        %3 = input() : int64[5]
        %4 = input() : float32[7]
        %5 = matmul(%1, %2) : float32[96, 64]
        %6 = check_index(%3, extent=7, wrap=True, name='gather') : int64[5]
        %7 = gather(%4, %6, dim=0) : float32[5]
        %8 = sub(%0, %5) : float32[96, 64]
        return %7, %8
    """)
    assert not followers(program.schedule.stages)
    assert len(program.donations) == 1


def test_an_update_waits_for_python():
    program = lowered("""
        %0 = input() : float32[96, 64]
        %1 = input() : float32[96, 32]
        %2 = input() : float32[32, 64]
        %3 = input() : float32[5]
        %4 = matmul(%1, %2) : float32[96, 64]
        %5 = argsort(%3, dim=0, descending=False) : int64[5]
        %6 = sub(%0, %4) : float32[96, 64]
        return %5, %6
    """)
    assert not followers(program.schedule.stages)


def test_what_reads_all_rows_does_not_follow():
    x, w = operands((80, 30), (30, 80))
    h = genesis.tensor(x) @ genesis.tensor(w)
    y = h + h.mT
    assert not followers_of(y)
    np.testing.assert_allclose(y.numpy(), x @ w + (x @ w).T, rtol=1e-4, atol=1e-4)


def test_what_is_put_into_a_copy_waits_for_the_copy():
    x, w, base = operands((90, 30), (30, 70), (90, 100))
    h = genesis.tensor(x) @ genesis.tensor(w)
    y = genesis.tensor(base) * 2
    y[:, :70] = h.sigmoid()
    want = base * 2
    want[:, :70] = 1 / (1 + np.exp(-(x @ w)))
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-5)


def test_what_lies_in_the_arena_is_not_there_for_longer():
    """A kernel that is no neighbour of its product stays where it is, unless its results have memory of their own anyhow."""
    text = """
        %0 = input() : float32[96, 32]
        %1 = input() : float32[32, 64]
        %2 = input() : float32[64, 200]
        %3 = matmul(%0, %1) : float32[96, 64]
        %4 = matmul(%3, %2) : float32[96, 200]
        %5 = exp(%3) : float32[96, 64]
        %6 = matmul(%5, %2) : float32[96, 200]
        return %4, %6"""
    assert not followers(lowered(text).schedule.stages)
    assert len(followers(lowered(text + ", %5").schedule.stages)) == 1


def test_products_that_pack_more_than_they_save_are_not_followed(monkeypatch):
    monkeypatch.undo()
    program = lowered("""
        %0 = input() : float32[256, 8192]
        %1 = input() : float32[8192, 1024]
        %2 = matmul(%0, %1) : float32[256, 1024]
        %3 = exp(%2) : float32[256, 1024]
        return %3
    """)
    assert not followers(program.schedule.stages)


# ---- training ----

def trained(library, step, tied=False, clipped=0.0, decay=0.0, held=False, rounds=5):
    """The parameters of two layers after some steps, and what was seen on the way; gradients have several blocks of terms."""
    inner, last = (96, 96) if tied else (80, 70)
    x, y, *weights = operands((700, 96), (700, last), (inner, 96), (last, inner))
    tensor = genesis.tensor if library is genesis else torch.from_numpy
    parameters = [tensor(0.1 * w).requires_grad_() for w in weights[: 1 if tied else 2]]
    first, last = parameters[0], parameters[-1]
    optimizer = library.optim.AdamW(parameters, lr=0.01, weight_decay=decay)
    x, y = tensor(x), tensor(y)
    seen = []

    def run():
        optimizer.zero_grad()
        loss = (((x @ first.T).tanh() @ last.T - y) ** 2).mean()
        loss.backward()
        if clipped:
            library.nn.utils.clip_grad_norm_(parameters, clipped)
        before = last.detach().clone() if held else loss
        optimizer.step()
        return before.detach()

    run = step(run)
    for _ in range(rounds):
        seen.append(np.array(run().numpy()))
    return [p.detach().numpy() for p in parameters], seen


TRAININGS = {
    "plain": {}, "decay": {"decay": 0.3}, "clipped": {"clipped": 0.05}, "tied": {"tied": True},
    "old parameters held": {"held": True}, "all": {"tied": True, "clipped": 0.05, "decay": 0.1, "held": True},
}


@pytest.mark.parametrize("step", [genesis.compile, lambda run: run], ids=["compiled", "looks eager"])
@pytest.mark.parametrize("case", TRAININGS)
def test_training_gives_the_parameters_that_torch_gives(case, step, monkeypatch):
    plans = []
    monkeypatch.setattr(execute, "FLUSH_HOOKS", [*execute.FLUSH_HOOKS, lambda trace, plan: plans.append(plan)])
    got, seen = trained(genesis, step, **TRAININGS[case])
    want, wanted = trained(torch, lambda run: run, **TRAININGS[case])
    for here, there in zip([*got, *seen], [*want, *wanted], strict=True):
        # A hundredth of a step: where a gradient is about 0, AdamW makes steps of its rounding.
        np.testing.assert_allclose(here, there, rtol=2e-4, atol=1e-4)
    if case in ("plain", "decay"):  # the updates of both parameters follow their gradients
        stages = [plan.lowered.schedule.stages for plan in plans if plan is not None]
        assert max(sum(len(call.writes) == 3 for calls in followers(s) for call in calls) for s in stages) == 2


def test_a_parameter_survives_a_step_that_fails_on_an_index():
    x, w, table = operands((90, 30), (64, 30), (7, 4))
    weight = genesis.tensor(w, requires_grad=True)
    optimizer = genesis.optim.SGD([weight], lr=0.1)
    (genesis.tensor(x) @ weight.T).sum().backward()
    optimizer.step()
    picked = genesis.tensor(table)[genesis.tensor([1, 9])]
    with pytest.raises(IndexError, match="9"):
        picked.numpy()
    np.testing.assert_allclose(weight.detach().numpy(), w - 0.1 * x.sum(0), rtol=1e-4, atol=1e-4)


# ---- what a reader sees ----

def test_a_program_shows_what_follows():
    x, w = operands((90, 30), (30, 77))
    h = genesis.tensor(x) @ genesis.tensor(w)
    y = h.exp()
    program = genesis.debug.program(y)
    [line] = program.instructions
    assert "of each block of rows:\n  kernel" in line and "exp" in program.kernels[0].ops
    cost = genesis.debug.kernels(y)
    assert "matmul" in cost.stages[0].ops and "exp" in cost.stages[0].ops
    assert h.shape == y.shape


