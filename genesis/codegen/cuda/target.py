"""The sizes of warps and blocks, known without asking a device."""

from __future__ import annotations

from genesis.runtime.cuda import SIMULATED

__all__ = ["LARGE", "SIMULATED", "THREADS", "WARP"]

WARP = 4 if SIMULATED else 32  # threads that run in step; few where each is a thread of Python
THREADS = 8 if SIMULATED else 256  # of a block
LARGE = 16 if SIMULATED else 512  # of a block, where there are few blocks and much for each to do
