"""Loops over time on a GPU: steps of a recurrent network are those of the CPU."""

import numpy as np
import pytest

import genesis
from genesis import nn


@pytest.mark.parametrize("name", ["GRU", "LSTM"])
def test_recurrent_layers_train_as_on_the_cpu(name):
    found = []
    for device in ("cpu", "cuda"):
        genesis.manual_seed(0)
        layer = getattr(nn, name)(3, 4, bidirectional=True).to(device)
        output, _ = layer(genesis.tensor(np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 2, 3)).to(device))
        (output**2).sum().backward()
        found.append([value.detach().cpu().numpy() for value in (output, *[p.grad for p in layer.parameters()])])
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-5)
