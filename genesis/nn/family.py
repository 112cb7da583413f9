"""Families of layers that differ only in their number of axes and share a docstring."""

from __future__ import annotations

from typing import ClassVar

from genesis.ir.annotations import AnyFunction
from genesis.nn.layer import looked_up
from genesis.nn.module import Module

_EXTENTS = {1: "l", 2: "h, w", 3: "d, h, w"}


class Family(Module):
    """The base of families: `class Conv2d(_Conv, axes=2, function=functional.conv2d)` is the member for two axes.

    A member without a docstring gets its base's. These are filled in: the member's `{name}`, the `{first}` line of the family,
    the `{function}` of `nn.functional`, `{axes}` in words, `{extents}` as letters, and `{8}`: an 8 per axis.
    """

    function: ClassVar[AnyFunction]
    _axes: ClassVar[int] = 0
    _template: ClassVar[str] = ""

    def __init_subclass__(cls, axes: int = 0, function: AnyFunction | None = None) -> None:
        if function is not None:
            cls.function = function
        super().__init_subclass__()  # a Layer generates its methods here
        if function is not None:
            cls.function = staticmethod(looked_up(cls, function))
        if axes:
            cls._axes = axes
            if cls.__doc__ is None:
                cls.__doc__ = _filled(cls, cls._template)
        elif not cls._axes and cls.__doc__ is not None:
            cls._template = cls.__doc__
            cls.__doc__ = cls.__doc__.partition(">>>")[0]  # an example with braces does not run


def _filled(cls: type[Family], template: str) -> str:
    axes, name = cls._axes, cls.__name__
    return template.format(
        *[", ".join([str(extent)] * axes) for extent in range(17)], name=name, first=f"{name[:-2]}1d", extents=_EXTENTS[axes],
        function=getattr(getattr(cls, "function", None), "__name__", ""), axes="axis" if axes == 1 else f"{axes} axes")
