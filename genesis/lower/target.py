"""The properties of a machine that lowering depends on, its speeds among them: what programs choose by them moves no step of
a network by more than its noise for speeds twice as high or half, so nobody measures them."""

from __future__ import annotations

from typing import NamedTuple


class Speeds(NamedTuple):
    """A machine's speeds per second, and its latencies.

    Attributes:
        memory: bytes that all threads together move to and from memory.
        cache: bytes that one thread moves to and from its cache.
        operations: simple operations on elements of float32 (multiplications, say) of one thread.
        products: floating-point operations of one thread in matrix products.
        launch: seconds of an empty stage.
        team: seconds more for a stage shared by the team.
        cached: bytes up to which a value is still in cache when it is read again.
    """

    memory: float
    cache: float
    operations: float
    products: float
    launch: float
    team: float
    cached: float


# 50e9 operations are 8 lanes, twice a cycle, at 3 GHz. With 20e9, GELU's exponential was kept, not recomputed: forward 0.91 ms
# instead of 0.60, backward 1.1 instead of 0.65.
HOST = Speeds(memory=40e9, cache=20e9, operations=50e9, products=80e9, launch=2e-7, team=2e-6, cached=4e6)


class SequentialTiles(NamedTuple):
    """Limits of loops whose tiles run in sequence, each on the whole machine."""

    nbytes: int  # between the calls of a tile, at most
    filling: int  # multiplications from which a product fills the machine
    calls: int  # of a loop, at most: each is a launch


class Target(NamedTuple):
    """The machine that a schedule is for."""

    threads: int  # that share a program's work
    sequential_tiles: SequentialTiles | None = None  # None: threads take tiles in parallel, sized to their caches
    unroll: bool = True  # whether strided vectors are deinterleaved from wide loads, and tiles transposed
    strided: bool = False  # whether products take operands of any strides, and of 16 bits
    crossing: bool = True  # whether a pass over rows may accumulate column sums
    native: bool = True  # whether host operations that have a kernel run it
    speeds: Speeds = HOST  # of a thread of the host, or of another machine as a whole
    strip: int = 0  # bytes of a product's columns that it packs side by side; 0: unknown
    sums: int = 24  # vector registers that hold a product's sums
    pairs: bool = False  # whether products take bfloat16 operands, two terms at a time
    planned_threads: int = 0  # for which decisions that change rounding are made; 0: `threads`

    @property
    def planned(self) -> int:
        """The number of threads that fusion and the division of sums assume."""
        return self.planned_threads or self.threads

    def at_work(self, threads: int) -> Speeds:
        """The speeds of `threads` of the host's threads together; or of another machine as a whole."""
        one = self.speeds
        if one != HOST:
            return one
        return one._replace(cache=one.cache * threads, operations=one.operations * threads, products=one.products * threads)
