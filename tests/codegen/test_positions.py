"""Positions of extremes: NumPy's, whatever the lanes that are not filled hold."""

import numpy as np
import pytest

import genesis

RANDOM = np.random.default_rng(0)


def rows(kind, dtype, extent):
    x = (RANDOM.normal(size=(6, extent)) * 2).astype(dtype)
    if kind == "nothing but the identity":
        x[:3] = -np.inf if dtype[:5] == "float" else np.iinfo(dtype).min if dtype != "bool" else False
        x[3:] = np.inf if dtype[:5] == "float" else np.iinfo(dtype).max if dtype != "bool" else True
    elif kind == "NaNs" and dtype[:5] == "float":
        x[RANDOM.random(x.shape) < 0.3] = np.nan
    return x


@pytest.mark.parametrize("kind", ["numbers", "nothing but the identity", "NaNs"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_positions_of_extremes(kind, dtype):
    for extent in (3, 8, 33, 130):
        x = rows(kind, dtype, extent)
        for name in ("argmax", "argmin"):
            for axis in (0, 1, None):
                have = getattr(genesis.tensor(x), name)(axis)
                np.testing.assert_array_equal(have.numpy(), getattr(np, name)(x, axis))
