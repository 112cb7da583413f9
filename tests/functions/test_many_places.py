"""Functions whose results are as long as what is found, among more elements than NumPy is asked about."""

import numpy as np
import pytest
import torch

import genesis
from genesis.functions.indexing import FEW

X = np.random.default_rng(0).integers(-3, 4, (90, 70))
assert X.size > FEW


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
def test_places_are_numpys(dtype):
    x = X.astype(dtype)
    np.testing.assert_array_equal(genesis.nonzero(genesis.tensor(x)).numpy(), np.argwhere(x))
    for have, want in zip(genesis.nonzero(genesis.tensor(x), as_tuple=True), np.nonzero(x), strict=True):
        np.testing.assert_array_equal(have.numpy(), want)


def test_so_many_places_are_the_first_ones_then_the_filler():
    found = np.argwhere(X)
    for size in (0, 5, len(found), len(found) + 3):
        want = np.full((size, 2), -7)
        want[: min(size, len(found))] = found[:size]
        np.testing.assert_array_equal(genesis.nonzero_static(genesis.tensor(X), size=size, fill_value=-7).numpy(), want)


def test_elements_under_a_mask_of_several_axes_and_their_gradient():
    x, weight = X.reshape(90, 14, 5).astype(np.float32), np.arange(5, dtype=np.float32)
    mask = np.random.default_rng(1).random((90, 14)) < 0.3
    have, want = genesis.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    for tensor, library in ((have, genesis), (want, torch)):
        (tensor[library.tensor(mask)] * library.tensor(weight)).sum().backward()
    np.testing.assert_array_equal(have[genesis.tensor(mask)].detach().numpy(), x[mask])
    np.testing.assert_array_equal(have.grad.numpy(), want.grad.numpy())
    turned = genesis.tensor(X).T
    np.testing.assert_array_equal(genesis.masked_select(turned, turned > 1).numpy(), X.T[X.T > 1])
    turned[turned > 1] = genesis.arange(int((X > 1).sum()))
    want = X.T.copy()
    want[X.T > 1] = np.arange((X > 1).sum())
    np.testing.assert_array_equal(turned.numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_distinct_elements_are_torchs(dtype):
    x = X.astype(dtype)
    if dtype == "float32":
        x[X == 2] = np.nan  # each is an element of its own
    for name in ("unique", "unique_consecutive"):
        have, want = (
            getattr(library, name)(library.tensor(x), return_inverse=True, return_counts=True) for library in (genesis, torch))
        for mine, theirs in zip(have, want, strict=True):
            assert mine.dtype.name == str(theirs.dtype).removeprefix("torch.")
            mine, theirs = mine.numpy(), theirs.numpy()
            if name == "unique" and mine.shape == x.shape:  # which of the NaN a NaN is, is anybody's guess
                np.testing.assert_array_equal(np.sort(mine[np.isnan(x)]), np.sort(theirs[np.isnan(x)]))
                mine, theirs = mine[~np.isnan(x)], theirs[~np.isnan(x)]
            np.testing.assert_array_equal(mine, theirs)


def test_slices_unlike_the_one_before():
    x = np.repeat(X, 2, 1)
    have = genesis.unique_consecutive(genesis.tensor(x), return_inverse=True, return_counts=True, dim=1)
    want = torch.unique_consecutive(torch.tensor(x), return_inverse=True, return_counts=True, dim=1)
    for mine, theirs in zip(have, want, strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


def test_draws_are_the_elements_where_cumulative_probabilities_pass_a_number():
    p = genesis.tensor(np.abs(X[:5]).astype(np.float32))
    for replacement in (False, True):
        places = genesis.multinomial(p, 8, replacement=replacement).numpy()
        assert places.shape == (5, 8) and (np.take_along_axis(np.abs(X[:5]), places, 1) > 0).all()
        assert replacement or all(len(set(row)) == 8 for row in places.tolist())
