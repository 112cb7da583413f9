"""A compiled training step leaves what the uncompiled one leaves, to the bit, and is one native call."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn, optim
from genesis.nn import functional as F

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
}


class Trainer:
    """Two networks of the same beginnings and data, one trained by a compiled step."""

    def __init__(self, make_optimizer, make_step, layers=None, wrap=genesis.compile):
        genesis.manual_seed(3)
        self.model = nn.Sequential(*(layers or (lambda: [nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)]))())
        self.optimizer = make_optimizer(self.model.parameters())
        self.step = wrap(make_step(self.model, self.optimizer))

    def state(self):
        held = [*self.model.state_dict().values(), *(p.grad for p in self.model.parameters())]
        for state in self.optimizer.state.values():
            held += [genesis.tensor(v) if isinstance(v, int) else v for v in state.values()]
        return [None if t is None else t.detach().numpy().copy() for t in held]


def assert_same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def batches(count, rows=4):
    random = np.random.default_rng(0)
    return [tuple(genesis.tensor(random.normal(size=(rows, n)).astype("f")) for n in (3, 2)) for _ in range(count)]


def plain_step(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_trains_as_it_does_uncompiled(name):
    compiled, usual = Trainer(OPTIMIZERS[name], plain_step), Trainer(OPTIMIZERS[name], plain_step, wrap=lambda f: f)
    for x, y in batches(6):
        assert compiled.step(x, y).item() == usual.step(x, y).item()
    assert_same(compiled.state(), usual.state())
    assert compiled.step.refusals == []
    assert sum(entry.replays for entry in compiled.step.entries) >= 4


def test_a_replayed_step_is_one_native_call_and_records_nothing():
    trainer = Trainer(OPTIMIZERS["adam"], plain_step)
    (x, y), = batches(1)
    for _ in range(3):
        trainer.step(x, y)
    genesis.debug.reset_stats()
    trainer.step(x, y)
    counts = genesis.debug.stats()
    assert (counts["native_calls"], counts["plans_built"], counts["flushes"]) == (1, 0, 1)


def test_no_python_of_the_function_runs_in_a_replay():
    seen = []
    x = genesis.ones(3)

    @genesis.compile
    def f(x):
        return helper(x) + 1

    def helper(x):
        return x * 2

    f(x)
    f(x)
    import sys
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        f(x)
    finally:
        sys.setprofile(None)
    assert "helper" not in seen
    assert not {"_call", "replay"}.intersection(seen)


def accumulating(model, optimizer):
    def step(x, y):
        F.mse_loss(model(x), y).backward()
        F.mse_loss(model(x * 2), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return model(x)

    return step


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_gradients_accumulate_over_calls_and_are_clipped(name):
    compiled, usual = Trainer(OPTIMIZERS[name], accumulating), Trainer(OPTIMIZERS[name], accumulating, wrap=lambda f: f)
    for x, y in batches(6):
        np.testing.assert_allclose(compiled.step(x, y).detach().numpy(), usual.step(x, y).detach().numpy(), rtol=1e-5)
    for a, b in zip(compiled.state(), usual.state(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert compiled.step.refusals == [] and compiled.step.entries[0].replays >= 3


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize("whose", ["optimizer", "model"])
def test_gradients_that_a_step_clears_and_does_not_compute_are_cleared_by_replays(whose, to_none):
    def gradients(library, wrap):
        model = library.nn.Module()
        model.used, model.unused = used, unused = [library.nn.Parameter(library.ones(2)) for _ in range(2)]
        owner = model if whose == "model" else library.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            owner.zero_grad(set_to_none=to_none)
            (x * used).sum().backward()

        def other(x):
            (x * used * unused).sum().backward()

        compiled, found = wrap(step), []
        for called in "0010010100101":
            (other if called == "1" else compiled)(library.ones(2))
            found.append([None if p.grad is None else p.grad.tolist() for p in model.parameters()])
        return found, compiled

    found, compiled = gradients(genesis, genesis.compile)
    assert found == gradients(torch, lambda step: step)[0] and compiled.entries[0].replays


def layers_with_state():
    return [nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2)]


def test_dropout_draws_what_uncompiled_code_draws_and_batch_norm_keeps_statistics():
    compiled = Trainer(OPTIMIZERS["adam"], plain_step, layers_with_state)
    usual = Trainer(OPTIMIZERS["adam"], plain_step, layers_with_state, wrap=lambda f: f)
    losses = []
    for trainer in (compiled, usual):
        genesis.manual_seed(5)
        losses.append([trainer.step(x, y).item() for x, y in batches(6)])
        losses[-1].append(genesis.rand(1).item())
    assert losses[0] == losses[1]
    assert_same(compiled.state(), usual.state())
    assert compiled.step.entries[0].replays >= 4


def test_evaluation_and_training_are_two_entries():
    trainer = Trainer(OPTIMIZERS["sgd"], lambda model, _: model.forward, layers_with_state)
    usual = Trainer(OPTIMIZERS["sgd"], lambda model, _: model.forward, layers_with_state, wrap=lambda f: f)
    (x, _), = batches(1)
    for training in (True, False, True, False, False):
        genesis.manual_seed(1)
        a = trainer.model.train(training) and trainer.step(x)
        genesis.manual_seed(1)
        b = usual.model.train(training) and usual.step(x)
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    assert len(trainer.step.entries) == 2 and sum(e.replays for e in trainer.step.entries) == 3


def test_a_changed_learning_rate_is_honoured_without_tracing_again():
    def run(wrap):
        trainer = Trainer(OPTIMIZERS["adam"], plain_step, wrap=wrap)
        for i, (x, y) in enumerate(batches(6)):
            trainer.optimizer.param_groups[0]["lr"] = 0.01 * (i + 1)
            trainer.step(x, y)
        return trainer

    compiled, usual = run(genesis.compile), run(lambda f: f)
    assert_same(compiled.state(), usual.state())
    assert len(compiled.step.entries) == 1 and compiled.step.entries[0].replays == 5


SCHEDULERS = {
    "step": lambda o: optim.lr_scheduler.StepLR(o, 2, 0.5),
    "cosine": lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 5),
    "lambda": lambda o: optim.lr_scheduler.LambdaLR(o, lambda step: 1 / (1 + step)),
    "one cycle": lambda o: optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=10),
    "sequential": lambda o: optim.lr_scheduler.SequentialLR(
        o, [optim.lr_scheduler.ConstantLR(o, 0.1, 2), optim.lr_scheduler.ExponentialLR(o, 0.9)], [2]),
}


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_go_on_inside_and_outside_of_a_step(name, inside):
    def run(wrap):
        schedulers = []

        def make_step(model, optimizer):
            scheduler = SCHEDULERS[name](optimizer)
            schedulers.append(scheduler)
            step = plain_step(model, optimizer)

            def scheduled(x, y):
                loss = step(x, y)
                scheduler.step()
                return loss

            return scheduled if inside else step

        trainer = Trainer(OPTIMIZERS["momentum"], make_step, wrap=wrap)
        for x, y in batches(6):
            trainer.step(x, y)
            if not inside:
                schedulers[0].step()
        return trainer, schedulers[0].get_last_lr()

    (compiled, rates), (usual, usual_rates) = run(genesis.compile), run(lambda f: f)
    assert rates == usual_rates
    assert_same(compiled.state(), usual.state())
    assert compiled.step.refusals == [] and sum(e.replays for e in compiled.step.entries) >= 3


def test_two_optimizers_that_take_turns_are_one_program():
    def run(wrap):
        genesis.manual_seed(0)
        first, second = nn.Linear(3, 4), nn.Linear(4, 2)
        a, b = optim.SGD(first.parameters(), lr=0.1), optim.Adam(second.parameters(), lr=0.1)

        def step(x, y):
            a.zero_grad()
            F.mse_loss(second(first(x)), y).backward()
            a.step()
            b.zero_grad()
            loss = F.mse_loss(second(first(x).detach()), y)
            loss.backward()
            b.step()
            return loss, second.weight.detach().sum()

        step = wrap(step)
        results = [[t.item() for t in step(x, y)] for x, y in batches(5)]
        return results, [p.detach().numpy().copy() for p in (*first.parameters(), *second.parameters())], step

    (losses, state, step), (usual_losses, usual_state, _) = run(genesis.compile), run(lambda f: f)
    np.testing.assert_allclose(losses, usual_losses, rtol=1e-5)
    for a, b in zip(state, usual_state, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert step.refusals == [] and len(step.entries[0].programs) == 1


@pytest.mark.parametrize("size", [4, 1 << 19])  # what is large is computed at once where NumPy may write to it
def test_a_copy_of_what_numpy_sees_is_made_by_each_call(size):
    source, w = genesis.from_numpy(np.arange(2.0 * size, dtype=np.float32)), nn.Parameter(genesis.zeros(size))

    @genesis.compile
    def load(part):
        with genesis.no_grad():
            w.copy_(part)

    for call in range(1, 4):
        source += 1
        load(source[::2])
        assert w[:3].tolist() == [call, call + 2, call + 4] and w._version == call
    assert load.entries[0].replays == 2
