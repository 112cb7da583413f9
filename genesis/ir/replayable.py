"""Marks functions that `genesis.compile` may replay: all their effects follow from guarded values or are recorded.

Such a function's result depends only on its arguments, on tensors, on guarded values (modes, attributes by the names in the
caller's code) and on values reported by hooks (see `tracing/recording_hooks.py`); it has no other effects. User code that calls
other functions of the library is not replayed.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import CodeType, FunctionType
from typing import TypeVar

T = TypeVar("T")

_marked: dict[int, CodeType] = {}  # id -> the code (kept alive): by identity, because code objects may be equal
_modules: set[str] = set()  # whose functions are marked


class Described:
    """A base of library objects that are defined by their attributes: guards compare all of these."""

    __slots__ = ()


def replayable_module(module: str, but: Collection[str] = ()) -> None:
    """Mark all functions and methods of a module, except those in `but`."""
    _modules.add(module)
    for name, member in vars(sys.modules[module]).items():
        owner = member.fget if isinstance(member, property) else member
        if name not in but and getattr(owner, "__module__", None) == module:
            replayable(member, but)


def replayable_modules(package: str, names: str) -> None:
    """Mark the modules of these names of a package, which it has imported."""
    for name in names.split():
        replayable_module(f"{package}.{name}")


def replayable_package(package: str, but: Collection[str] = ()) -> None:
    """Mark the modules that a package has imported, except those in `but`, and those that mark themselves with exceptions."""
    excluded = tuple([f"{package}.{name}." for name in but])
    for module in list(sys.modules):  # at once: other threads may import
        if f"{module}.".startswith(f"{package}.") and module not in _modules and not f"{module}.".startswith(excluded):
            replayable_module(module)


def replayable(thing: T, but: Collection[str] = ()) -> T:
    """Mark a function, or all methods of a class except those in `but`; returns `thing`.

    >>> @replayable
    ... def double(x):
    ...     return x * 2
    >>> is_replayable(double.__code__), is_replayable((lambda x: x).__code__)
    (True, False)
    """
    if isinstance(thing, FunctionType) and not vars(thing):  # the usual case
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
        for function in (thing, getattr(thing, "__wrapped__", None)):  # a decorated function and the original
            if isinstance(function, FunctionType):
                _mark(function.__code__)
    return thing


def _mark(code: CodeType) -> None:
    _marked[id(code)] = code
    for constant in code.co_consts:  # the functions that it makes
        if isinstance(constant, CodeType):
            _mark(constant)


def is_replayable(code: CodeType) -> bool:
    """Whether the function of this code is marked."""
    return id(code) in _marked
