"""Whether ten thousand training steps leave anything behind."""

from __future__ import annotations

import genesis
from benchmarks.measure import Bar, Result, Settings, resident_bytes
from genesis import nn, optim

__all__ = ["run"]

ALLOWED = 2 << 20  # bytes of growth that pass for noise


def run(settings: Settings) -> list[Result]:
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
    return [result]
