"""Whether ten thousand training steps leave anything behind, and how much memory a transformer's step takes at its peak."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import genesis
from benchmarks.measure import Bar, Result, Settings, resident_bytes
from genesis import nn, optim

__all__ = ["run"]

ALLOWED = 2 << 20  # bytes of growth that pass for noise


def run(settings: Settings) -> list[Result]:
    """Growth in this process; peaks in processes of their own."""
    return [_growth(settings), _peaks(settings)]


def _growth(settings: Settings) -> Result:
    """Resident memory after a tenth of the steps, and after all."""
    steps = settings.size(10_000, 50)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
    optimizer = optim.Adam(model.parameters())
    early = 0
    for number in range(steps):
        x, y = genesis.randn(32, 16), genesis.randint(4, (32,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        loss.item()
        if number == steps // 10:
            early = resident_bytes()
    growth = resident_bytes() - early
    result = Result(f"{steps:,} training steps", facts={"resident": f"{resident_bytes() / 2**20:.0f} MiB"})
    result.bars.append(Bar(f"MiB of growth, at most {ALLOWED >> 20}", growth / 2**20, growth <= ALLOWED))
    return result


def _peaks(settings: Settings) -> Result:
    """What five steps of the transformer add to a process at their peak: weights, moments, gradients, activations."""
    result = Result("peak memory of the GPT step, MiB")
    peaks: dict[str, float] = {}
    for contestant in ("genesis", "genesis compiled", "torch eager"):
        command = [sys.executable, "-m", "benchmarks.memory", contestant, *["--quick"] * settings.quick]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            result.absent[contestant] = run.stderr.splitlines()[-1]
        else:
            peaks[contestant] = json.loads(run.stdout)
            result.facts[contestant] = f"{peaks[contestant]:.0f}"
    for contestant in ("genesis", "genesis compiled"):
        if contestant in peaks and "torch eager" in peaks:
            ratio = peaks[contestant] / peaks["torch eager"]
            result.bars.append(Bar(f"{contestant} / torch eager, at most 1", ratio, ratio <= 1))
    return result


def _peak(contestant: str, settings: Settings) -> float:
    """MiB that the steps of one contestant add to this process at their peak."""
    from benchmarks.networks import networks
    from benchmarks.training import contestants

    transformer = list(networks(settings))[-1]
    steps = contestants(transformer)[contestant]
    (genesis.ones(1) + 1).sum().item()  # loads the compiler, which is the process' own as what imports load
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before = resident_bytes()
    step = steps()
    for _ in range(5):
        step()
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert peak is not None
    return int(peak.group(1)) / 1024 - before / 2**20


if __name__ == "__main__":
    print(json.dumps(_peak(sys.argv[1], Settings("--quick" in sys.argv))))
