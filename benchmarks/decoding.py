"""A language model that computes one token after the other: weights of float32 beside those of int8."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import genesis
from benchmarks.measure import Bar, Result, Settings, compare
from benchmarks.networks import gpt
from benchmarks.peers import eager, torch

__all__ = ["run"]

FASTER = 1.8


def run(settings: Settings) -> list[Result]:
    """A step of GPT-2's size (Radford et al., 2019) with what came before in a cache, for one sequence and for eight."""
    return [_step(settings, rows) for rows in (1, 8)]


def _step(settings: Settings, rows: int) -> Result:
    depth, width, heads, length, words = (settings.size(*sizes) for sizes in (
        (12, 2), (768, 32), (12, 2), (256, 16), (50257, 100)))
    weights = _gpt(genesis, depth, width, heads, length, words, rows).state_dict()

    def ours(small: bool) -> Callable[[], Any]:
        model = _gpt(genesis, depth, width, heads, length, words, rows)
        model.load_state_dict(weights)
        if small:
            genesis.ao.quantization.quantize_dynamic(model, {genesis.nn.Linear}, inplace=True)
        return _call(genesis, genesis.compile(model), rows)

    def theirs(small: bool) -> Callable[[], Any]:
        model = _gpt(torch, depth, width, heads, length, words, rows)
        model.load_state_dict({name: torch.from_numpy(value.numpy()) for name, value in weights.items()})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # quantisation is to move out of PyTorch
            if small:
                torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, inplace=True)
        return _call(torch, model, rows)

    exact, small = ours(False), ours(True)
    result = compare(f"a token of GPT-2, {depth} layers, width {width}, {length} in the cache, {rows} at once", {
        "genesis": small, "genesis float32": exact, "torch eager": eager(lambda: theirs(True)),
        "torch float32": eager(lambda: theirs(False)),
    }, settings)
    ratio = result.medians["genesis float32"] / result.medians["genesis"]
    result.bars.append(Bar(f"int8 is faster than float32 at least {FASTER} times", ratio, ratio >= FASTER))
    result.no_slower_than("torch eager")
    wanted = np.asarray(exact())
    result.facts["error, by float32's size"] = f"{np.linalg.norm(small() - wanted) / np.linalg.norm(wanted):.3f}"
    return result


def _call(library: Any, model: Any, rows: int) -> Callable[[], Any]:
    tokens = library.tensor(np.arange(rows).reshape(rows, 1) + 1)

    def call() -> Any:
        with library.no_grad():
            return model(tokens).numpy()

    return call


def _gpt(library: Any, depth: int, width: int, heads: int, length: int, words: int, rows: int) -> Any:
    """The model; a call computes the token at the last place of a full cache."""
    nn = library.nn

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            for name in ("keys", "values"):
                self.register_buffer(name, library.randn(rows, heads, length, width // heads))

        def forward(self, x: Any) -> Any:
            q, k, v = (part.view(rows, 1, heads, -1).transpose(1, 2) for part in self.project(x).chunk(3, dim=-1))
            self.keys[:, :, -1:] = k
            self.values[:, :, -1:] = v
            a = nn.functional.scaled_dot_product_attention(q, self.keys, self.values)
            return self.out(a.transpose(1, 2).reshape(rows, 1, width))

    return gpt(nn, depth, width, heads, length, words, Attention).eval()
