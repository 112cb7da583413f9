"""The networks that are trained here, in genesis or torch (the same lines serve both), and in JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.measure import Limits, Settings
from benchmarks.peers import jax

__all__ = ["Network", "gpt", "networks"]


@dataclass(frozen=True)
class Network:
    """One training step's work: data, a model of `nn`, the same in JAX if it takes part, an optimizer, what is promised."""

    title: str
    inputs: np.ndarray
    targets: np.ndarray
    model: Callable[[Any], Any]
    weights: Callable[[np.random.Generator], Any] | None
    forward: Callable[[Any, Any], Any] | None
    optimizer: str
    limits: Limits

    @property
    def classifies(self) -> bool:
        return self.targets.dtype.kind == "i"


def networks(settings: Settings) -> Iterator[Network]:
    """The four steps: overhead alone, products, images, a transformer."""
    random = np.random.default_rng(0)
    yield _tiny()
    yield _classifier(settings, random)
    yield _images(settings, random)
    yield _transformer(settings, random)


def _tiny() -> Network:
    x = np.linspace(-1, 1, 100, dtype=np.float32)[:, None]
    return Network(
        "1-10-1, 100 rows, SGD", x, np.sin(3 * x), lambda nn: nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1)),
        lambda random: _dense(random, 1, 10, 1), lambda weights, x: _perceptron(weights, x, jax.numpy.tanh), "SGD",
        Limits(0.2, 0.6),
    )


def _classifier(settings: Settings, random: np.random.Generator) -> Network:
    widths = (784, 512, 512, 10) if not settings.quick else (32, 16, 16, 10)
    batch = settings.size(128, 8)

    def model(nn: Any) -> Any:
        layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    return Network(
        f"{'-'.join(map(str, widths))}, batch {batch}, Adam", random.normal(size=(batch, widths[0])).astype(np.float32),
        random.integers(widths[-1], size=batch), model, lambda random: _dense(random, *widths),
        lambda weights, x: _perceptron(weights, x, jax.nn.relu), "Adam",
        Limits(0.6, 0.4, 1.2),
    )


def _images(settings: Settings, random: np.random.Generator) -> Network:
    """Two convolutions with pools, two dense layers."""
    batch, side = settings.size(64, 2), settings.size(32, 8)
    features, hidden = 64 * (side // 4) ** 2, 128

    def model(nn: Any) -> Any:
        return nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 10),
        )

    def weights(random: np.random.Generator) -> Any:
        kernels = [
            (_uniform(random, 9 * a, b, a, 3, 3), np.zeros((b, 1, 1), np.float32)) for a, b in ((3, 32), (32, 64))
        ]
        return kernels, _dense(random, features, hidden, 10)

    def forward(weights: Any, x: Any) -> Any:
        kernels, dense = weights
        for kernel, bias in kernels:
            x = jax.nn.relu(jax.lax.conv(x, kernel, (1, 1), "SAME") + bias)
            x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return _perceptron(dense, x.reshape(len(x), -1), jax.nn.relu)

    return Network(
        f"convolutions 3-32-64, {features}-{hidden}-10, batch {batch} of {side}x{side}, Adam",
        random.normal(size=(batch, 3, side, side)).astype(np.float32), random.integers(10, size=batch), model, weights,
        forward, "Adam", Limits(0.45, 0.45, 1.2),
    )


def _transformer(settings: Settings, random: np.random.Generator) -> Network:
    """A small GPT: causal attention and a GELU network in each layer, norms before them, learned positions."""
    depth, width, heads = (4, 256, 8) if not settings.quick else (2, 16, 2)
    batch, length, vocabulary = settings.size(16, 2), settings.size(128, 8), 96

    def model(nn: Any) -> Any:
        return gpt(nn, depth, width, heads, length, vocabulary)

    def weights(random: np.random.Generator) -> Any:
        def norm() -> Any:
            return np.ones(width, np.float32), np.zeros(width, np.float32)

        blocks = [
            (norm(), *_dense(random, width, 3 * width), *_dense(random, width, width), norm(),
             *_dense(random, width, 4 * width), *_dense(random, 4 * width, width))
            for _ in range(depth)
        ]
        tables = [random.normal(size=(rows, width)).astype(np.float32) for rows in (vocabulary, length)]
        return tables, blocks, norm(), _uniform(random, width, width, vocabulary)

    def forward(weights: Any, tokens: Any) -> Any:
        (words, places), blocks, last, head = weights
        x = words[tokens] + places
        for before, (w, b), (v, c), between, (up, d), (down, e) in blocks:
            q, k, v_ = np_.split((_norm(x, *before) @ w + b).reshape(batch, length, 3 * heads, -1), 3, axis=2)
            a = jax.nn.dot_product_attention(q, k, v_, is_causal=True).reshape(x.shape)
            x = x + a @ v + c
            x = x + jax.nn.gelu(_norm(x, *between) @ up + d, approximate=False) @ down + e
        return (_norm(x, *last) @ head).reshape(-1, vocabulary)

    np_ = jax.numpy if jax else None
    tokens = random.integers(vocabulary, size=(batch, length + 1))
    return Network(
        f"GPT, {depth} layers, width {width}, {heads} heads, {batch}x{length} tokens, AdamW", tokens[:, :-1],
        tokens[:, 1:].reshape(-1), model, weights, forward, "AdamW", Limits(0.6, 0.6, 1.2),
    )


def gpt(
    nn: Any, depth: int, width: int, heads: int, length: int, vocabulary: int, attention: Callable[[], Any] | None = None
) -> Any:
    """A model whose output has a row for each token, with an `attention` of its own if that is given."""
    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            q, k, v = (part.view(b, t, heads, -1).transpose(1, 2) for part in self.project(x).chunk(3, dim=-1))
            a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(a.transpose(1, 2).reshape(b, t, width))

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = (attention or Attention)()
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.before(x))
            return x + self.mlp(self.between(x))

    class GPT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks, self.last = nn.Sequential(*(Block() for _ in range(depth))), nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
            return self.head(self.last(self.blocks(x))).reshape(-1, vocabulary)

    return GPT()


def _uniform(random: np.random.Generator, fan_in: int, *shape: int) -> np.ndarray:
    return random.uniform(-1, 1, shape).astype(np.float32) / np.float32(fan_in**0.5)


def _dense(random: np.random.Generator, *widths: int) -> list[Any]:
    return [(_uniform(random, a, a, b), np.zeros(b, np.float32)) for a, b in pairwise(widths)]


def _perceptron(weights: Any, x: Any, activation: Callable[[Any], Any]) -> Any:
    for number, (w, b) in enumerate(weights):
        x = x @ w + b
        x = activation(x) if number < len(weights) - 1 else x
    return x


def _norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias
