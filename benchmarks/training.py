"""Training steps (forward, backward, optimizer) of four networks, beside torch's and JAX's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

import genesis
from benchmarks.floors import floors, seconds_for
from benchmarks.measure import Bar, Result, Settings, compare
from benchmarks.networks import Network, networks
from benchmarks.peers import compiled, eager, jax, jitted, torch

__all__ = ["contestants", "run", "step"]

RATE = 1e-3


def run(settings: Settings) -> list[Result]:
    """The classifier, images, a transformer, and a network so small that only overhead is left."""
    return [step(network, settings) for network in networks(settings)]


def contestants(network: Network, device: str = "cpu") -> dict[str, Callable[[], Callable[[], float]]]:
    """Who trains `network`: each makes its model, and then a call that takes a step and returns the loss."""
    return {
        "genesis": lambda: _like_torch(genesis, network, device),
        "genesis compiled": lambda: _like_torch(genesis, network, device, whole=genesis.compile),
        "torch eager": lambda: _like_torch(torch, network, device),
        "torch.compile": lambda: _like_torch(torch, network, device, forward=torch.compile),
        "jax.jit": lambda: _jax(network),
    }


def step(network: Network, settings: Settings) -> Result:
    """How long each contestant takes for a step, beside what is promised."""
    builders = contestants(network)
    ours = builders.pop("genesis")()
    result = compare(f"training step, {network.title}", {
        "genesis": ours,
        "genesis compiled": builders["genesis compiled"](),
        "torch eager": eager(builders["torch eager"]),
        "torch.compile": compiled(builders["torch.compile"]),
        "jax.jit": jitted(builders["jax.jit"]) if network.forward else "the network is not written in JAX",
    }, settings)
    result.hold_to(network.limits)
    with genesis.debug.timing() as times:
        ours()
    result.beside_floor(seconds_for(chain.from_iterable(times.programs), floors(settings)[0]), network.limits)
    genesis.debug.reset_stats()
    ours()
    counts = genesis.debug.stats()
    result.bars.append(Bar("native calls a step, exactly 1", counts["native_calls"], counts["native_calls"] == 1))
    result.facts["plan hits a step"] = counts["plan_hits"]
    return result


def _as_it_is(function: Any) -> Any:
    return function


def _like_torch(
    library: Any, network: Network, device: str, forward: Callable[[Any], Any] = _as_it_is,
    whole: Callable[[Any], Any] = _as_it_is,
) -> Callable[[], float]:
    """A step in genesis or torch: the same lines serve both; `forward` and `whole` compile the loss, or all of it."""
    library.manual_seed(0)
    model = network.model(library.nn).to(device)
    optimizer = getattr(library.optim, network.optimizer)(model.parameters(), lr=RATE)
    functional = library.nn.functional
    loss_of = functional.cross_entropy if network.classifies else functional.mse_loss
    inputs, targets = (library.tensor(array, device=device) for array in (network.inputs, network.targets))
    loss_of_batch = forward(lambda inputs, targets: loss_of(model(inputs), targets))

    @whole
    def step(inputs: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of_batch(inputs, targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return lambda: step(inputs, targets).item()


def _jax(network: Network) -> Callable[[], float]:
    assert network.weights is not None and network.forward is not None
    np_, forward = jax.numpy, network.forward
    weights = jax.tree.map(np_.asarray, network.weights(np.random.default_rng(0)))
    inputs, targets = np_.asarray(network.inputs), np_.asarray(network.targets)

    def loss_of(weights, inputs, targets):
        y = forward(weights, inputs)
        if not network.classifies:
            return ((y - targets) ** 2).mean()
        return -np_.take_along_axis(jax.nn.log_softmax(y), targets[:, None], 1).mean()

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
        keep = 1 - (RATE * 0.01 if network.optimizer == "AdamW" else 0)
        weights = jax.tree.map(lambda w, m, s: keep * w - rate * m / (np_.sqrt(s) / root + 1e-8), weights, m, s)
        return (weights, m, s, age + 1), loss

    update = jax.jit(sgd if network.optimizer == "SGD" else adam, donate_argnums=0)
    moments = [jax.tree.map(np_.zeros_like, weights) for _ in range(2)]
    state = [(weights, *moments, np_.float32(1))]

    def step() -> float:
        state[0], loss = update(state[0], inputs, targets)
        return float(loss)

    return step
