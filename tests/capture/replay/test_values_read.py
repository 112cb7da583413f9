"""Calls that read values in their middle are replayed as long as they read the same ones, and are as uncompiled calls else."""

import random
import re
from functools import partial

import numpy as np
import pytest

import genesis
from genesis.capture.compiled import STRAYS
from genesis.debug import explain
from genesis.nn import functional as F
from genesis.runtime.instructions import are_possible
from tests.robustness.interrupts import interrupt, moments_of


@pytest.fixture
def by_instructions():
    if not are_possible():
        pytest.skip("another interpreter than CPython of 64 bits")


POSITIVE, NEGATIVE = genesis.tensor([1.0, 2.0, 3.0]), genesis.tensor([-1.0, 2.0, -3.0])


def branched(x):
    return x * 2 if x.sum() > 0 else (x - 1).exp()


@pytest.mark.usefixtures("by_instructions")
def test_both_branches_are_replayed_by_instructions():
    compiled = genesis.compile(branched)
    for k in range(20):
        x = (POSITIVE, NEGATIVE)[k % 2]
        assert compiled(x).tolist() == branched(x).tolist()
    assert len(compiled.entries) == 2 and all(entry.native.replays >= 5 for entry in compiled.entries)


@pytest.mark.usefixtures("by_instructions")
def test_sizes_that_were_read_are_those_of_the_next_program():
    def hot(x):
        return F.one_hot(x, int(x.max()) + 1).float() @ genesis.ones(int(x.max()) + 1, 2)

    compiled = genesis.compile(hot)
    given = [genesis.tensor([0, k]) for k in (1, 2, 4)]
    for k in range(24):
        assert compiled(given[k % 3]).tolist() == hot(given[k % 3]).tolist()
    assert len(compiled.entries) == 3 and sum(entry.native.replays for entry in compiled.entries) >= 15


def test_numbers_are_compared_bit_by_bit():
    compiled = genesis.compile(lambda x: x * 1 if np.signbit(x.item()) else x + 1)
    for value in (0.0, -0.0, float("nan"), 0.0, -0.0, float("nan")):
        result = compiled(genesis.tensor(value)).item()
        np.testing.assert_equal(result, value if np.signbit(value) else value + 1)
    compiled = genesis.compile(lambda x: x * 2 if x.sum().item() != x.sum().item() else x)
    assert [compiled(genesis.tensor([float("nan")])).isnan().item() for _ in range(5)] == [True] * 5
    assert compiled.entries[0].replays >= 3


def test_arguments_and_lists_that_are_read_are_compared():
    def cut(x, ends):
        first, last = ends.tolist()
        return x[first:last] * 2

    compiled = genesis.compile(cut)
    ends = [genesis.tensor([0, 2]), genesis.tensor([1, 3])]
    for k in range(16):
        assert compiled(POSITIVE, ends[k % 2]).tolist() == cut(POSITIVE, ends[k % 2]).tolist()
    assert len(compiled.entries) == 2 and sum(entry.replays for entry in compiled.entries) == 14


def test_values_that_are_always_others_are_no_guards_after_a_while():
    compiled = genesis.compile(lambda x: x * 2 if x.sum().item() < 1e9 else x)
    for k in range(STRAYS + 60):
        assert compiled(genesis.tensor([float(k)])).tolist() == [2.0 * k]
    assert not compiled.entries and "looked at" in str(compiled.refusals[0])


def test_longer_values_and_reads_after_writes_are_refused():
    compiled = genesis.compile(lambda x: x * len(x.tolist()))
    compiled(genesis.ones(100))
    assert re.search(r"looked at of 400 bytes, .* than 64 \(at .*test_values_read.py:\d+\)", repr(compiled))
    count = genesis.zeros(())

    def counting(x):
        count.add_(1)
        return x * 2 if count.item() < 3 else x * 3

    compiled = genesis.compile(counting)
    assert [compiled(genesis.ones(())).item() for _ in range(5)] == [2, 2, 3, 3, 3]
    assert "after a tensor was written over" in str(compiled.refusals[0])


@pytest.mark.usefixtures("by_instructions")
def test_what_instructions_do_not_replay_has_a_reason():
    weight = genesis.ones(3)

    @genesis.compile
    def step(x):
        if x.sum() > 0:
            weight.add_(x)
        return x * 2

    for _ in range(8):
        step(POSITIVE)
    assert weight.tolist() == [9.0, 17.0, 25.0] and step.entries[0].native is None
    why = "tensors that it changes"  # a global may be another tensor in the next call
    assert why in step.entries[0].refusal and why in repr(explain(step, POSITIVE))


