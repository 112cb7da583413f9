"""What a machine does at best, and the time that it would need for the stages of a program: the floor under what is measured.

A copy shows what memory moves, a large product what the multipliers do, the better of genesis' and torch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import genesis
from benchmarks.measure import Result, Settings, compare
from benchmarks.peers import compiled, eager, finish, jitted, torch
from genesis.codegen.cpu.tiling import cache_bytes
from genesis.debug.costs import StageTime

__all__ = ["Floors", "contested", "floors", "seconds_for"]

NEAR = 1 << 15  # elements of an array in a thread's cache


class Floors(NamedTuple):
    """What a device does at best.

    Attributes:
        bandwidth: bytes a second by a copy.
        flops: float32 operations a second by a product.
        cache: bytes a second to and from the caches of all threads.
        cached: the bytes that lie in them.
    """

    bandwidth: float
    flops: float
    cache: float
    cached: float


@functools.cache
def floors(settings: Settings) -> tuple[Floors, list[Result]]:
    """The floors, and the comparisons that they are the best of; measured once."""
    on_host = settings.device == "cpu"
    count, side = settings.size(1 << (24 if on_host else 26), 1 << 12), settings.size(1024 if on_host else 4096, 64)
    copy = contested(f"copy of {count:,} float32", _both(lambda x: x.clone(), (count,), settings), settings)
    product = contested(f"product of {side} x {side} float32", _both(lambda x: x @ x, (side, side), settings), settings)
    bandwidth, flops = 8 * count / min(copy.medians.values()), 2 * side**3 / min(product.medians.values())
    best = Floors(bandwidth, flops, *((_cache_bandwidth(), float(cache_bytes())) if on_host else (bandwidth, 0.0)))
    copy.facts["bandwidth"] = f"{best.bandwidth / 1e9:.0f} GB/s"
    product.facts["peak"] = f"{best.flops / 1e12:.2f} TFLOP/s"
    for result in (copy, product):
        result.no_slower_than("torch eager")
    return best, [copy, product]


def _cache_bandwidth() -> float:
    """The bytes a second to and from the caches of all threads: those of one thread, times their number."""
    threads, x = genesis.get_num_threads(), genesis.ones(NEAR)
    genesis.set_num_threads(1)
    try:
        with genesis.debug.timing() as times:
            for _ in range(5):
                y = x * 2.0
                finish()
                del y
    finally:
        genesis.set_num_threads(threads)
    return threads * 8 * NEAR / min(stage.seconds for stages in times.programs[-1:] for stage in stages)


def seconds_for(stages: Iterable[StageTime], best: Floors) -> float:
    """The time that stages, one after the other, need at least: each for its products or for its bytes, whichever is more."""
    return sum(max(stage.flops / best.flops, stage.nbytes / (best.cache if stage.nbytes <= best.cached else best.bandwidth))
               for stage in stages)


def _both(
    function: Callable[[Any], Any], shape: tuple[int, ...], settings: Settings
) -> dict[str, Callable[[], Callable[[], Any]]]:
    """A function of ones, by genesis and by torch."""
    def of(library: Any, end: Callable[[], Any]) -> Callable[[], Any]:
        x = library.ones(*shape, device=settings.device)
        return _then(lambda: function(x), end)

    return {"genesis": lambda: of(genesis, finish), "torch eager": lambda: of(torch, int)}


def _then(call: Callable[[], Any], end: Callable[[], Any]) -> Callable[[], Any]:
    def both() -> Any:
        y = call()
        end()
        return y

    return both


def contested(title: str, builders: dict[str, Callable[[], Callable[[], Any]]], settings: Settings) -> Result:
    """The contestants in turn; each call ends when the device is done, for which JAX's wait by themselves."""
    waits = {"genesis": genesis.synchronize, "torch": lambda: torch.cuda.synchronize()}
    guards = {"torch eager": eager, "torch.compile": compiled, "jax.jit": jitted}

    def made(name: str) -> Callable[[], Any] | str:
        library = name.replace(".", " ").split()[0]
        wait = waits.get(library, int) if settings.device != "cpu" else int
        return guards.get(name, lambda build: build())(lambda: _then(builders[name](), wait))

    return compare(title, {name: made(name) for name in builders}, settings)
