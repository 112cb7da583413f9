"""What the first training step of a process costs: with an empty cache directory, and in the next process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.measure import Bar, Result, Settings

__all__ = ["run"]

# Model, optimizer, data and one whole step, from when everything is imported. Who does not take part is not imported.
FIRST = """
import json, sys, time
contestant, number, quick = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
sys.modules.update(dict.fromkeys({"torch", "jax"} - set(contestant.replace(".", " ").split())))
import genesis
from benchmarks.measure import Settings
from benchmarks.networks import networks
from benchmarks.training import contestants
network = list(networks(Settings(quick)))[number]
began = time.perf_counter()
step = contestants(network)[contestant]()
step()
first = time.perf_counter() - began
began = time.perf_counter()
step()
second = time.perf_counter() - began
print(json.dumps({"first": first, "second": second, "numba": "numba" in sys.modules, **genesis.debug.stats()}))
"""

LIMITS = {1: ("MLP", 1.0, 0.1), 3: ("GPT", 3.0, 0.5)}  # by number of the network: its name, seconds cold, seconds warm


def run(settings: Settings) -> list[Result]:
    """The classifier and the transformer, each contestant in processes of its own, once."""
    return [_first_calls(number, settings) for number in LIMITS]


def _first_calls(number: int, settings: Settings) -> Result:
    name, cold_limit, warm_limit = LIMITS[number]
    result = Result(f"first step of a process, {name}")
    for ours in ("genesis", "genesis compiled"):
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (_in_process(ours, number, settings, cache) for _ in range(2))
        result.medians[ours] = warm["first"]
        result.facts[ours] = (
            f"empty cache {cold['first']:.2f} s, {cold['kernels_compiled']} kernels compiled; "
            f"then {warm['first']:.2f} s; its second step {warm['second']:.3f} s"
        )
        result.bars += [
            Bar(f"{ours}: seconds, empty cache, at most {cold_limit}", cold["first"], cold["first"] <= cold_limit),
            Bar(f"{ours}: seconds, next process, at most {warm_limit}", warm["first"], warm["first"] <= warm_limit),
            Bar(f"{ours}: numba imported in the next process, 0 for no", warm["numba"], not warm["numba"]),
        ]
    for other in ("torch eager", "torch.compile", "jax.jit"):
        try:
            with tempfile.TemporaryDirectory() as cache:
                result.medians[other] = _in_process(other, number, settings, cache)["first"]
        except subprocess.CalledProcessError as error:
            result.absent[other] = error.stderr.strip().splitlines()[-1]
    return result


def _in_process(contestant: str, number: int, settings: Settings, cache: str) -> Any:
    run = subprocess.run(
        [sys.executable, "-c", FIRST, contestant, str(number), str(int(settings.quick))], capture_output=True, text=True,
        check=True, env=os.environ | {"GENESIS_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache + "/inductor"},
    )
    return json.loads(run.stdout.splitlines()[-1])
