"""Schedules against torch's, step by step, and what a changed learning rate costs."""

import math

import numpy as np
import pytest
import torch

import genesis
from genesis import nn

SCHEDULES = {
    "lambda": lambda m, o: m.LambdaLR(o, [lambda step: 0.9**step, lambda step: 1 / (1 + step)]),
    "step": lambda m, o: m.StepLR(o, step_size=3, gamma=0.5),
    "multistep": lambda m, o: m.MultiStepLR(o, [2, 5, 5, 11], gamma=0.3),
    "constant": lambda m, o: m.ConstantLR(o, factor=0.25, total_iters=4),
    "linear": lambda m, o: m.LinearLR(o, start_factor=0.2, end_factor=0.9, total_iters=7),
    "exponential": lambda m, o: m.ExponentialLR(o, gamma=0.8),
    "polynomial": lambda m, o: m.PolynomialLR(o, total_iters=9, power=1.5),
    "cosine": lambda m, o: m.CosineAnnealingLR(o, T_max=6, eta_min=1e-3),
    "warm restarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=1e-3),
    "multiplicative": lambda m, o: m.MultiplicativeLR(o, [lambda step: 0.95, lambda step: 1 / (1 + step)]),
    "cyclic": lambda m, o: m.CyclicLR(o, [0.1, 0.2], 0.5, step_size_up=3, step_size_down=4),
    "cyclic, halved": lambda m, o: m.CyclicLR(o, 0.1, [0.5, 0.6], step_size_up=3, mode="triangular2", cycle_momentum=False),
    "cyclic, fading": lambda m, o: m.CyclicLR(o, 0.1, 0.5, step_size_up=3, mode="exp_range", gamma=0.9),
    "cyclic, by hand": lambda m, o: m.CyclicLR(o, 0.1, 0.5, 3, scale_fn=lambda step: 1 / (1 + step), scale_mode="iterations"),
    "one cycle": lambda m, o: m.OneCycleLR(o, max_lr=[0.5, 1.0], total_steps=20),
    "one cycle in three": lambda m, o: m.OneCycleLR(
        o, max_lr=0.5, epochs=4, steps_per_epoch=5, three_phase=True, anneal_strategy="linear", cycle_momentum=False),
    "warmup, then cosine": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, total_iters=4), m.CosineAnnealingLR(o, T_max=10), m.ExponentialLR(o, 0.5)], [4, 14]),
    "warmup, then restarts": lambda m, o: m.SequentialLR(
        o, [m.ConstantLR(o, total_iters=3), m.CosineAnnealingWarmRestarts(o, T_0=4)], [3]),
    "chained": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, factor=0.1, total_iters=5), m.ExponentialLR(o, gamma=0.9)]),
}


def optimizer_of(library, name="SGD", **settings):
    weights = [library.ones(1, requires_grad=True) for _ in range(2)]
    for weight in weights:
        weight.grad = library.zeros(1)
    groups = [{"params": [weights[0]], "lr": 0.4}, {"params": [weights[1]]}]
    return getattr(library.optim, name)(groups, lr=0.1, **settings)


def path(library, build, steps=20, name="SGD", **settings):
    """The settings of both groups at each step, and what get_last_lr says of them."""
    optimizer = optimizer_of(library, name, **settings)
    scheduler = build(library.optim.lr_scheduler, optimizer)
    found = []
    for _ in range(steps):
        moments = [g.get("momentum") or g["betas"][0] for g in optimizer.param_groups]
        found.append([*[g["lr"] for g in optimizer.param_groups], *scheduler.get_last_lr(), *moments])
        optimizer.step()
        scheduler.step()
    return np.array(found)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_is_torchs(name):
    build, settings = SCHEDULES[name], {"momentum": 0.9}
    np.testing.assert_allclose(path(genesis, build, **settings), path(torch, build, **settings), rtol=1e-9, atol=1e-15)


def test_one_cycle_turns_adams_first_beta():
    build = SCHEDULES["one cycle"]
    np.testing.assert_allclose(path(genesis, build, name="Adam"), path(torch, build, name="Adam"), rtol=1e-12)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateau_is_torchs(mode, threshold_mode):
    metrics = [*np.random.default_rng(0).normal(size=30).cumsum(), *[1.0] * 20]

    def rates(library):
        optimizer = optimizer_of(library)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, mode, 0.5, patience=2, threshold=0.01, threshold_mode=threshold_mode, cooldown=1, min_lr=[0.01, 0.02])
        found = []
        for metric in metrics:
            scheduler.step(metric)
            found.append([*[g["lr"] for g in optimizer.param_groups], *scheduler.get_last_lr()])
        return np.array(found)

    ours = rates(genesis)
    np.testing.assert_allclose(ours, rates(torch), rtol=1e-12)
    assert len(np.unique(ours[:, 0])) > 3


