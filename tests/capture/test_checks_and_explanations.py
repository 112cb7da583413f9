"""`check=True` notices a wrong replay, and `genesis.debug.explain` tells what became of a function."""

import dataclasses
import os

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.capture.replay import comparison
from genesis.debug import explain
from genesis.nn import functional as F
from genesis.tensor.call_modes import FunctionMode

HERE = os.path.basename(__file__)


def trainer(wrap):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.5), nn.Linear(5, 2))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    return wrap(step), model, optimizer, scheduler


def state(model, optimizer, scheduler):
    counts = [held["step"] for held in optimizer.state.values()]
    return [p.tolist() for p in model.parameters()], counts, scheduler.last_epoch, scheduler.get_last_lr()


X, Y = genesis.ones(4, 3), genesis.zeros(4, 2)


def test_checked_calls_leave_what_unchecked_ones_leave():
    def run(wrap):
        genesis.manual_seed(1)
        step, *rest = trainer(wrap)
        return [step(X, Y).item() for _ in range(5)], state(*rest), genesis.get_rng_state()

    assert run(genesis.compile(check=True)) == run(lambda f: f)


@dataclasses.dataclass
class Outcome:
    total: object
    parts: object


def test_checked_calls_compare_numbers_and_what_is_in_dataclasses(monkeypatch):
    compiled = genesis.compile(lambda x: Outcome((x / 3).sum().item(), {"part": Outcome(x * 2.5, 1)}), check=True)
    agree, compared = comparison._agree, []
    monkeypatch.setattr(comparison, "_agree", lambda want, got: agree(want, got) and not compared.append(want))
    x = genesis.linspace(0, 1, 1000)
    for _ in range(4):
        assert compiled(x).parts["part"].total.tolist() == (x * 2.5).tolist()
    assert {(), (1000,)} <= {value.shape for value in compared if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("what", ["number", "result"])
def test_a_replay_that_goes_wrong_is_noticed(what):
    w = genesis.ones(2)
    compiled = genesis.compile(lambda x: w.mul_(3.5).sum() + x * 2.5, check=True)
    compiled(genesis.ones(2))
    step = compiled.entries[0].programs[0]
    step.numbers[0 if what == "number" else 1] += 1
    with pytest.raises(genesis.capture.MismatchError, match=r"check=True, (result 0|name w|w of|global)"):
        compiled(genesis.ones(2))


def test_explain_undoes_what_the_call_does():
    step, *rest = trainer(genesis.compile)
    step(X, Y)
    before, random = state(*rest), genesis.get_rng_state()
    gradients = [p.grad for p in rest[0].parameters()]
    explanation = explain(step, X, Y)
    assert (state(*rest), genesis.get_rng_state()) == (before, random)
    assert all(p.grad is g for p, g in zip(rest[0].parameters(), gradients, strict=True))
    assert len(explanation.programs) == 1 and not explanation.refusals and explanation.replays == 0
    labels = [label for label, _ in explanation.slots]
    assert "argument 0" in labels and labels.count("a tensor of Adam") == 8 and len(labels) == 14
    seconds, cost = explanation.programs[0]
    assert len(seconds) == len(cost.stages) and min(seconds) > 0
    assert all(stage.estimate.nbytes > 0 and stage.estimate.seconds > 0 for stage in cost.stages)
    assert {os.path.basename(name) for stage in cost.stages for name, _ in stage.lines} == {HERE}
    assert "1 program; is replayed" in repr(explanation)


def test_explain_names_the_lines_of_looks_and_splits():
    def f(x):
        y = x * 2
        if y.sum() > 3:
            y = y + 1
        return y.exp()

    explanation = explain(f, genesis.ones(3))
    line = f.__code__.co_firstlineno + 2
    assert len(explanation.programs) == 2
    assert [(os.path.basename(name), number) for name, number in explanation.splits] == [(HERE, line)]
    assert f"looked at (at {__file__}:{line})" in repr(explanation)


scale = 2.0


def test_explain_names_what_differed_when_a_call_was_recorded_anew():
    global scale
    compiled = genesis.compile(lambda x: x * scale)
    compiled(X)
    assert compiled.missed is None
    scale = 3.0
    compiled(X)
    assert explain(compiled, X).missed == "global scale"
    compiled(Y)
    assert compiled.missed == "the shape or dtype of argument 0"
    compiled(X.double())
    with genesis.no_grad():
        compiled(X)
    assert "mode" in compiled.missed


def test_explain_says_when_most_calls_run_as_they_are():
    compiled = genesis.compile(lambda x, pair: x * pair[0])
    for number in range(20):
        compiled(X, (number + 0.5, 1.0))
    explanation = explain(compiled, X, (50.5, 1.0))
    assert explanation.records_rarely and "as recordings were seldom replayed" in repr(explanation)
    for _ in range(20):
        compiled(X, (0.5, 1.0))
    explanation = explain(compiled, X, (0.5, 1.0))
    assert not explanation.records_rarely and "is replayed" in repr(explanation)


def test_explain_says_that_calls_go_elsewhere_first():
    compiled = genesis.compile(lambda x: x * 2)
    with FunctionMode():
        assert "nothing is replayed meanwhile" in repr(explain(compiled, X))
    assert not explain(compiled, X).refusals


def test_numbers_that_are_read_to_be_returned_are_replayed():
    total = genesis.zeros(())

    def step(x):
        total.add_(x.sum())
        return {"loss": x.mean().item(), "total": (total * 1).item(), "count": x.numel()}

    compiled = genesis.compile(step)
    results = [compiled(genesis.ones(2) * i) for i in range(6)]
    assert [r["loss"] for r in results] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert [r["total"] for r in results] == [0.0, 2.0, 6.0, 12.0, 20.0, 30.0]
    assert all(type(value) in (int, float) for r in results for value in r.values())
    assert compiled.entries[0].replays == 4 and compiled.refusals == []


def test_numbers_that_are_read_and_used_are_not():
    seen = []

    def step(x):
        number = x.sum().item()
        seen.append(number)
        return number

    compiled = genesis.compile(step)
    assert [compiled(genesis.ones(2) * i) for i in range(4)] == [0.0, 2.0, 4.0, 6.0]
    assert seen == [0.0, 2.0, 4.0, 6.0] and all(type(n) is float for n in seen)
    compiled = genesis.compile(lambda x: x.sum().item() * 2 + x.mean().item())
    assert [compiled(genesis.ones(2) * i) for i in range(4)] == [0.0, 5.0, 10.0, 15.0]


def test_eager_mode_runs_the_function_itself():
    compiled = genesis.compile(lambda x: x * 2)
    compiled(X)
    with genesis.eager():
        np.testing.assert_array_equal(compiled(X).numpy(), 2 * X.numpy())
    assert compiled.entries[0].replays == 0


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="compile: wants a function or a module, got int 3"):
        genesis.compile(3)
