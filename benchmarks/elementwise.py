"""silu(a * b + c), and five operations of complex numbers: one pass over memory, or as many as there are operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import genesis
from benchmarks.measure import Bar, Result, Settings, compare
from benchmarks.peers import compiled, eager, finish, jax, jitted, torch

__all__ = ["run"]


def run(settings: Settings) -> list[Result]:
    """Both chains."""
    return [silu(settings), of_complex_numbers(settings)]


def silu(settings: Settings) -> Result:
    """The fused expression, and the triad that measures how fast memory is."""
    count = settings.size(1 << 22, 1 << 12)
    arrays = [np.random.default_rng(i).normal(size=count).astype(np.float32) for i in range(3)]
    a, b, c = map(genesis.tensor, arrays)

    def ours() -> object:
        y = genesis.silu(a * b + c)
        finish()
        return y

    def triad() -> object:
        y = a + 3.0 * b
        finish()
        return y

    result = compare(f"silu(a * b + c), {count:,} float32", {
        "genesis": ours,
        "torch eager": eager(lambda: _torch(arrays, lambda f: f)),
        "torch.compile": compiled(lambda: _torch(arrays, torch.compile)),
        "jax.jit": jitted(lambda: _jax(arrays)),
        "(triad by genesis)": triad,
        "(triad by torch)": eager(lambda: _torch_triad(arrays)),
    }, settings)
    lowered = genesis.debug.program(genesis.silu(a * b + c))
    kernels = len(lowered.kernels)
    triads = [seconds for name, seconds in result.medians.items() if "triad" in name]
    share = (16 / result.medians["genesis"]) / (12 / min(triads))
    result.facts["triad"] = f"{12 * count / min(triads) / 1e9:.1f} GB/s"
    result.facts["genesis moves"] = f"{16 * count / result.medians['genesis'] / 1e9:.1f} GB/s"
    result.bars += [
        Bar("kernels, exactly 1", kernels, kernels == 1),
        Bar("share of the triad's bandwidth, at least 0.8", share, share >= 0.8),
    ]
    result.no_slower_than("torch eager", "torch.compile")
    return result


def of_complex_numbers(settings: Settings) -> Result:
    """A chain of five operations of complex numbers, and the same of real ones, which moves half as much."""
    count, random = settings.size(1 << 22, 1 << 12), np.random.default_rng(0)
    arrays = [random.normal(size=(count, 2)).astype(np.float32).view(np.complex64)[:, 0] for _ in range(3)]
    given, parts = [genesis.tensor(x) for x in arrays], [genesis.tensor(x.real.copy()) for x in arrays]

    def ours() -> object:
        y = _chain(*given)
        finish()
        return y

    def of_parts() -> object:
        a, b, c = parts
        y = (-(a * b + c) - a) * 0.5
        finish()
        return y

    result = compare(f"((a * b + c).conj() - a) * 0.5j, {count:,} complex64", {
        "genesis": ours,
        "torch eager": eager(lambda: _of_complex(torch.tensor, arrays, lambda f: f)),
        "torch.compile": compiled(lambda: _of_complex(torch.tensor, arrays, torch.compile)),
        "jax.jit": jitted(lambda: _waited_for(_of_complex(jax.numpy.asarray, arrays, jax.jit))),
        "(of float32, by genesis)": of_parts,
    }, settings)
    kernels = len(genesis.debug.program(_chain(*given)).kernels)
    share = 2 * result.medians["(of float32, by genesis)"] / result.medians["genesis"]
    result.facts["genesis moves"] = f"{32 * count / result.medians['genesis'] / 1e9:.1f} GB/s"
    result.bars += [
        Bar("kernels, exactly 1", kernels, kernels == 1),
        Bar("share of the bandwidth of real numbers, at least 0.75", share, share >= 0.75),
    ]
    result.no_slower_than("torch eager", "torch.compile", "jax.jit")
    return result


def _chain(a: Any, b: Any, c: Any) -> Any:
    return ((a * b + c).conj() - a) * 0.5j


def _of_complex(placed: Callable[[np.ndarray], object], arrays: list[np.ndarray], wrap: Any) -> Callable[[], Any]:
    given, function = [placed(x) for x in arrays], wrap(_chain)
    return lambda: function(*given)


def _waited_for(call: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: call().block_until_ready()


def _torch(arrays: list[np.ndarray], wrap: object) -> object:
    a, b, c = map(torch.tensor, arrays)
    function = wrap(lambda a, b, c: torch.nn.functional.silu(a * b + c))
    return lambda: function(a, b, c)


def _torch_triad(arrays: list[np.ndarray]) -> object:
    a, b, out = map(torch.tensor, arrays)
    return lambda: torch.add(a, b, alpha=3.0, out=out)


def _jax(arrays: list[np.ndarray]) -> object:
    a, b, c = map(jax.numpy.asarray, arrays)
    function = jax.jit(lambda a, b, c: jax.nn.silu(a * b + c))
    return lambda: function(a, b, c).block_until_ready()
