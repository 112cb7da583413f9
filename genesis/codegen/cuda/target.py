"""What is known of GPUs without asking one: the sizes of warps and blocks, and speeds for the cost model.

The speeds are round numbers of data-centre GPUs from NVIDIA's data sheets, by compute capability: bytes a second of memory,
float32 operations a second (a multiplication with an addition counts as two, TF32 aside), bytes of the second-level cache,
which is taken to be twice as fast as memory. Simple operations are half as many: few of a kernel's are such pairs.
"""

from __future__ import annotations

from genesis.lower.target import Speeds
from genesis.runtime.cuda import SIMULATED

WARP = 4 if SIMULATED else 32  # threads that run in step; few where each is a thread of Python
THREADS = 8 if SIMULATED else 256  # of a block
LARGE = 16 if SIMULATED else 512  # of a block, where there are few blocks and much for each to do


LAUNCH = 2e-6  # seconds from one kernel of a graph to the next


def _speeds(memory: float, flops: float, cache: float) -> Speeds:
    return Speeds(memory, 2 * memory, flops / 2, flops, launch=LAUNCH, team=0.0, cached=cache)


SPEEDS = {
    (7, 0): _speeds(0.9e12, 15.7e12, 6e6),  # V100
    (7, 5): _speeds(0.32e12, 8.1e12, 4e6),  # T4
    (8, 0): _speeds(2.0e12, 19.5e12, 40e6),  # A100
    (8, 6): _speeds(0.6e12, 31.2e12, 6e6),  # A10
    (8, 9): _speeds(0.86e12, 91.6e12, 96e6),  # L40S
    (9, 0): _speeds(3.35e12, 67e12, 50e6),  # H100; an H200's memory is faster by two fifths
    (10, 0): _speeds(8.0e12, 80e12, 126e6),  # B200
    (12, 0): _speeds(1.6e12, 120e12, 128e6),  # RTX PRO 6000
}


def speeds_of(capability: tuple[int, int]) -> Speeds:
    """The speeds of a GPU, by the newest generation that is not newer than it.

    >>> speeds_of((9, 0)).memory > speeds_of((8, 0)).memory
    True
    >>> speeds_of((8, 7)) == speeds_of((8, 6))
    True
    """
    return SPEEDS[max((known for known in SPEEDS if known <= capability), default=min(SPEEDS))]
