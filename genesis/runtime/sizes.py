"""Numbers of bytes as people read them."""

from __future__ import annotations

__all__ = ["readable"]


def readable(nbytes: int) -> str:
    """A number of bytes, in the unit that fits it.

    >>> readable(640), readable(3 << 20)
    ('640 B', '3.0 MiB')
    """
    size, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
