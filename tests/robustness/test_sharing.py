"""Random programs of writes from both sides: memory shared with NumPy behaves as PyTorch's, however late it is read."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

import genesis

SMALL, BIG = (4, 3), (600, 500)  # below and above the size up to which what is read is copied


class World:
    """The same tensors and arrays in genesis or in PyTorch."""

    def __init__(self, library: Any, shape: tuple[int, ...]) -> None:
        self.library = library
        grid = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape) % 7
        self.arrays = [grid.copy(), grid.copy()[:, ::2]]
        self.tensors = [library.from_numpy(self.arrays[0]), library.from_numpy(self.arrays[1]),
                        library.ones(shape) + 1, library.from_numpy(grid.copy()) * 0.5]
        self.leaf = library.ones(shape, requires_grad=True)
        self.tensors.append(self.leaf.detach())

    def perform(self, kind: str, a: int, b: int, value: float) -> None:
        tensors = self.tensors
        x, y = tensors[a % len(tensors)], tensors[b % len(tensors)]
        array = self.arrays[a % len(self.arrays)]
        if kind == "outside":
            array[b % array.shape[0]] += value
        elif kind == "share":
            self.arrays.append(x.numpy())
        elif kind == "wrap":
            tensors.append(self.library.from_numpy(array))
        elif kind == "unshare" and len(self.arrays) > 2:
            self.arrays.pop()
        elif kind == "pend":
            tensors.append(x * value + 1)
        elif kind == "combine":
            tensors.append(x.sum() * 0.01 + y)
        elif kind == "row":
            tensors.append(x[b % x.shape[0]:][:2])
        elif kind == "turn":
            tensors.append(x.T)
        elif kind == "add":
            x.add_(value)
        elif kind == "assign":
            x[b % x.shape[0]] = value
        elif kind == "copy" and x.shape == y.shape:
            x.copy_(y * 0.5)
        elif kind == "train":
            loss = (self.leaf * self.leaf * value).sum()
            with self.library.no_grad():
                self.leaf -= 0.1 * self.library.autograd.grad(loss, self.leaf)[0]

    def values(self) -> list[np.ndarray]:
        return [np.array(t.detach().numpy()) for t in self.tensors] + [np.array(a) for a in self.arrays]


def test_detached_tensors_that_took_a_gradient_see_numpys_writes():
    def run(lib):
        array, weight = np.zeros((2, 2), np.float32), lib.full((2, 2), 3.0, requires_grad=True)
        detached = lib.from_numpy(array).detach()
        detached.add_(weight)
        array[0] = 7
        seen = detached.tolist()
        (detached * detached).sum().backward()
        return seen, weight.grad.tolist()

    assert run(genesis) == run(torch)


KINDS = ["outside", "outside", "share", "wrap", "unshare", "pend", "pend", "combine", "row", "turn", "add", "assign", "copy",
         "train"]


@pytest.mark.parametrize("shape", [SMALL, BIG])
@pytest.mark.parametrize("seed", range(30))
def test_writes_from_both_sides_are_seen_as_in_torch(shape, seed):
    choose = random.Random(seed)
    ours, theirs = World(genesis, shape), World(torch, shape)
    for _ in range(12):
        step = choose.choice(KINDS), choose.randrange(100), choose.randrange(100), choose.choice([0.5, 1.5, 2.0])
        ours.perform(*step)
        theirs.perform(*step)
    for number, (mine, other) in enumerate(zip(ours.values(), theirs.values(), strict=True)):
        np.testing.assert_allclose(mine, other, rtol=1e-5, err_msg=f"value {number}")
