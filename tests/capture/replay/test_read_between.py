"""Steps that read a value between backward() and the optimizer's step are replayed by instructions, and undone as a whole."""

import random

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.nn import functional as F
from genesis.runtime.instructions import are_possible

pytestmark = pytest.mark.skipif(not are_possible(), reason="another interpreter than CPython of 64 bits")
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
ROWS = genesis.ones(6, 3)


def world(kind, dropout=0.0, width=5):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Dropout(dropout), nn.Linear(width, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.05 / width)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        if kind == "loss":
            value = loss.item()
        elif kind == "norm":
            value = nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        elif kind == "skipped":
            value = 0
            if loss > 2:
                return loss, value
        elif not loss.isfinite():
            return loss, "lost"
        else:
            value = 1
        optimizer.step()
        return loss, value

    return step, model, optimizer


def native_replays(compiled):
    return sum(entry.native.replays for entry in compiled.entries if entry.native)


def state_of(model, optimizer):
    gradients = [p.grad for p in model.parameters()]
    moments = [value for state in optimizer.state.values() for value in state.values()]
    return [*model.parameters(), *gradients, *moments]


def run(kind, inputs, compile, **options):
    step, model, optimizer = world(kind, **options)
    called, told = genesis.compile(step) if compile else step, []
    for k, x in enumerate(inputs):
        loss, value = called(genesis.tensor(x))
        told += [np.asarray(loss.item()), np.asarray(float("nan") if value == "lost" else float(value))]
        if k % 5 == 4:
            told += [np.array(-1.0) if one is None else np.array(genesis.as_tensor(one).detach().numpy())
                     for one in state_of(model, optimizer)]
    return told, called


@pytest.mark.parametrize("kind", ["loss", "norm", "skipped", "finite"])
@pytest.mark.parametrize("options", [{}, {"dropout": 0.3}, {"width": 8000}], ids=["plain", "dropout", "large"])
def test_a_read_in_between_is_replayed_and_equals_the_call(kind, options):
    inputs = [X + k / 20 for k in range(15)]
    told, compiled = run(kind, inputs, True, **options)
    wanted, _ = run(kind, inputs, False, **options)
    for one, other in zip(told, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert native_replays(compiled) >= 6


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["skipped", "finite"])
def test_what_was_computed_before_another_value_is_as_if_it_had_not_been(seed, kind):
    """Random draws, ages of optimizers, gradients and parameters are those of uncompiled calls in any order of branches."""
    pick = random.Random(seed)
    inputs = [X * pick.choice([1, 1, 1, 40, np.inf if kind == "finite" else 30]) for _ in range(40)]
    told, compiled = run(kind, inputs, True, dropout=0.3)
    wanted, _ = run(kind, inputs, False, dropout=0.3)
    for one, other in zip(told, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert native_replays(compiled) > 0


def test_gradients_survive_a_call_that_turns_back_before_they_are_cleared():
    def started(compile):
        layer = nn.Linear(4, 3)
        layer.weight.data.fill_(0.5)
        layer.bias.data.fill_(0.1)
        optimizer = optim.SGD(layer.parameters(), lr=0.1)

        def step(x):
            if layer(x).square().sum() > 50:
                return None
            optimizer.zero_grad()
            loss = layer(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return (genesis.compile(step) if compile else step), layer

    (compiled, layer), (plain, other) = started(True), started(False)
    for k in range(40):
        x = genesis.tensor(X * (30 if k % 4 == 3 else 1))
        assert (compiled(x) is None) is (plain(x) is None)
        for one, two in zip(layer.parameters(), other.parameters(), strict=True):
            np.testing.assert_allclose(one.grad.numpy(), two.grad.numpy(), rtol=1e-4)
            np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), rtol=1e-4)
    assert native_replays(compiled) > 5, [entry.refusal for entry in compiled.entries]


def test_an_index_out_of_range_in_the_last_program_leaves_all_as_it_was():
    def made(compile):
        genesis.manual_seed(1)
        table = nn.Embedding(6, 3)
        optimizer = optim.SGD(table.parameters(), lr=0.1, momentum=0.9)

        def step(indices, rows):
            optimizer.zero_grad()
            loss = table(indices).square().mean()
            loss.backward()
            if loss > 100:
                return loss
            optimizer.step()
            return loss.detach() + F.embedding(rows, ROWS).sum()

        return (genesis.compile(step) if compile else step), table

    (compiled, table), (plain, other) = made(True), made(False)
    good, bad = genesis.tensor([0, 2]), genesis.tensor([0, 7])
    for k in range(20):
        rows = bad if k in (9, 14) else good
        results = []
        for function in (compiled, plain):
            try:
                results.append(function(good, rows).item())
            except IndexError:
                results.append("IndexError")
        assert results[0] == results[1] == "IndexError" or results[0] == pytest.approx(results[1], rel=1e-5)
        np.testing.assert_allclose(table.weight.detach().clone().numpy(), other.weight.detach().clone().numpy(), rtol=1e-5)
    assert native_replays(compiled) > 5, [entry.refusal for entry in compiled.entries]


