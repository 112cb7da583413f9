"""What lowering has to know of the machine that a schedule is for."""

from __future__ import annotations

from typing import NamedTuple

from genesis.runtime.speeds import Speeds, speeds

__all__ = ["SequentialTiles", "Target"]


class SequentialTiles(NamedTuple):
    """Tiles of a loop that come in turn, each computed by the whole machine: the bytes that lie between the calls of one, at
    most; the multiplications from which on a product fills the machine; the most calls that a loop comes to.
    """

    nbytes: int
    filling: int
    calls: int


class Target(NamedTuple):
    """The number of threads that share a program's work; how tiles of loops come in turn (None: each thread has tiles of its
    own, which fit its cache); whether vectors take apart the few neighbours that they step over; whether products take
    operands that lie any way, windows too, and of 16 bits; whether a pass over rows sums columns too, kept beside it; how
    fast the machine is, if it is not this host.
    """

    threads: int
    sequential_tiles: SequentialTiles | None = None
    unroll: bool = True
    strided: bool = False
    crossing: bool = True
    speeds: Speeds | None = None

    def at_work(self, threads: int) -> Speeds:
        """How fast so many of the host's threads are together; or all of another machine."""
        if self.speeds is not None:
            return self.speeds
        one = speeds()
        return one._replace(
            cache=one.cache * threads, operations=one.operations * threads, products=one.products * threads)
