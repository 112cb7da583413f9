"""L-BFGS beside torch's: the same steps, as many losses computed, the same state."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

SETTINGS = [
    {"lr": 0.1, "max_iter": 8}, {"lr": 0.5, "history_size": 3}, {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 7}, {"line_search_fn": "strong_wolfe", "lr": 30.0},
    {"line_search_fn": "strong_wolfe", "max_eval": 4}, {"line_search_fn": "strong_wolfe", "tolerance_change": 0.1, "lr": 0.05},
]


def quartic(library, x, y):
    """Rosenbrock's valley, in two parameters, less steep."""
    return ((1 - x) ** 2).sum() + 5 * ((y - x**2) ** 2).sum()


def waves(library, x, y):
    return (library.sin(3 * x) + x**2 / 10).sum() + (library.cos(y) * y).exp().sum()


def kinks(library, x, y):
    return x.abs().sum() + (x * x).sum() + (y - 0.3).abs().sum()


def descent(library, function, settings, calls=4):
    """Every loss that is computed, and where it ends."""
    x, y = (library.tensor(a, requires_grad=True) for a in (np.array([-1.0, 0.3]), np.array([1.5, 2.0])))
    optimizer, losses = library.optim.LBFGS([x, y], **settings), []

    def closure():
        optimizer.zero_grad()
        loss = function(library, x, y)
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(calls):
        optimizer.step(closure)
    return losses, [x, y], optimizer, closure


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("function", [quartic, waves, kinks])
def test_steps_are_torchs(function, settings):
    (ours, here, *_), (theirs, there, *_) = (descent(m, function, settings) for m in (genesis, torch))
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    assert_close([v.detach() for v in here], [v.detach() for v in there], scale=1e5)


@pytest.mark.parametrize("settings", [{}, {"tolerance_grad": 100.0}, {"tolerance_change": 100.0}], ids=str)
def test_the_state_is_torchs_where_a_call_ends_at_once(settings):
    ours, theirs = (descent(m, quartic, {"lr": 0.5, "max_iter": 2, **settings}, 2)[2].state_dict()["state"][0]
                    for m in (genesis, torch))
    assert ours.keys() == theirs.keys()
    for name in ("n_iter", "func_evals"):
        assert ours[name] == theirs[name]
    assert ours.get("t") == (pytest.approx(float(theirs["t"])) if "t" in theirs else None)
    again = genesis.optim.LBFGS([genesis.ones(2, dtype=genesis.float64, requires_grad=True) for _ in range(2)])
    again.load_state_dict({**again.state_dict(), "state": {0: ours}})
    assert again.state_dict()["state"][0]["func_evals"] == ours["func_evals"]


def test_a_loss_without_curvature_is_descended():
    x = genesis.zeros(2, requires_grad=True)
    optimizer = genesis.optim.LBFGS([x], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = x[0] - 3 * x[1]
        loss.backward()
        return loss

    optimizer.step(closure)
    assert x[0] < 0 < x[1]


def test_a_descent_goes_on_from_its_saved_state():
    settings = {"line_search_fn": "strong_wolfe", "max_iter": 3}
    whole = descent(genesis, quartic, settings, calls=4)[0]
    first, leaves, optimizer, closure = descent(genesis, quartic, settings, calls=2)
    saved = optimizer.state_dict()
    again = genesis.optim.LBFGS(leaves, **settings)
    again.load_state_dict(saved)
    for _ in range(2):
        again.step(closure)
    np.testing.assert_allclose(first, whole, rtol=1e-12)


def test_a_longer_history_runs_the_programs_of_a_shorter_one():
    _, _, optimizer, closure = descent(genesis, waves, {"lr": 0.01, "max_iter": 10}, calls=3)
    genesis.debug.reset_stats()
    for _ in range(3):
        optimizer.step(closure)
    assert len(optimizer.state_dict()["state"][0]["ro"]) > 40
    assert genesis.debug.stats()["plans_built"] < 15  # of 30 directions, each from a longer history than the last


@pytest.mark.parametrize("library", [genesis, torch])
def test_a_loss_without_gradients_leaves_all_as_it_is(library):
    x = library.ones(2)
    loss = library.optim.LBFGS([x], tolerance_grad=-np.inf).step(lambda: library.tensor(10.0))
    assert loss.item() == 10 and x.tolist() == [1, 1]


def test_what_makes_no_sense_is_refused():
    x = genesis.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="line_search_fn is 'armijo'; want None or 'strong_wolfe'"):
        genesis.optim.LBFGS([x], line_search_fn="armijo")
    with pytest.raises(ValueError, match="has one group of parameters"):
        genesis.optim.LBFGS([{"params": x}, {"params": genesis.ones(1, requires_grad=True)}])
    with pytest.raises(TypeError, match="step wants a closure"):
        genesis.optim.LBFGS([x]).step()
