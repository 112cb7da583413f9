"""Size: a shape with PyTorch's methods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex

from genesis.ir.library import Library
from genesis.ir.shapes import numel


class Size(tuple[int, ...]):
    """A shape: a tuple of extents that counts its elements. Raises TypeError for extents that are no ints.

    >>> size = genesis.Size([2, 3])
    >>> size, size.numel(), size[1:], size + (4,), size == (2, 3)
    (genesis.Size([2, 3]), 6, genesis.Size([3]), genesis.Size([2, 3, 4]), True)
    """

    __slots__ = ()

    def __new__(cls, extents: Iterable[SupportsIndex] = ()) -> Size:
        extents = tuple(extents)
        try:
            return super().__new__(cls, [extent.__index__() for extent in extents])
        except AttributeError:
            raise TypeError(f"Size: extents must be ints, got {extents}") from None

    def numel(self) -> int:
        """The product of the extents."""
        return numel(self)

    def __getitem__(self, index: Any) -> Any:
        chosen = super().__getitem__(index)
        return Size(chosen) if isinstance(index, slice) else chosen

    def __add__(self, other: Any) -> Any:
        return Size((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Size:
        return Size(super().__mul__(count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{Library.name}.Size([{', '.join(map(str, self))}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)
