"""`size_average` and `reduce` of losses, and weights of elements, beside PyTorch."""

import inspect
import itertools

import numpy as np
import pytest
import torch

import genesis

pytestmark = pytest.mark.filterwarnings("ignore:size_average and reduce", "ignore:reduction. 'mean'")

RANDOM = np.random.default_rng(0)
X, Y, W = (RANDOM.uniform(0.05, 0.95, (3, 4)).astype(np.float32) for _ in range(3))
SIGNS, LABELS, SEVERAL = np.float32([1, -1, 1]), np.array([0, 1, 2]), np.array([[0, 1, -1, 2]] * 3)
ROW = W[0]
# What precedes `size_average` in PyTorch's order.
CASES = {
    "mse_loss": (X, Y), "l1_loss": (X, Y), "smooth_l1_loss": (X, Y), "kl_div": (np.log(X), Y),
    "soft_margin_loss": (X, np.sign(Y)), "multilabel_margin_loss": (X, SEVERAL), "cross_entropy": (X, LABELS, ROW),
    "nll_loss": (X, LABELS, ROW),
    "binary_cross_entropy": (X, Y, ROW), "binary_cross_entropy_with_logits": (X, Y, ROW),
    "poisson_nll_loss": (X, Y, True, False),
    "hinge_embedding_loss": (X, np.sign(Y), 0.5), "cosine_embedding_loss": (X, Y, SIGNS, 0.1),
    "margin_ranking_loss": (X[:, 0], Y[:, 0], SIGNS, 0.1), "multi_margin_loss": (X, LABELS, 1, 1.0, ROW),
    "multilabel_soft_margin_loss": (X, Y.round(), ROW), "triplet_margin_loss": (X, Y, X * 2, 1.0, 2.0, 1e-6, False),
}


def of(library, values):
    return [library.from_numpy(v) if isinstance(v, np.ndarray) else v for v in values]


def found(library, name, *values, **settings):
    return getattr(library.nn.functional, name)(*of(library, values), **settings).numpy()


@pytest.mark.parametrize("name", CASES)
def test_parameters_stand_where_pytorchs_do(name):
    ours, theirs = ([*inspect.signature(getattr(f, name)).parameters] for f in (genesis.nn.functional, torch.nn.functional))
    assert ours == theirs


@pytest.mark.parametrize("name", CASES)
def test_losses_are_pytorchs(name, by_references):
    values = CASES[name]
    for average, reduce in itertools.product((None, True, False), repeat=2):
        old = {"size_average": average, "reduce": reduce}
        np.testing.assert_allclose(found(genesis, name, *values, **old), found(torch, name, *values, **old), rtol=1e-5)
        np.testing.assert_allclose(found(genesis, name, *values, average), found(torch, name, *values, average), rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in dir(torch.nn) if name.endswith("Loss")])
def test_modules_take_what_pytorchs_take(name):
    ours, theirs = (inspect.signature(getattr(library.nn, name)) for library in (genesis, torch))
    assert [*ours.parameters] == [*theirs.parameters]
    if "size_average" in ours.parameters:
        for average, reduce in itertools.product((None, True, False), repeat=2):
            made = [getattr(library.nn, name)(size_average=average, reduce=reduce) for library in (genesis, torch)]
            assert made[0].reduction == made[1].reduction


def test_the_old_parameters_are_warned_of():
    with pytest.warns(UserWarning, match="want reduction='sum'"):
        genesis.nn.functional.mse_loss(genesis.ones(7, 5), genesis.ones(7, 5), False)
    with pytest.warns(UserWarning, match="want reduction='none'"):
        genesis.nn.MSELoss(reduce=False)
    with pytest.raises(TypeError, match="multiple values"):
        genesis.nn.functional.mse_loss(*of(genesis, (X, Y)), False, size_average=True)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weights_of_elements_are_pytorchs(name, reduction, by_references):
    results = [getattr(library.nn.functional, name)(*of(library, (X, Y)), reduction=reduction,
                                                    weight=library.from_numpy(W)).numpy() for library in (genesis, torch)]
    np.testing.assert_allclose(*results, rtol=1e-6)
    with pytest.raises(ValueError, match="want the input's"):
        getattr(genesis.nn.functional, name)(*of(genesis, (X, Y)), weight=genesis.ones(4))
