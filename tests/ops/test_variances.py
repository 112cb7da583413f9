"""Variances say their correction in three ways, PyTorch's older ones among them."""

import numpy as np
import pytest
import torch

import genesis

FORMS = [
    ((), {}), ((False,), {}), ((True,), {}), ((0, False), {}), ((0, True), {}), ((1, False, True), {}), (((0, 1), False), {}),
    ((), {"unbiased": False}), ((0,), {"unbiased": False, "keepdim": True}), ((0,), {"correction": 0}), ((), {"correction": 2}),
    ((1,), {"correction": 0, "keepdim": True}), ((None, False), {}),
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_a_correction_means_what_it_means_in_torch(name, form):
    arguments, keywords = form
    values = np.random.default_rng(0).normal(size=(3, 4))
    ours = getattr(genesis, name)(genesis.from_numpy(values), *arguments, **keywords)
    theirs = getattr(torch, name)(torch.from_numpy(values), *arguments, **keywords)
    for mine, other in zip(*[(x,) if hasattr(x, "shape") else x for x in (ours, theirs)], strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-12)


@pytest.mark.parametrize(("arguments", "keywords"), [((0, False), {"correction": 1}), ((True, False), {})])
def test_a_correction_that_is_said_twice_is_refused(arguments, keywords):
    with pytest.raises(TypeError, match="want "):
        genesis.ones(3, 4).var(*arguments, **keywords)
