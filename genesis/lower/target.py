"""What lowering has to know of the machine that a schedule is for."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Target", "Turns"]


class Turns(NamedTuple):
    """Tiles of a loop that come in turn, each computed by the whole machine: the bytes that lie between the calls of one, at
    most; the multiplications from which on a product fills the machine; the most calls that a loop comes to.
    """

    nbytes: int
    filling: int
    calls: int


class Target(NamedTuple):
    """The number of threads that share a program's work; how tiles of loops come in turn (None: each thread has tiles of its
    own, which fit its cache); whether vectors take apart the few neighbours that they step over; whether products take
    operands that lie any way, windows too, and of 16 bits; whether a pass over rows sums columns too, kept beside it.
    """

    threads: int
    turns: Turns | None = None
    taps: bool = True
    strided: bool = False
    crossing: bool = True
