"""Optimizers whose rates change between steps, by schedules and by hand, beside torch's; interrupted and resumed."""

import copy

import numpy as np
import pytest
import torch

import genesis
from tests.conformance.converting import converted

KINDS = [
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 3}), ("ASGD", {"lr": 0.1, "t0": 0, "weight_decay": 0.1}), ("Rprop", {}),
    ("NAdam", {}), ("RAdam", {}), ("Adagrad", {"lr_decay": 0.1}), ("Adadelta", {}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("AdamW", {}), ("Adamax", {}),
]
SCHEDULES = {
    "by hand": None,
    "exponential": lambda made, o: made.ExponentialLR(o, 0.8),
    "cyclic": lambda made, o: made.CyclicLR(o, 0.01, 0.1, step_size_up=3, cycle_momentum=False),
    "one cycle": lambda made, o: made.OneCycleLR(o, 0.2, total_steps=20, cycle_momentum=False),
}


def steps(lib, kind, settings, schedule, resume=None):
    """The parameter after each step; the optimizer is made anew from a state dict, as `resume` does, after the sixth."""
    p = lib.tensor([1.0, -2.0, 3.0], dtype=lib.float64).requires_grad_()
    make = getattr(lib.optim, kind)
    optimizer = make([p], **settings)
    scheduler = schedule and schedule(lib.optim.lr_scheduler, optimizer)
    seen = []
    for number in range(10):
        optimizer.zero_grad()
        ((p * p).sum() * 0.5).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        elif number % 3 == 2:
            optimizer.param_groups[0]["lr"] *= 2
        seen.append(p.detach().numpy().copy())
        if number == 5 and resume is not None:
            optimizer = resume(optimizer, lambda p=p: make([p], **settings))
            p = optimizer.param_groups[0]["params"][0]
            scheduler = None
    return np.stack(seen)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind, settings", KINDS, ids=[f"{kind}{place}" for place, (kind, _) in enumerate(KINDS)])
def test_steps_are_torchs(kind, settings, schedule):
    with genesis.eager():
        have, want = (steps(lib, kind, settings, SCHEDULES[schedule]) for lib in (genesis, torch))
    np.testing.assert_allclose(have, want, rtol=1e-5)


def loaded(optimizer, make):
    again = make()
    again.load_state_dict(optimizer.state_dict())
    return again


@pytest.mark.parametrize("resume", [loaded, lambda optimizer, make: copy.deepcopy(optimizer)], ids=["loaded", "copied"])
@pytest.mark.parametrize("kind", ["ASGD", "Rprop"])
def test_resumed_steps_are_torchs(kind, resume):
    settings = {"lambd": 0.1} if kind == "ASGD" else {}
    with genesis.eager():
        have, want = (steps(lib, kind, {"lr": 0.1, **settings}, None, resume) for lib in (genesis, torch))
    np.testing.assert_allclose(have, want, rtol=1e-5)


def test_the_size_of_the_next_step_is_in_the_state_dict():
    dicts = []
    for lib in (genesis, torch):
        p = lib.tensor([1.0], requires_grad=True)
        optimizer = lib.optim.ASGD([p], lr=0.5, lambd=0.1)
        p.grad = lib.ones(1)
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.1
        dicts.append(optimizer.state_dict()["state"][0])
    ours, theirs = dicts
    assert abs(ours["eta"].item() - theirs["eta"].item()) < 1e-6 and ours["mu"].item() == theirs["mu"].item()
    assert converted(theirs)["ax"].tolist() == ours["ax"].tolist()


@pytest.mark.parametrize("kind", ["ASGD", "Rprop"])
def test_compiled_steps_take_the_rates_as_they_are(kind):
    def run(compiled):
        p = genesis.tensor([1.0, -2.0]).requires_grad_()
        optimizer = getattr(genesis.optim, kind)([p], lr=0.1)
        scheduler = genesis.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=12, cycle_momentum=False)

        def step():
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()

        call = genesis.compile(step) if compiled else step
        for _ in range(8):
            call()
            scheduler.step()
        return p.tolist()

    np.testing.assert_allclose(run(True), run(False), rtol=1e-6)
