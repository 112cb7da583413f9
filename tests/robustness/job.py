"""A job whose step moves all that a failure could leave half done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = {"small": (7, 3), "large": (6000, 8)}  # of a pool's own memory; written over where they lie
GOOD, BAD = [0, 2, 2, 5], [0, 2, 1 << 20, 5]


class Job:
    """Parameters with gradients from before, an optimizer's state, running averages and views; and a step that moves all."""

    def __init__(self, library: Any, size: tuple[int, int]) -> None:
        self.library = library
        table = np.linspace(-1, 1, size[0] * size[1], dtype=np.float32).reshape(size)
        self.table = library.tensor(table, requires_grad=True)
        self.weight = library.tensor(table[: size[1]].T.copy(), requires_grad=True)
        self.late = library.ones(size[1], requires_grad=True)  # without a gradient before
        self.watch: Callable[[Any], Any] = lambda loss: loss
        self.early_average, self.late_average = library.zeros(*size), library.zeros(*size)
        self.optimizer = library.optim.Adam([self.table, self.weight, self.late], lr=0.01)
        self.views = [self.table.detach()[1], self.late_average[2]]
        self.squash = library.nn.Tanh()
        self.through: Callable[[Any], Any] = lambda x: x
        for _ in range(2):
            self.step(library.tensor(GOOD))
        self.optimizer.zero_grad()
        (self.table.sum() + self.weight.sum()).backward()

    def step(self, index: Any) -> Any:
        with self.library.no_grad():
            self.early_average.mul_(0.5).add_(self.table.detach())
        rows = self.table[index]
        hidden = self.through(rows @ self.weight.T)
        loss = (self.squash(hidden) * self.late).square().sum()
        self.watch(loss)
        loss.backward()
        self.optimizer.step()
        with self.library.no_grad():
            self.late_average.mul_(0.5).add_(self.table.detach())
        return loss

    @property
    def tensors(self) -> dict[str, Any]:
        found = {"table": self.table, "weight": self.weight, "late": self.late, "early average": self.early_average,
                 "late average": self.late_average, "a parameter's view": self.views[0], "an average's view": self.views[1]}
        for number, slots in self.optimizer.state_dict()["state"].items():
            found |= {f"{name} of {number}": slot for name, slot in slots.items()}
        for name in ("table", "weight", "late"):
            if found[name].grad is not None:
                found[f"the gradient of {name}"] = found[name].grad
        return found

    def values(self) -> dict[str, np.ndarray]:
        return {name: np.array(tensor.detach().numpy()) for name, tensor in self.tensors.items()}

    def versions(self) -> list[int]:
        return [t._version for t in (self.table, self.weight, self.late, self.early_average, self.late_average)]


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-6, err_msg=name)