def test_nothing_is_done_twice_where_a_value_is_another():
    def scene(wrap):
        genesis.manual_seed(3)
        weight, grad = genesis.ones(3, requires_grad=True), []

        @wrap
        def step(x):
            noise = genesis.rand(3)
            weight.grad = None
            loss = ((weight * x + noise) ** 2).sum()
            loss.backward()
            if weight.grad.amax() > 8:
                return loss.detach() * 0
            with genesis.no_grad():
                weight.sub_(weight.grad * 0.01)
            return loss.detach()

        losses = []
        for k in range(14):
            losses.append(step((POSITIVE, NEGATIVE, POSITIVE * 3)[k % 3]).item())
            grad.append(weight.grad.tolist())
        return losses, grad, weight.tolist(), genesis.rand(2).tolist(), step

    *wanted, _ = scene(lambda f: f)
    *found, step = scene(genesis.compile)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert not step.refusals and sum(entry.replays for entry in step.entries) >= 3


def test_a_fault_in_the_second_program_is_as_uncompiled():
    def picked(table, rows, which):
        return (table[rows] * 2)[which] if rows.sum() > 0 else table

    compiled = genesis.compile(picked)
    table, rows = genesis.arange(6.0).reshape(3, 2), genesis.tensor([0, 2])
    for _ in range(6):
        assert compiled(table, rows, genesis.tensor([1])).tolist() == [[8.0, 10.0]]
    for _ in range(3):
        with pytest.raises(IndexError, match="index 2 is out of range"):
            compiled(table, rows, genesis.tensor([2])).tolist()
        with pytest.raises(IndexError, match="index 3 is out of range"):
            compiled(table, genesis.tensor([3, 1]), genesis.tensor([1])).tolist()
    assert compiled(table, rows, genesis.tensor([1])).tolist() == [[8.0, 10.0]]


def written(weight):
    @genesis.compile
    def step(x):
        scaled = x * genesis.rand(3)
        if scaled.sum() > 0:
            weight.add_(scaled)
        return scaled

    return step


def test_an_interrupted_call_has_happened_or_not():
    def ready():
        genesis.manual_seed(1)
        weight = genesis.zeros(3)
        step = written(weight)
        for _ in range(4):
            step(POSITIVE)
        weight.tolist()
        return weight, step

    weight, step = ready()
    before, state = weight.numpy().copy(), genesis.get_rng_state()[1]
    step(POSITIVE)
    after, later = weight.numpy().copy(), genesis.get_rng_state()[1]
    for moment in range(1, moments_of(partial(step, POSITIVE)), 7):
        weight, step = ready()
        where = interrupt(partial(step, POSITIVE), moment)
        found, drawn = weight.numpy(), genesis.get_rng_state()[1]
        taken = np.array_equal(found, after)
        assert (taken and drawn == later) or (np.array_equal(found, before) and drawn == state), f"interrupted at {where}"


def random_call(seed):
    """A function of (x, weight) with random branches on values, and writes after the last."""
    draw = random.Random(seed)
    lines, known = ["def call(x, weight):", "    y0 = x * 2"], 1
    for _ in range(draw.randint(1, 3)):
        value = f"y{draw.randrange(known)}"
        look = draw.choice(["{}.sum() > 0", "{}[0].item() > 1", "int({}.argmax()) == 1", "not {}.any()"]).format(value)
        one, other = (draw.choice(["{v} + x", "{v}.abs() + 1", "{v} * {v}", "x.cumsum(0) - {v}"]).format(v=value) for _ in "ab")
        lines += [f"    if {look}:", f"        y{known} = {one}", "    else:", f"        y{known} = {other}"]
        known += 1
    if draw.random() < 0.5:
        lines.append(f"    weight.add_(y{known - 1})")
    results = [f"y{known - 1}", f"y{draw.randrange(known)}.sum().item()", f"y{draw.randrange(known)}.sum()"]
    lines.append(f"    return {', '.join(results[: draw.randint(1, 3)])}")
    names = {}
    exec("\n".join(lines), names)
    return names["call"], lines


@pytest.mark.parametrize("seed", range(12))
def test_random_calls_are_as_uncompiled(seed):
    call, lines = random_call(seed)
    compiled, given = genesis.compile(call), [POSITIVE, NEGATIVE, genesis.tensor([0.0, 0.5, 0.25])]
    ours, theirs = genesis.zeros(3), genesis.zeros(3)
    draw = random.Random(seed)
    for _ in range(18):
        x = draw.choice(given)
        found, wanted = (genesis.pytree.leaves_of(f(x, w)) for f, w in ((compiled, ours), (call, theirs)))
        for one, other in zip(found, wanted, strict=True):
            assert type(one) is type(other), lines
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6, err_msg="\n".join(lines))
        assert ours.tolist() == theirs.tolist(), lines


def test_numbers_drawn_for_a_value_that_is_another_are_drawn_again():
    x = genesis.ones(3)

    def step(x):
        value = genesis.nn.functional.dropout(x * 2)
        return value.sum(), value.tolist()

    compiled = genesis.compile(step)
    for seed in (0, 1, 1, 1, 2, 3, 1, 2, 3, 0, 4):
        genesis.manual_seed(seed)
        expected = step(x)[1], genesis.rand(2).tolist()
        genesis.manual_seed(seed)
        assert (compiled(x)[1], genesis.rand(2).tolist()) == expected
