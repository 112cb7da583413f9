"""The others: PyTorch eager, torch.compile, JAX. What is not installed or does not work is said to be absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import genesis

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

try:
    import jax
except ImportError:
    jax = None

__all__ = ["compiled", "finish", "jax", "jitted", "same_threads", "torch"]

_NO_TORCH, _NO_JAX = "torch is not installed", "jax is not installed"


def finish() -> None:
    """Wait for what genesis has recorded."""
    genesis.synchronize()


def same_threads() -> int:
    """Let torch use as many threads as genesis does (JAX takes all processors); returns how many."""
    threads = genesis.get_num_threads()
    if torch is not None:
        torch.set_num_threads(threads)
    return threads


def eager(build: Callable[[], Callable[[], Any]]) -> Callable[[], Any] | str:
    """A torch contestant, if torch is there."""
    return _NO_TORCH if torch is None else build()


def compiled(build: Callable[[], Callable[[], Any]]) -> Callable[[], Any] | str:
    """A torch.compile contestant, if it compiles here."""
    if torch is None:
        return _NO_TORCH
    try:
        torch._dynamo.reset()
        call = build()
        call()
    except Exception as error:  # no C++ compiler, an unsupported Python, ..: not the end of the benchmark
        return f"torch.compile failed: {type(error).__name__}"
    return call


def jitted(build: Callable[[], Callable[[], Any]]) -> Callable[[], Any] | str:
    """A JAX contestant, if JAX is there."""
    return _NO_JAX if jax is None else build()
