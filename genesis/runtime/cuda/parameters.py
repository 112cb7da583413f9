"""The raw parameters of kernels: the bytes that the driver passes on."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence

__all__ = ["item_bytes", "raw_words"]

_ENDLESS = 1 << 40  # elements: the extent of an array of which only the address is known


def item_bytes(name: str) -> int:
    """The bytes of an element that a type's name speaks of: of `float32*` and `float32[]` 4, of `float32**` 8.

    >>> [item_bytes(name) for name in ("float32*", "uint8[]", "int64", "float32**")]
    [4, 1, 8, 8]
    """
    if name.endswith("**"):
        return 8
    return int("".join(c for c in name if c.isdigit())) // 8


def raw_words(types: Sequence[str], arguments: Sequence[float]) -> array[int]:
    """The arguments as words of eight bytes; an array, `float32[]`, is seven: (0, 0, items, bytes of one, address, items,
    bytes of one).

    >>> raw_words(("int64", "float64", "float32[]"), (-1, 1.0, 4096)).tolist()[1:4]
    [4607182418800017408, 0, 0]
    """
    words: list[int] = []
    for name, value in zip(types, arguments, strict=True):
        if name == "float64":
            words.append(int.from_bytes(struct.pack("=d", value), "little"))
        elif name.endswith("[]"):
            size = item_bytes(name)
            words += 0, 0, _ENDLESS, size, int(value), _ENDLESS, size
        else:
            words.append(int(value) & 0xFFFFFFFFFFFFFFFF)
    return array("Q", words)
