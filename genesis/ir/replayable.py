"""Marks functions that `genesis.compile` may replay: all their effects follow from guarded values or are recorded.

Such a function's result depends only on its arguments, on tensors, on guarded values (modes, attributes by the names in the
caller's code) and on values reported by hooks (see `tracing/recording_hooks.py`); it has no other effects. User code that calls
other functions of the library is not replayed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import TypeVar

T = TypeVar("T")

_marked: dict[int, CodeType] = {}  # id -> the code (kept alive): by identity, because code objects may be equal


class Described:
    """A base of library objects that are defined by their attributes: guards compare all of these."""

    __slots__ = ()


def replayable(thing: T) -> T:
    """Mark a function, or all methods of a class; returns `thing`.

    >>> @replayable
    ... def double(x):
    ...     return x * 2
    >>> is_marked(double.__code__), is_marked((lambda x: x).__code__)
    (True, False)
    """
    for function in functions_of(thing):
        mark(function.__code__)
    return thing


def functions_of(thing: object, but: Collection[str] = ()) -> Iterator[FunctionType]:
    """A function and what it wraps, the functions of a property, or those of a class, except the members in `but`."""
    if isinstance(thing, type):
        for name, member in [*vars(thing).items()]:
            if name not in but and not isinstance(member, type):
                yield from functions_of(member)
    elif isinstance(thing, property):
        for accessor in (thing.fget, thing.fset, thing.fdel):
            yield from functions_of(accessor)
    elif isinstance(thing, classmethod | staticmethod):
        yield from functions_of(thing.__func__)
    elif not isinstance(thing, ModuleType):
        for function in (thing, getattr(thing, "__wrapped__", None)):  # a decorated function and the original
            if isinstance(function, FunctionType):
                yield function


def mark(code: CodeType) -> None:
    """Mark the code of a function, and that of the functions that it makes."""
    _marked[id(code)] = code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            mark(constant)


def is_marked(code: CodeType) -> bool:
    """Whether the function of this code is marked."""
    return id(code) in _marked
