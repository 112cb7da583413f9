"""A small model to train, whose every run from one seed gives the same losses."""

from __future__ import annotations

import numpy as np

import genesis
from genesis import nn


def model(seed: int) -> tuple[nn.Module, genesis.Tensor, genesis.Tensor]:
    """A classifier, inputs and targets."""
    numbers = np.random.default_rng(seed)
    made = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    with genesis.no_grad():
        for parameter in made.parameters():
            parameter.copy_(genesis.tensor(numbers.normal(size=parameter.shape).astype(np.float32)))
    inputs = genesis.tensor(numbers.normal(size=(16, 8)).astype(np.float32))
    return made, inputs, genesis.tensor(numbers.integers(0, 3, 16))


def losses(seed: int, steps: int = 10) -> list[float]:
    """The losses of `steps` steps of Adam."""
    made, inputs, targets = model(seed)
    optimizer = genesis.optim.Adam(made.parameters(), lr=0.01)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(made(inputs), targets)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found
