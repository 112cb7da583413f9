"""Sequences of a new length in each call, as ragged batches and growing texts have them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import genesis
from benchmarks.larger_networks import recurrent
from benchmarks.measure import Result, Settings, compare
from benchmarks.networks import gpt
from benchmarks.peers import compiled, eager, torch

__all__ = ["run"]

MET_BEFORE = 12  # lengths: what is slow only at first is not measured


def run(settings: Settings) -> list[Result]:
    """A training step of a transformer and of a recurrent network, and a token that a transformer writes without a cache."""
    depth, width, words = settings.size(6, 2), settings.size(256, 16), settings.size(1000, 50)
    transformer, lstm = lambda nn: gpt(nn, depth, width, 4, 512, words), lambda nn: recurrent(nn, nn.LSTM, words, width)
    step = "training step at a new length"
    return [
        _compared(f"{step}, GPT, {depth} layers, width {width}, AdamW", _training, transformer, settings),
        _compared(f"{step}, LSTM, 2 layers, width {width}, AdamW", _training, lstm, settings),
        _compared(f"a token more without a cache, GPT, {depth} layers, width {width}", _writing, transformer, settings),
    ]


def _compared(title: str, work: Callable[..., Callable[[], Any]], model: Callable[[Any], Any], settings: Settings) -> Result:
    def theirs(whole: Callable[[Any], Any] = lambda f: f) -> Callable[[], Any]:
        return work(torch, whole(model(torch.nn)))

    result = compare(title, {
        "genesis": work(genesis, model(genesis.nn)), "torch eager": eager(theirs),
        "torch.compile": compiled(lambda: theirs(torch.compile)),
    }, settings)
    result.no_slower_than("torch eager", "torch.compile")
    return result


def _lengths() -> Iterator[int]:
    return itertools.count(40)


def _training(library: Any, model: Any) -> Callable[[], Any]:
    optimizer, lengths = library.optim.AdamW(model.parameters(), lr=1e-3), _lengths()

    def step() -> Any:
        tokens = library.tensor(np.arange(next(lengths) + 1)[None] % 50)
        optimizer.zero_grad()
        loss = library.nn.functional.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return _begun(step)


def _writing(library: Any, model: Any) -> Callable[[], Any]:
    lengths = _lengths()

    def token() -> Any:
        with library.no_grad():
            return model(library.tensor(np.arange(next(lengths))[None] % 50))[-1].argmax().item()

    return _begun(token)


def _begun(call: Callable[[], Any]) -> Callable[[], Any]:
    for _ in range(MET_BEFORE):
        call()
    return call
