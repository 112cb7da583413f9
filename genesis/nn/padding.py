"""Padding layers: zeros, a number, or the signal's own elements around its last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from genesis.ir.errors import ArgumentError
from genesis.nn import functional
from genesis.nn.layer import Family
from genesis.tensor.handle import Tensor

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d",
    "ZeroPad2d", "ZeroPad3d",
]

PerSide = int | Sequence[int]

_AROUND = {
    "constant": "Zeros around", "reflect": "The elements in reverse, without the one at the end, around",
    "replicate": "The element at the end around", "circular": "The elements from the other end around",
}


class _Pad(Family):
    """{around} the last {axes}.

    `padding` is an integer, or two of them for each axis, the last axis first.

    >>> genesis.nn.{name}(1)(genesis.ones(1, 3, {3})).shape
    (1, 3, {5})
    """

    _mode = "constant"
    _printed: ClassVar[tuple[str, ...]] = ("*padding",)
    value: float | None = None

    def __init_subclass__(cls, axes: int = 0, mode: str = "constant") -> None:
        cls._mode, cls._template = mode, cls._template.replace("{around}", _AROUND[mode])
        super().__init_subclass__(axes)

    def __init__(self, padding: PerSide) -> None:
        super().__init__()
        sides = 2 * self._axes
        self.padding = (padding,) * sides if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != sides:
            raise ArgumentError(f"{type(self).__name__}: padding is {padding}; want an integer or {sides} of them")

    def forward(self, input: Tensor) -> Tensor:
        """See `nn.functional.pad`. Raises ValueError for another number of axes in modes that repeat elements."""
        if self._mode != "constant" and input.ndim not in (self._axes + 1, self._axes + 2):
            raise ArgumentError(
                f"{type(self).__name__}: input has shape {input.shape}; want {self._axes + 1} or {self._axes + 2} axes")
        return functional.pad(input, self.padding, self._mode, self.value or None)


class _ZeroPad(_Pad):
    value = 0.0


class _ConstantPad(_Pad):
    """`value` around the last {axes}.

    `padding` is an integer, or two of them for each axis, the last axis first.

    >>> genesis.nn.{name}(1, 7.0)(genesis.ones(1, 3, {3})).shape
    (1, 3, {5})
    """

    _printed = "padding", "value"

    def __init__(self, padding: PerSide, value: float) -> None:
        super().__init__(padding)
        self.value = value


class ZeroPad1d(_ZeroPad, axes=1): ...
class ZeroPad2d(_ZeroPad, axes=2): ...
class ZeroPad3d(_ZeroPad, axes=3): ...
class ConstantPad1d(_ConstantPad, axes=1): ...
class ConstantPad2d(_ConstantPad, axes=2): ...
class ConstantPad3d(_ConstantPad, axes=3): ...
class ReflectionPad1d(_Pad, axes=1, mode="reflect"): ...
class ReflectionPad2d(_Pad, axes=2, mode="reflect"): ...
class ReflectionPad3d(_Pad, axes=3, mode="reflect"): ...
class ReplicationPad1d(_Pad, axes=1, mode="replicate"): ...
class ReplicationPad2d(_Pad, axes=2, mode="replicate"): ...
class ReplicationPad3d(_Pad, axes=3, mode="replicate"): ...
class CircularPad1d(_Pad, axes=1, mode="circular"): ...
class CircularPad2d(_Pad, axes=2, mode="circular"): ...
class CircularPad3d(_Pad, axes=3, mode="circular"): ...
