"""What is known of the device without asking it."""

from __future__ import annotations

import os

__all__ = ["LARGE", "SIMULATED", "THREADS", "WARP"]

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"  # kernels run as Python, by numba's simulator
WARP = 4 if SIMULATED else 32  # threads that run in step; few where each is a thread of Python
THREADS = 8 if SIMULATED else 256  # of a block
LARGE = 16 if SIMULATED else 512  # of a block, where there are few blocks and much for each to do
