"""Masked operations against torch.masked: values, dtypes, gradients."""

import numpy as np
import pytest
import torch

import genesis
from genesis.autograd import gradcheck
from tests.tolerances import assert_close, to_torch

RANDOM = np.random.default_rng(0)
X, OTHER = RANDOM.normal(size=(2, 3, 4, 5))
MASKS = {"none": None, "whole": RANDOM.random((3, 4, 5)) < 0.6, "broadcast": np.array([[True], [False], [True], [True]])}
REDUCTIONS, ALONG = ["sum", "prod", "amax", "amin", "logsumexp", "mean", "var", "std"], [
    "cumsum", "cumprod", "softmax", "log_softmax", "softmin", "argmax", "argmin", "median"]
CALLS = {
    **{name: [((), {}), ((1,), {}), (((0, 2),), {"keepdim": True})] for name in REDUCTIONS},
    **{name: [((1,), {}), ((-1,), {})] for name in ALONG},
    "var with corrections": [((1,), {"correction": 2}), ((1, False), {}), ((), {"dtype": "float64"})],
    "norm of orders": [((order, 1), {}) for order in (1, 3.0, np.inf, -np.inf)],
    "normalize": [((2.0, 1), {}), ((1.0, -1), {"eps": 3.0})], "sum in a dtype": [((1,), {"dtype": "float32"})],
}


def both(name, array, given, keywords, mask):
    """What genesis and torch give, through a leaf, and its gradient."""
    found = []
    for library, make in ((genesis, genesis.tensor), (torch, to_torch)):
        leaf = make(array)
        if array.dtype == np.float64:
            leaf.requires_grad_()
        named = {k: getattr(library, v) if k == "dtype" else v for k, v in keywords.items()}
        function = getattr(library.masked, name.split()[0])
        result = function(leaf, *given, mask=None if mask is None else make(mask), **named)
        found.append([result])
        if result.requires_grad:
            weights = make(np.cos(np.arange(np.prod(result.shape, dtype=int))).reshape(tuple(result.shape)))
            (result.nan_to_num(0.0, 0.0, 0.0) * weights).sum().backward()
            found[-1].append(leaf.grad)
    return found


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_torchs(name, mask):
    for given, keywords in CALLS[name]:
        assert_close(*both(name, X, given, keywords, MASKS[mask]), f"{name} {given} {keywords}")


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "argmax", "argmin", "var", "std"])
def test_integers_have_torchs_dtypes(name, dtype):
    array = (np.abs(X) * 9).astype(dtype)
    for mask in (None, MASKS["whole"]):
        assert_close(*both(name, array, (1,), {}, mask), name)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "median", "norm", "amax", "logsumexp"])
def test_of_nothing_there_is_the_identity(name):
    mask = np.zeros((4, 5), bool)
    ours, theirs = both(name, X, (2, -1) if name == "norm" else (-1,), {}, mask)
    assert_close(ours[0], theirs[0], name)


def test_each_of_two_has_a_mask():
    masks = MASKS["whole"], ~MASKS["whole"] | (X > 1)
    found = [
        m.masked.logaddexp(m.tensor(X), m.tensor(OTHER), input_mask=m.tensor(masks[0]), other_mask=m.tensor(masks[1]))
        for m in (genesis, torch)
    ]
    assert_close(*found)


def test_masked_moments_are_finite_differences():
    leaf, mask = genesis.tensor(X[0], requires_grad=True), genesis.tensor(MASKS["whole"][0] | (X[0] > 0))
    gradcheck(lambda x: genesis.masked.std(x, 1, mask=mask), (leaf,))
    gradcheck(lambda x: genesis.masked.softmax(x, 0, mask=mask), (leaf,))


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: genesis.masked.sum(x, mask=x), r"sum: mask float32 \(2, 3\) of input \(2, 3\); want bools"),
    (lambda x: genesis.masked.amax(x, mask=genesis.ones(1, 2, 3).bool()), "amax: mask bool"),
    (lambda x: genesis.masked.mean(x.long()), "mean: wants a floating tensor or dtype, got int64"),
    (lambda x: genesis.masked.var(x, 0, True, correction=1), "got unbiased True and correction 1; want one"),
    (lambda x: genesis.masked.sum(x, mask=genesis.ones(2).bool()), "broadcast|expand"),
])
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(genesis.ones(2, 3))
