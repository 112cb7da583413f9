"""The host's processor: vector registers and caches."""

from __future__ import annotations

import functools
from pathlib import Path

from genesis.runtime.machine_code import target

__all__ = ["cache_bytes", "vector_bytes"]


@functools.cache
def vector_bytes() -> int:
    """The size of a vector register."""
    _, _, features = target()
    enabled = features.split(",")
    return 64 if "+avx512f" in enabled else 32 if "+avx" in enabled else 16


@functools.cache
def cache_bytes() -> int:
    """The size of the last level of caches, 32 MiB where the system does not tell."""
    found = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    try:
        sizes = [int(path.read_text(encoding="ascii").strip().removesuffix("K")) for path in found]
    except (OSError, ValueError):
        sizes = []
    return max(sizes, default=32 << 10) << 10
