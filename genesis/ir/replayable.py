"""Marks of functions that `genesis.compile` may replay: all they do follows from what guards compare, or is recorded.

What such a function returns depends on its arguments, on tensors, on what a guard compares (modes, attributes by the names in
the caller's code) and on what hooks tell the recorder (see `tracing/recording_hooks.py`); it has no other effect. Code of the
user's that calls another function of the library is not replayed.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import CodeType, FunctionType
from typing import TypeVar

T = TypeVar("T")

_marked: dict[int, CodeType] = {}  # id -> the code, which keeps it: two equal code objects are not one mark


class Described:
    """A base of objects of the library that are what their attributes say: guards compare all of these."""

    __slots__ = ()


def replayable_module(module: str, but: Collection[str] = ()) -> None:
    """Mark all functions and methods that the module of that name defines, `but` some."""
    for name, member in vars(sys.modules[module]).items():
        owner = member.fget if isinstance(member, property) else member
        if name not in but and getattr(owner, "__module__", None) == module:
            replayable(member, but)


def replayable(thing: T, but: Collection[str] = ()) -> T:
    """Mark a function, or all methods of a class `but` some; returns `thing`.

    >>> @replayable
    ... def double(x):
    ...     return x * 2
    >>> is_replayable(double.__code__), is_replayable((lambda x: x).__code__)
    (True, False)
    """
    if isinstance(thing, FunctionType) and not vars(thing):  # most are
        _mark(thing.__code__)
    elif isinstance(thing, type):
        for name, member in vars(thing).items():
            if name not in but and not isinstance(member, type):
                replayable(member)
    elif isinstance(thing, property):
        for accessor in (thing.fget, thing.fset, thing.fdel):
            replayable(accessor)
    elif isinstance(thing, classmethod | staticmethod):
        replayable(thing.__func__)
    else:
        for function in (thing, getattr(thing, "__wrapped__", None)):  # decorated, and what was
            if isinstance(function, FunctionType):
                _mark(function.__code__)
    return thing


def _mark(code: CodeType) -> None:
    _marked[id(code)] = code
    for constant in code.co_consts:  # the functions that it makes
        if isinstance(constant, CodeType):
            _mark(constant)


def is_replayable(code: CodeType) -> bool:
    """Whether a function of this code has been marked."""
    return id(code) in _marked
