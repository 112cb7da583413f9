"""Marks functions that `genesis.compile` may replay: all their effects follow from guarded values or are recorded.

Such a function's result depends only on its arguments, on tensors, on guarded values (modes, attributes by the names in the
caller's code) and on values reported by hooks (see `tracing/recording_hooks.py`); it has no other effects. User code that calls
other functions of the library is not replayed.
"""

from __future__ import annotations

from types import CodeType, FunctionType
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
    if isinstance(thing, FunctionType) and not vars(thing):  # the usual case
        _mark(thing.__code__)
    elif isinstance(thing, type):
        for member in vars(thing).values():
            if not isinstance(member, type):
                replayable(member)
    elif isinstance(thing, property):
        for accessor in (thing.fget, thing.fset, thing.fdel):
            replayable(accessor)
    elif isinstance(thing, classmethod | staticmethod):
        replayable(thing.__func__)
    else:
        for function in (thing, getattr(thing, "__wrapped__", None)):  # a decorated function and the original
            if isinstance(function, FunctionType):
                _mark(function.__code__)
    return thing


def _mark(code: CodeType) -> None:
    _marked[id(code)] = code
    for constant in code.co_consts:  # the functions that it makes
        if isinstance(constant, CodeType):
            _mark(constant)


def is_marked(code: CodeType) -> bool:
    """Whether the function of this code is marked."""
    return id(code) in _marked
