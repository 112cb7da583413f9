"""Slopes by differences of neighbours, against torch's."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

X = np.random.default_rng(0).normal(size=(4, 5))
PLACES = [np.array([0.0, 0.5, 2.0, 2.25]), np.array([-1.0, 0, 0.1, 3, 4])]


@pytest.mark.parametrize("settings", [
    {}, {"edge_order": 2}, {"dim": 1, "spacing": 0.5}, {"dim": (1, 0), "spacing": (2.0, 3.0)}, {"spacing": PLACES},
    {"dim": (-1,), "spacing": PLACES[1:], "edge_order": 2},
], ids=str)
def test_slopes_and_their_gradients_are_torchs(settings):
    found = []
    for library in (genesis, torch):
        given = dict(settings)
        if isinstance(given.get("spacing"), list):
            given["spacing"] = [library.tensor(a) for a in given["spacing"]]
        x = library.tensor(X, requires_grad=True)
        slopes = library.gradient(x, **given)
        sum((y**2).sum() for y in slopes).backward()
        found.append([*slopes, x.grad])
    assert_close(*found, scale=100)


@pytest.mark.parametrize("places", [None, np.arange(9.0) ** 1.5])
def test_slopes_beside_infinities(places):
    values = [2, -2, np.inf, np.inf, -np.inf, 3, np.nan, 1, np.inf]
    spacing = {} if places is None else {"spacing": [places]}
    found = [library.gradient(library.tensor(values), **{key: [library.tensor(places)] for key in spacing})[0].tolist()
             for library in (genesis, torch)]
    assert str(found[0]) == str(found[1])


@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("int64", "float64"), ("int64", "int64"), ("float16", "float32")])
def test_slopes_are_computed_in_the_dtype_of_values_and_places(dtypes):
    found = []
    for library in (genesis, torch):
        x, places = [library.tensor([1, 4, 9, 20], dtype=getattr(library, dtype)) for dtype in dtypes]
        found.append(library.gradient(x, spacing=[places], edge_order=2)[0])
    assert str(found[0].dtype) == str(found[1].dtype).replace("torch", "genesis")
    assert np.allclose(*found, rtol=1e-2 if dtypes[0] == "float16" else 1e-6)  # PyTorch rounds coefficients to such


@pytest.mark.parametrize("step", [0.1, 1j, "0-d"])
def test_slopes_of_even_places_divide_once(step):
    for dtype in ("float16", "float32")[step == 1j :]:
        found = []
        for library in (genesis, torch):
            x = library.tensor([1.0, 2.0, 3.0, 5.0], dtype=getattr(library, dtype))
            found.append(library.gradient(x, spacing=library.tensor(0.5) if step == "0-d" else step, edge_order=2)[0].tolist())
        assert found[0] == pytest.approx(found[1], rel=1e-3 if dtype == "float16" else 1e-6)


def test_slopes_of_integers_and_short_axes():
    assert_close(*[library.gradient(library.tensor([1, 4, 9, 16])) for library in (genesis, torch)])
    assert_close(*[library.gradient(library.tensor([1.0, 4.0])) for library in (genesis, torch)])


@pytest.mark.parametrize(("settings", "message"), [
    ({"edge_order": 2}, "want 3 at least"), ({"edge_order": 3}, "want 1 or 2"), ({"spacing": [1.0, 2.0]}, "one each"),
])
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        genesis.gradient(genesis.tensor([1.0, 4.0]), **settings)
