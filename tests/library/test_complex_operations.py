"""Functions of complex numbers beside torch's."""

import numpy as np
import pytest
import torch

import genesis


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize("ends", [(0, 1j), (1 + 2j, 3.0), (-1j, 2 - 1j)])
def test_ranges_between_complex_ends(name, ends):
    np.testing.assert_allclose(
        getattr(genesis, name)(*ends, 5).numpy(), getattr(torch, name)(*ends, 5).numpy(), rtol=1e-5, atol=1e-6)
    first = genesis.tensor(ends[0], dtype=genesis.complex128)
    found = getattr(genesis, name)(first, ends[1], 5, dtype=genesis.complex128)
    assert found.dtype is genesis.complex128
    np.testing.assert_allclose(found.numpy(), getattr(torch, name)(*ends, 5, dtype=torch.complex128).numpy())


def test_ranges_of_real_numbers_refuse_complex_ends():
    with pytest.raises(TypeError, match="want complex64"):
        genesis.linspace(0, 1j, 3, dtype=genesis.float32)
    with pytest.raises(TypeError, match="arange: wants real numbers, got 3j"):
        genesis.arange(0, 3j)
