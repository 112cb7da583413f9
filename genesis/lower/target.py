"""What lowering has to know of the machine that a schedule is for."""

from __future__ import annotations

from typing import NamedTuple

from genesis.runtime.speeds import Speeds, speeds


class SequentialTiles(NamedTuple):
    """Limits of loops whose tiles follow one another, each computed by the whole machine."""

    nbytes: int  # between the calls of a tile, at most
    filling: int  # multiplications from which on a product fills the machine
    calls: int  # that a loop comes to, at most: each is a launch


class Target(NamedTuple):
    """The machine that a schedule is for."""

    threads: int  # that share a program's work
    sequential_tiles: SequentialTiles | None = None  # None: each thread has tiles of its own, which fit its cache
    unroll: bool = True  # whether vectors take apart the few neighbours that they step over, and go through tiles across them
    strided: bool = False  # whether products take operands of any strides, windows too, and of 16 bits
    crossing: bool = True  # whether a pass over rows sums columns too, kept beside it
    native: bool = True  # whether host operations that have a kernel run it
    speeds: Speeds | None = None  # if it is not this host
    strip: int = 0  # bytes of a product's columns that it packs side by side; 0: unknown
    planned_threads: int = 0  # that what changes roundings is decided for; 0: as many as there are

    @property
    def planned(self) -> int:
        """The threads that fusion and the division of sums are decided for."""
        return self.planned_threads or self.threads

    def at_work(self, threads: int) -> Speeds:
        """The speeds of so many of the host's threads together; or of all of another machine."""
        if self.speeds is not None:
            return self.speeds
        one = speeds()
        return one._replace(cache=one.cache * threads, operations=one.operations * threads, products=one.products * threads)