def test_plateau_reads_a_loss():
    scheduler = genesis.optim.lr_scheduler.ReduceLROnPlateau(optimizer_of(genesis), patience=0)
    for loss in (2.0, 3.0):
        scheduler.step(genesis.tensor(loss))
    assert scheduler.get_last_lr() == pytest.approx([0.04, 0.01])


def test_warm_restarts_take_fractions_of_epochs():
    def rates(library):
        scheduler = library.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer_of(library), T_0=2, T_mult=2)
        return [scheduler.step(epoch / 4) or scheduler.get_last_lr() for epoch in range(40)]

    np.testing.assert_allclose(rates(genesis), rates(torch), rtol=1e-9)


@pytest.mark.parametrize("name", ["step", "multistep", "linear", "cosine", "exponential"])
def test_a_jump_is_torchs(name):
    def jumped(library):
        optimizer = optimizer_of(library)
        scheduler = SCHEDULES[name](library.optim.lr_scheduler, optimizer)
        optimizer.step()
        scheduler.step(7)
        return scheduler.get_last_lr()

    with pytest.warns(UserWarning, match="epoch"):
        wanted = jumped(torch)
    assert jumped(genesis) == pytest.approx(wanted)


@pytest.mark.parametrize("name", SCHEDULES)
def test_state_dict_continues_where_it_was_taken(name):
    def scheduled():
        optimizer = optimizer_of(genesis, momentum=0.9)
        return optimizer, SCHEDULES[name](genesis.optim.lr_scheduler, optimizer)

    optimizer, scheduler = scheduled()
    for _ in range(5):
        optimizer.step()
        scheduler.step()
    other, resumed = scheduled()
    other.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    for _ in range(6):
        for opt, schedule in ((optimizer, scheduler), (other, resumed)):
            opt.step()
            schedule.step()
        assert resumed.get_last_lr() == scheduler.get_last_lr()


def test_torch_resumes_what_genesis_scheduled():
    def rates(library, state=None):
        optimizer = optimizer_of(library)
        scheduler = library.optim.lr_scheduler.StepLR(optimizer, 2)
        optimizer.step()
        if state:
            scheduler.load_state_dict(state)
        for _ in range(3):
            scheduler.step()
        return scheduler

    ours, theirs = rates(genesis, rates(torch).state_dict()), rates(torch, rates(genesis).state_dict())
    assert ours.last_epoch == theirs.last_epoch == 6 and ours.get_last_lr() == theirs.get_last_lr()


def test_a_changed_learning_rate_builds_no_new_plan():
    genesis.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = genesis.optim.RMSprop(model.parameters(), lr=0.1)
    scheduler = genesis.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
    x = genesis.ones(8, 4)
    rates = set()
    for number in range(10):
        if number == 3:
            genesis.debug.reset_stats()
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
        scheduler.step()
        rates.update(scheduler.get_last_lr())
    stats = genesis.debug.stats()
    assert len(rates) == 10 and stats["plans_built"] == 0 and stats["flushes"] == 7, stats


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda m, o: m.StepLR(None, 3), TypeError, "StepLR: wants an Optimizer, got NoneType"),
    (lambda m, o: m.StepLR(o, 3, last_epoch=4), KeyError, "a group has no 'initial_lr'"),
    (lambda m, o: m.LambdaLR(o, [math.exp]), ValueError, "lr_lambda has 1 values for 2 groups"),
    (lambda m, o: m.LinearLR(o, start_factor=0), ValueError, "factors are 0 to 1.0"),
    (lambda m, o: m.ConstantLR(o, factor=2), ValueError, "factor is 2; want it in"),
    (lambda m, o: m.CosineAnnealingWarmRestarts(o, T_0=0), ValueError, "T_0 is 0; want an integer above 0"),
    (lambda m, o: m.SequentialLR(o, [m.StepLR(o, 3)], [1]), ValueError, "1 schedulers and 1 milestones"),
    (lambda m, o: m.ChainedScheduler([m.ReduceLROnPlateau(o)]), ValueError, "scheduler 0 is a ReduceLROnPlateau"),
    (lambda m, o: m.ReduceLROnPlateau(o, factor=1.0), ValueError, "factor is 1.0; want it below 1"),
    (lambda m, o: m.OneCycleLR(o, 0.1), ValueError, "wants total_steps, or epochs and steps_per_epoch"),
    (lambda m, o: m.LRScheduler(o), NotImplementedError, r"LRScheduler has no get_lr\(\)"),
])
def test_settings_that_make_no_sense_are_refused(build, error, message):
    with pytest.raises(error, match=message):
        build(genesis.optim.lr_scheduler, optimizer_of(genesis))


def test_the_wrong_order_is_warned_of():
    scheduler = genesis.optim.lr_scheduler.StepLR(optimizer_of(genesis), 3)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step"):
        scheduler.step()
