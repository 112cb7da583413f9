"""`python -m benchmarks.gpu`: training steps and functions on a GPU, beside torch and JAX and the machine's own floors.

The floors are measured in the same run: what a copy moves, and what a large product multiplies.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import genesis
from benchmarks import functions, training
from benchmarks.measure import Bar, Result, Settings, compare
from benchmarks.networks import Network, networks
from benchmarks.peers import compiled, eager, finish, jax, jitted, torch
from benchmarks.session import parser, report
from genesis.runtime import cuda

__all__ = ["floors", "main"]

ELEMENTWISE = ("silu(a * b + c)", "tanh(a) * exp(-b * b)", "gelu")
ROWS = ("softmax", "layer_norm", "rms_norm")
COPY_SHARE = 0.85  # of the bandwidth of a copy, that an elementwise chain should reach


class Floors(NamedTuple):
    """What the GPU does at best: bytes a second by a copy, float32 operations a second by a product."""

    bandwidth: float
    flops: float


def main() -> int:
    options = parser(__doc__, "out/gpu.json").parse_args()
    if reason := cuda.reason_for_none() or ("kernels are simulated here" if cuda.SIMULATED else ""):
        print(f"there is no GPU to measure: {reason}; `python -m genesis doctor` tells more", file=sys.stderr)
        return 3
    machine = {"GPU": cuda.memory_of(0).gpu.name}
    machine |= {library.__name__: library.__version__ for library in (genesis, torch, jax) if library is not None}
    report(run(Settings(options.quick, options.rounds, "cuda")), machine, options)
    return 0


def run(settings: Settings) -> Iterator[Result]:
    """The floors, then every function, then every training step."""
    best, results = floors(settings)
    yield from results
    for case in functions.CASES:
        yield _function(case, settings, best)
    for network in networks(settings):
        yield _training(network, settings, best)


def floors(settings: Settings) -> tuple[Floors, list[Result]]:
    """The floors, and the comparisons that they are the best of."""
    count, side = settings.size(1 << 26, 1 << 12), settings.size(4096, 64)
    copy = _contested(f"copy of {count:,} float32", _both(lambda x: x.clone(), (count,), settings), settings)
    product = _contested(f"product of {side} x {side} float32", _both(lambda x: x @ x, (side, side), settings), settings)
    best = Floors(8 * count / min(copy.medians.values()), 2 * side**3 / min(product.medians.values()))
    copy.facts["bandwidth"] = f"{best.bandwidth / 1e9:.0f} GB/s"
    product.facts["peak"] = f"{best.flops / 1e12:.2f} TFLOP/s"
    for result in (copy, product):
        result.no_slower_than("torch eager")
    return best, [copy, product]


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


def _contested(title: str, builders: dict[str, Callable[[], Callable[[], Any]]], settings: Settings) -> Result:
    """The contestants in turn; each call ends when the GPU is done, for which JAX's wait by themselves."""
    waits = {"genesis": genesis.synchronize, "torch": lambda: torch.cuda.synchronize()}
    guards = {"torch eager": eager, "torch.compile": compiled, "jax.jit": jitted}

    def made(name: str) -> Callable[[], Any] | str:
        library = name.replace(".", " ").split()[0]
        wait = waits.get(library, int) if settings.device != "cpu" else int
        return guards.get(name, lambda build: build())(lambda: _then(builders[name](), wait))

    return compare(title, {name: made(name) for name in builders}, settings)


def _function(case: functions.Case, settings: Settings, best: Floors) -> Result:
    """A function of 64 million numbers, beside what a copy of its bytes would take."""
    title = case.title + (", value and gradients" if case.gradient else "")
    result = _contested(title, functions.contestants(case, settings), settings)
    if not case.gradient:
        arrays = functions.arrays_of(case, settings)
        returned = case.shared(genesis, genesis.nn.functional, *[genesis.tensor(a, device=settings.device) for a in arrays])
        values = returned if isinstance(returned, tuple) else (returned,)
        floor = (sum(a.nbytes for a in arrays) + sum(y.numel() * y.element_size() for y in values)) / best.bandwidth
        share = floor / result.medians["genesis compiled"]
        result.facts["floor of its bytes"] = f"{floor * 1e6:.1f} us, of which genesis compiled reaches {share:.2f}"
        if case.title in ELEMENTWISE:
            result.bars.append(Bar(f"share of a copy's bandwidth, at least {COPY_SHARE}", share, share >= COPY_SHARE))
    if case.title in ROWS:
        result.no_slower_than("torch.compile")
    return result


def _training(network: Network, settings: Settings, best: Floors) -> Result:
    """A training step, beside what its products would take at the rate of a large one."""
    builders = training.contestants(network, settings.device)
    result = _contested(f"training step, {network.title}", builders, settings)
    if torch is not None:
        with importlib.import_module("torch.utils.flop_counter").FlopCounterMode(display=False) as counter:
            builders["torch eager"]()()
        result.facts["floor of its products"] = f"{1e6 * counter.get_total_flops() / best.flops:.1f} us"
    if "torch.compile" in result.medians:
        ratio = result.medians["genesis compiled"] / result.medians["torch.compile"]
        result.bars.append(Bar("compiled / torch.compile, at most 1", ratio, ratio <= 1))
    return result


if __name__ == "__main__":
    sys.exit(main())
