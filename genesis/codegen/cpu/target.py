"""What the processor offers."""

from __future__ import annotations

import functools

from genesis.runtime.machine_code import target

__all__ = ["vector_bytes"]


@functools.cache
def vector_bytes() -> int:
    """The size of a vector register."""
    _, _, features = target()
    enabled = features.split(",")
    return 64 if "+avx512f" in enabled else 32 if "+avx" in enabled else 16
