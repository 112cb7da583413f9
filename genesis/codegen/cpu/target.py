"""The CPU as a target of lowering."""

from __future__ import annotations

from genesis.codegen.cpu.product.interface import VECTORS
from genesis.codegen.cpu.tiling import multiplies_pairs, sum_registers, vector_bytes
from genesis.lower.target import Target


def target(threads: int, planned_threads: int, *_: object) -> Target:
    """This host with so many threads; see `codegen.backend`."""
    return Target(threads, strip=VECTORS * vector_bytes(), sums=sum_registers(), pairs=multiplies_pairs(),
                  planned_threads=planned_threads)
