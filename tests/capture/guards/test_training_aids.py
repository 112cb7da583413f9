"""What trains beside an optimizer - schedules, gradient managers, scalers - and code that asks for attributes by name."""

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.nn import functional as F


def as_it_is(function):
    return function


def run(wrap, make, calls=6, change=None):
    """The losses and last weights of some calls of `make(model, optimizer)`'s step, and that step."""
    genesis.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = optim.AdamW(model.parameters(), lr=0.1)
    step = wrap(make(model, optimizer))
    seen = []
    for number in range(calls):
        if change is not None and number == 3:
            change(step, model, optimizer)
        seen.append(step(genesis.full((4, 3), float(number + 1))).item())
    return [*seen, *model.weight.detach().reshape(-1).tolist()], step


def assert_replays(make, replays, change=None):
    compiled, step = run(genesis.compile, make, change=change)
    usual, _ = run(as_it_is, make, change=change)
    np.testing.assert_allclose(compiled, usual, rtol=1e-5, atol=1e-6)
    assert sum(entry.replays for entry in step.entries) == replays, [str(refusal) for refusal in step.refusals]
    return step


def descend(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def test_asking_for_an_attribute_by_name_does_not_hold_an_optimizers_settings_fast():
    def make(model, optimizer):
        scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)

        def step(x):
            loss = descend(model, optimizer, x)
            scheduler.step()
            return loss.clone() if hasattr(loss, "clone") and getattr(model, "scaled", True) else loss

        return step

    assert_replays(make, 5)


class Settings:
    """Something of the user's, whose attributes a step looks up by name."""

    def __init__(self):
        self.scale = 2.0


@pytest.mark.parametrize("ask", [
    lambda settings, name: getattr(settings, "extra", 1.0),
    lambda settings, name: settings.extra if hasattr(settings, "extra") else 1.0,
    lambda settings, name: getattr(settings, name + "tra", 1.0),
    lambda settings, name: getattr(settings, f"{name}tra", 1.0),
    lambda settings, name: vars(settings).get("ext" + "ra", 1.0),
])
def test_an_attribute_that_appears_later_is_seen(ask):
    settings = Settings()
    double = genesis.compile(lambda x: x * ask(settings, "ex"))
    seen = [double(genesis.ones(1)).item() for _ in range(3)]
    settings.extra = 3.0
    seen += [double(genesis.ones(1)).item() for _ in range(2)]
    settings.extra = 5.0
    seen.append(double(genesis.ones(1)).item())
    assert seen == [1.0, 1.0, 1.0, 3.0, 3.0, 5.0]


def test_a_learning_rate_that_is_asked_for_by_name_is_compared():
    def make(model, optimizer):
        return lambda x: descend(model, optimizer, x) * getattr(optimizer, "param_groups")[0]["lr"]  # noqa: B009

    def change(step, model, optimizer):
        optimizer.param_groups[0]["lr"] = 0.01

    step = assert_replays(make, 4, change)
    assert len(step.entries) == 2


def managed(manager, model, optimizer):
    def step(x):
        optimizer.zero_grad()
        with manager:
            loss = model(x).square().mean()
            manager.backward(loss)
        optimizer.step()
        return loss.detach()

    return step


def test_a_gradient_manager_is_replayed():
    assert_replays(lambda model, optimizer: managed(genesis.GradManager().attach(model.parameters()), model, optimizer), 5)


def test_what_is_attached_to_a_gradient_manager_later_gets_its_gradient():
    managers = []

    def make(model, optimizer):
        managers.append(genesis.GradManager().attach(model.weight))
        return managed(managers[-1], model, optimizer)

    step = assert_replays(make, 4, lambda step, model, optimizer: managers[-1].attach(model.bias))
    assert step.missed is not None and "attached to GradManager" in step.missed


def test_a_gradient_manager_that_keeps_derivations_is_not_replayed():
    def make(model, optimizer):
        manager = genesis.GradManager().attach(model.parameters())

        def step(x):
            optimizer.zero_grad()
            with manager:
                loss = model(x).square().mean()
                manager.backward(loss, retain_graph=True)
            optimizer.step()
            return loss.detach()

        return step

    assert "it calls backward of genesis.autograd.grad_manager" in str(assert_replays(make, 0).refusals[0])


def scaled(scaler, model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x[:, :2])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step


def test_a_scaler_that_is_switched_off_is_replayed_and_one_that_is_on_says_what_it_looks_at():
    assert_replays(lambda model, optimizer: scaled(genesis.amp.GradScaler(enabled=False), model, optimizer), 5)
    step = assert_replays(lambda model, optimizer: scaled(genesis.amp.GradScaler(), model, optimizer), 0)
    assert "GradScaler looks at gradients" in str(step.refusals[0])


def test_a_schedule_that_looks_at_the_loss_says_so_and_one_that_is_given_a_number_is_replayed():
    def make(metric):
        def make(model, optimizer):
            scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)

            def step(x):
                loss = descend(model, optimizer, x)
                scheduler.step(metric if metric else loss)
                return loss

            return step

        return make

    assert "a scheduler looks at a value" in str(assert_replays(make(None), 0).refusals[0])
    assert_replays(make(1.5), 5)


def test_parameters_to_clip_may_be_given_as_a_list():
    def make(model, optimizer):
        def step(x, parameters):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
            return loss.detach()

        return step

    genesis.manual_seed(0)
    model = nn.Linear(3, 2)
    step = genesis.compile(make(model, optim.SGD(model.parameters(), lr=0.1)))
    for _ in range(4):
        step(genesis.ones(4, 3), list(model.parameters()))
    assert [entry.replays for entry in step.entries] == [3]