def logged(kind, norm, compile):
    """Losses, parameters, statistics and gradients of steps that tell their loss as a number, each beside what was kept."""
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), *([nn.BatchNorm1d(5)] if norm else []), nn.Tanh(), nn.Dropout(0.2), nn.Linear(5, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.05)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        value = loss.item() if kind == "before backward" else None
        loss.backward()
        value = loss.item() if kind == "before the update" else value
        with genesis.no_grad():
            if kind == "of what is written":
                value = model[0].bias.sum().item()
                model[0].bias.mul_(0.5)
        optimizer.step()
        return value, loss.detach()

    called, told, kept = genesis.compile(step) if compile else step, [], []
    for k in range(14):
        value, loss = called(genesis.tensor(X + k / 20))
        kept.append(loss)
        for group in optimizer.param_groups:
            group["lr"] = 0.05 / (1 + k // 4)
        told += [np.asarray(value), *[np.array(one.tolist()) for one in (*state_of(model, optimizer), *model.buffers())
                                     if isinstance(one, genesis.Tensor)]]
    return [*told, *[np.asarray(loss.item()) for loss in kept]], called


@pytest.mark.parametrize("norm", [False, True], ids=["", "batch norm"])
@pytest.mark.parametrize("kind", ["before backward", "before the update", "of what is written"])
def test_a_number_that_is_only_returned_parts_no_program(kind, norm):
    told, compiled = logged(kind, norm, True)
    for one, other in zip(told, logged(kind, norm, False)[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    [entry] = compiled.entries
    assert len(entry.programs) == 1 and entry.native.replays >= 6


def test_a_number_that_is_returned_and_branched_on_is_no_result_alone():
    weight = genesis.ones(3, requires_grad=True)

    def step(x):
        loss = (weight * x).sum()
        value = loss.item()
        if value > 4:
            return value, None
        loss.backward()
        return value, weight.grad

    compiled = genesis.compile(step)
    for value in [1.0, 1.0, 2.0, 1.0, 2.0, 1.0, 1.0]:
        weight.grad = None
        found, gradient = compiled(genesis.full((3,), value))
        assert found == 3 * value and (gradient is None if value == 2 else gradient.tolist() == [value] * 3)


def test_a_value_that_is_lost_is_lost_at_the_users_line():
    def picked(x, index):
        value = x[index].sum().item()
        return value, x * 2

    compiled = genesis.compile(picked)
    x = genesis.arange(4.0)
    for _ in range(8):
        assert compiled(x, genesis.tensor([1, 2]))[0] == 3.0
    with pytest.raises(IndexError, match="test_read_between"):
        compiled(x, genesis.tensor([1, 9]))
    assert compiled(x, genesis.tensor([3, 3]))[0] == 6.0


@pytest.mark.parametrize("width", [5, 3000])
def test_parameters_that_numpy_saw_once(width):
    """What NumPy sees is written at once; once it is gone instructions go on."""
    def trained(compile):
        genesis.manual_seed(1)
        layer = nn.Linear(4, width)
        optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            loss = layer(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        called, told = genesis.compile(step) if compile else step, []
        for k in range(24):
            told.append(called(genesis.tensor(X + k / 20)).item())
            shown = layer.weight.detach().numpy()
            told.append(float(shown.sum()))
            if k % 6 == 5:
                shown *= 0.5
            if k % 8 == 7:  # it is seen while the next step is taken
                held = layer.weight.detach().numpy()
                called(genesis.tensor(X))
                told.append(float(held.sum()))
                del held
            del shown
        return told, called

    told, compiled = trained(True)
    np.testing.assert_allclose(told, trained(False)[0], rtol=1e-4)
    assert native_replays(compiled) >= 8


def test_a_loss_that_was_looked_at_is_returned_detached():
    told = []
    for compile in (True, False):
        step, *_ = world("skipped")

        def detached(x, step=step):
            return step(x)[0].detach()

        called, kept = genesis.compile(detached) if compile else detached, []
        for k in range(12):
            loss = called(genesis.tensor(X + k / 20))
            kept.append(loss)
            if k % 4 == 3:
                loss.mul_(2)
        told.append([loss.item() for loss in kept])
        if compile:
            assert native_replays(called) >= 4
    np.testing.assert_allclose(*told, rtol=1e-5)


def test_a_backward_that_goes_on_in_a_program_that_ran_is_called_each_time():
    weight = genesis.ones(3, requires_grad=True)

    @genesis.compile
    def step(x):
        loss = (weight.exp() * x).sum()
        if loss.isfinite():
            loss.backward()
        return loss.detach()

    for k in range(4):
        weight.grad = None
        step(genesis.full((3,), float(k)))
        np.testing.assert_allclose(weight.grad.numpy(), np.e * k, rtol=1e-6)
    assert "backward goes on in a program that ran before" in str(step.refusals[0])
