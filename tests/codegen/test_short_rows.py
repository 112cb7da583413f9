"""Many rows of few elements, as wide as their vectors."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_short_rows_are_computed_as_torchs(n, dtype):
    """Their vectors have as few lanes as fit; of a reduction along the rows, across them, of all, and of passes over a row."""
    values = np.random.default_rng(0).normal(size=(1 << 15, n)).astype(dtype)

    def computed(library):
        x = library.tensor(values, requires_grad=True)
        y = library.softmax(x * 2, 1) - x.mean(1, keepdim=True)
        y.square().sum().backward()
        return y.detach(), x.grad, x.detach().argmax(1), (x.detach() + 1).sum(0), x.detach().flip(1) * 3

    for have, want in zip(computed(genesis), computed(torch), strict=True):
        assert_close(have, want, scale=100)
