"""`nextafter` of every dtype against PyTorch's, bit by bit."""

import numpy as np
import pytest
import torch

import genesis

INTEGERS = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_neighbour_is_torchs(dtype):
    integer, rng = INTEGERS[dtype], np.random.default_rng(0)
    bits = rng.integers(np.iinfo(integer).min, np.iinfo(integer).max, 4096, integer, endpoint=True)
    special = torch.tensor([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, 65504.0, 1e-7]).to(getattr(torch, dtype))
    bits = np.concatenate([bits, special.view(getattr(torch, integer)).numpy()])
    for towards in rng.permutation(bits), np.zeros_like(bits), np.full_like(bits, bits[-8]):
        want, found = (
            lib.nextafter(*[lib.tensor(x).view(getattr(lib, dtype)) for x in (bits, towards)]) for lib in (torch, genesis))
        np.testing.assert_array_equal(found.isnan().numpy(), want.isnan().numpy())
        numbers = ~want.isnan().numpy()
        np.testing.assert_array_equal(
            *[x.view(getattr(lib, integer)).numpy()[numbers] for lib, x in ((genesis, found), (torch, want))])
