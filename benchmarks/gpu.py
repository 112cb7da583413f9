"""`python -m benchmarks.gpu`: training steps and functions on a GPU, beside torch and JAX and the machine's own floors.

The floors are measured in the same run: what a copy moves, and what a large product multiplies.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import genesis
from benchmarks import functions, training
from benchmarks.floors import Floors, contested, floors
from benchmarks.measure import Bar, Result, Settings
from benchmarks.networks import Network, networks
from benchmarks.peers import jax, torch
from benchmarks.session import parser, report
from genesis.runtime import cuda

__all__ = ["main"]

ELEMENTWISE = ("silu(a * b + c)", "tanh(a) * exp(-b * b)", "gelu")
ROWS = ("softmax", "layer_norm", "rms_norm")
COPY_SHARE = 0.85  # of the bandwidth of a copy, that an elementwise chain should reach


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


def _function(case: functions.Case, settings: Settings, best: Floors) -> Result:
    """A function of 64 million numbers, beside what a copy of its bytes would take."""
    title = case.title + (", value and gradients" if case.gradient else "")
    result = contested(title, functions.contestants(case, settings), settings)
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
    result = contested(f"training step, {network.title}", builders, settings)
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
