"""What lowering has to know of the machine that a schedule is for."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Target"]


class Target(NamedTuple):
    """The number of threads that share a program's work; whether calls that share leading axes run tile by tile, so that what
    lies between them stays in a cache; whether vectors take apart the few neighbours that they step over; whether products take
    operands that lie any way, windows too, and of 16 bits; whether a pass over rows sums columns too, kept beside it.
    """

    threads: int
    panels: bool = True
    taps: bool = True
    strided: bool = False
    crossing: bool = True
