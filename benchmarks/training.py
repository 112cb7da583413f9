"""Training steps: 784-512-512-10 with Adam on batches of 128, and 1-10-1 with SGD on 100 rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import genesis
from benchmarks.measure import Bar, Result, Settings, compare
from benchmarks.peers import compiled, eager, jax, jitted, torch

__all__ = ["run"]

RATE = 1e-3


def run(settings: Settings) -> list[Result]:
    """The classifier, and the network so small that only overhead is left."""
    widths = (784, 512, 512, 10) if not settings.quick else (32, 16, 16, 10)
    random = np.random.default_rng(0)
    x = random.normal(size=(settings.size(128, 8), widths[0])).astype(np.float32)
    y = random.integers(widths[-1], size=len(x))
    title = f"training step, {'-'.join(map(str, widths))}, batch {len(x)}, Adam"
    classifier = _step(title, widths, x, y, "Adam", settings)
    classifier.no_slower_than("jax.jit")
    x = np.linspace(-1, 1, 100, dtype=np.float32)[:, None]
    small = _step("training step, 1-10-1, 100 rows, SGD", (1, 10, 1), x, np.sin(3 * x), "SGD", settings)
    return [classifier, small]


def _step(
    title: str, widths: tuple[int, ...], x: np.ndarray, y: np.ndarray, optimizer: str, settings: Settings
) -> Result:
    ours = _like_torch(genesis, genesis.tensor, widths, x, y, optimizer, lambda f: f)
    result = compare(title, {
        "genesis": ours,
        "torch eager": eager(lambda: _like_torch(torch, torch.tensor, widths, x, y, optimizer, lambda f: f)),
        "torch.compile": compiled(lambda: _like_torch(torch, torch.tensor, widths, x, y, optimizer, torch.compile)),
        "jax.jit": jitted(lambda: _jax(widths, x, y, optimizer)),
    }, settings)
    genesis.debug.reset_stats()
    ours()
    counts = genesis.debug.stats()
    result.bars.append(Bar("native calls a step, exactly 1", counts["native_calls"], counts["native_calls"] == 1))
    result.facts["plan hits a step"] = counts["plan_hits"]
    return result


def _like_torch(
    library: Any, tensor: Callable[[np.ndarray], Any], widths: tuple[int, ...], x: np.ndarray, y: np.ndarray,
    optimizer: str, wrap: Callable[[Any], Any],
) -> Callable[[], float]:
    """A step in genesis or torch: the same lines serve both."""
    nn = library.nn
    library.manual_seed(0)
    layers = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU() if optimizer == "Adam" else nn.Tanh()]
    model = nn.Sequential(*layers[:-1])
    schedule = getattr(library.optim, optimizer)(model.parameters(), lr=RATE)
    loss_of = nn.functional.cross_entropy if y.dtype.kind == "i" else nn.functional.mse_loss
    inputs, targets = tensor(x), tensor(y)
    forward = wrap(lambda inputs, targets: loss_of(model(inputs), targets))

    def step() -> float:
        schedule.zero_grad()
        loss = forward(inputs, targets)
        loss.backward()
        schedule.step()
        return loss.item()

    return step


def _jax(widths: tuple[int, ...], x: np.ndarray, y: np.ndarray, optimizer: str) -> Callable[[], float]:
    np_ = jax.numpy
    random = np.random.default_rng(0)
    weights = [
        (np_.asarray(random.uniform(-1, 1, (a, b)).astype(np.float32) / a**0.5), np_.zeros(b, np_.float32))
        for a, b in pairwise(widths)
    ]
    zeros = jax.tree.map(np_.zeros_like, weights)
    inputs, targets = np_.asarray(x), np_.asarray(y)
    activation = jax.nn.relu if optimizer == "Adam" else np_.tanh

    def loss_of(weights, inputs, targets):
        h = inputs
        for number, (w, b) in enumerate(weights):
            h = h @ w + b
            h = activation(h) if number < len(weights) - 1 else h
        if optimizer != "Adam":
            return ((h - targets) ** 2).mean()
        return -np_.take_along_axis(jax.nn.log_softmax(h), targets[:, None], 1).mean()

    def sgd(state, inputs, targets):
        weights, m, s, age = state
        loss, g = jax.value_and_grad(loss_of)(weights, inputs, targets)
        return (jax.tree.map(lambda w, g: w - RATE * g, weights, g), m, s, age + 1), loss

    def adam(state, inputs, targets):
        weights, m, s, age = state
        loss, g = jax.value_and_grad(loss_of)(weights, inputs, targets)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        s = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, s, g)
        rate, root = RATE / (1 - 0.9**age), (1 - 0.999**age) ** 0.5
        weights = jax.tree.map(lambda w, m, s: w - rate * m / (np_.sqrt(s) / root + 1e-8), weights, m, s)
        return (weights, m, s, age + 1), loss

    update = jax.jit(adam if optimizer == "Adam" else sgd, donate_argnums=0)
    state = [(weights, zeros, jax.tree.map(np_.zeros_like, weights), np_.float32(1))]

    def step() -> float:
        state[0], loss = update(state[0], inputs, targets)
        return float(loss)

    return step
