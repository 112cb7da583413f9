"""The properties of a machine that lowering depends on."""

from __future__ import annotations

from typing import NamedTuple

from genesis.runtime.speeds import Speeds, speeds


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
    speeds: Speeds | None = None  # of another machine than this host
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
        if self.speeds is not None:
            return self.speeds
        one = speeds()
        return one._replace(cache=one.cache * threads, operations=one.operations * threads, products=one.products * threads)
