"""Optimizers against torch's, step by step."""

import numpy as np
import pytest
import torch

import genesis

TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-6}, "float64": {"rtol": 1e-11, "atol": 1e-13}}
ROUNDED = {"NAdam", "ASGD"}  # torch keeps a product, or the step size, in float32
STEPS = 10
SHAPES = [(3, 4), (5,), ()]

SETTINGS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.01, "maximize": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.5, "eps": 1e-4, "foreach": False}),
    ("RMSprop", {"lr": 0.01, "centered": True, "eps": 1e-4, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-4}),
    ("Adagrad", {"lr": 0.1, "maximize": True, "foreach": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "betas": (0.5, 0.8), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 1e-3}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 3, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"lr": 0.3, "etas": (0.4, 1.5), "step_sizes": (0.05, 0.4), "maximize": True}),
    ("SGD", {"lr": 0.1, "foreach": True, "fused": None}),
    ("Adam", {"foreach": True, "capturable": False}),
]


def parameters(dtype):
    """The same first values in genesis and torch."""
    random = np.random.default_rng(0)
    values = [random.normal(size=shape).astype(dtype) for shape in SHAPES]
    ours = [genesis.tensor(v, requires_grad=True) for v in values]
    return ours, [torch.tensor(v, requires_grad=True) for v in values]


def loss(params, number):
    """Something with a gradient that changes from step to step."""
    return sum((((p - number * 0.1) ** 2) * (i + 1)).sum() for i, p in enumerate(params))


def step(optimizer, params, number):
    optimizer.zero_grad()
    loss(params, number).backward()
    optimizer.step()


def assert_same(ours, theirs, dtype, name=""):
    dtype = "float32" if name in ROUNDED else dtype
    for x, t in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x.detach().numpy(), t.detach().numpy(), **TOLERANCE[dtype])


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_every_step_is_torchs(name, settings):
    """In float32; in float64 those before and after a state dict are."""
    ours, theirs = parameters("float32")
    optimizer = getattr(genesis.optim, name)(ours, **settings)
    reference = getattr(torch.optim, name)(theirs, **settings)
    for number in range(STEPS):
        step(optimizer, ours, number)
        step(reference, theirs, number)
        assert_same(ours, theirs, "float32", name)


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_state_dict_continues_where_it_was_taken(name, settings):
    ours, theirs = parameters("float64")
    optimizer = getattr(genesis.optim, name)(ours, **settings)
    reference = getattr(torch.optim, name)(theirs, **settings)
    for number in range(3):
        step(optimizer, ours, number)
        step(reference, theirs, number)
    copies = [genesis.tensor(p.detach().numpy().copy(), requires_grad=True) for p in ours]
    resumed = getattr(genesis.optim, name)(copies, lr=123.0)
    resumed.load_state_dict(optimizer.state_dict())
    for number in range(3, 6):
        step(optimizer, ours, number)
        step(resumed, copies, number)
        step(reference, theirs, number)
    assert_same(copies, theirs, "float64", name)
    assert_same(ours, theirs, "float64", name)


@pytest.mark.parametrize(("name", "settings"), [
    ("SGD", {"lr": 0.1, "momentum": 0.9}), ("AdamW", {"amsgrad": True}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "eps": 1e-4}), ("Adagrad", {"initial_accumulator_value": 0.1}),
    ("Adamax", {}), ("NAdam", {}), ("RAdam", {"lr": 0.05}), ("Adadelta", {}), ("ASGD", {"t0": 2}), ("Rprop", {}),
])
def test_torchs_state_dict_is_understood(name, settings):
    _, theirs = parameters("float64")
    reference = getattr(torch.optim, name)(theirs, **settings)
    for number in range(3):
        step(reference, theirs, number)
    copies = [genesis.tensor(t.detach().numpy().copy(), requires_grad=True) for t in theirs]
    optimizer = getattr(genesis.optim, name)(copies, **settings)
    optimizer.load_state_dict(reference.state_dict())
    for number in range(3, 6):
        step(optimizer, copies, number)
        step(reference, theirs, number)
    assert_same(copies, theirs, "float64", name)


def test_groups_have_settings_of_their_own():
    ours, theirs = parameters("float64")
    optimizer = genesis.optim.SGD([{"params": ours[:1], "lr": 0.5}, {"params": ours[1:]}], lr=0.01, momentum=0.9)
    reference = torch.optim.SGD([{"params": theirs[:1], "lr": 0.5}, {"params": theirs[1:]}], lr=0.01, momentum=0.9)
    for number in range(STEPS):
        for schedule in (optimizer, reference):
            schedule.param_groups[0]["lr"] = 0.1 / (number + 1)
        step(optimizer, ours, number)
        step(reference, theirs, number)
    assert_same(ours, theirs, "float64")


def test_parameters_without_a_gradient_stay_and_count_their_own_steps():
    ours, theirs = parameters("float64")
    optimizer, reference = genesis.optim.Adam(ours, lr=0.1), torch.optim.Adam(theirs, lr=0.1)
    for number in range(STEPS):
        for params, schedule in ((ours, optimizer), (theirs, reference)):
            schedule.zero_grad()
            loss(params[: 1 + number % 3], number).backward()
            schedule.step()
        assert_same(ours, theirs, "float64")


@pytest.mark.parametrize(("name", "settings"), [("SGD", {"lr": 0.1, "momentum": 0.9}), ("AdamW", {"lr": 0.01})])
def test_an_optimizer_may_be_made_before_a_lazy_layer_knows_its_size(name, settings):
    def trained(lib):
        model = lib.nn.LazyLinear(3)
        optimizer = getattr(lib.optim, name)(model.parameters(), **settings)
        x = lib.arange(8.0).reshape(2, 4) * 0.1
        model(x)
        with lib.no_grad():
            for parameter in model.parameters():
                parameter.copy_(lib.arange(float(parameter.numel())).reshape(parameter.shape) * 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        return [*model.parameters()]

    assert_same(trained(genesis), trained(torch), "float32")
