"""Methods generated from class declarations as source, so that they are as fast as handwritten ones; made functions' names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from inspect import Parameter
from types import FunctionType
from typing import Any

from genesis.ir.annotations import AnyFunction


def made_method(cls: type, name: str, parameters: Iterable[str], body: Iterable[str], **names: object) -> AnyFunction:
    """A method of the class's module; its source may use `names`.

    Its frames show this file, so compiled calls treat them as the library's.
    """
    source = f"def make({', '.join(names)}):\n def {name}({', '.join(parameters)}): {'; '.join(body)}\n return {name}"
    local: dict[str, AnyFunction] = {}
    line = sys._getframe().f_lineno + 1
    exec(compile("\n" * (line - 2) + source, __file__, "exec"), vars(sys.modules[cls.__module__]), local)
    made: AnyFunction = local["make"](**names)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


def made_initializer(cls: type, settings: Iterable[Parameter], body: Iterable[str], **names: object) -> AnyFunction:
    """An `__init__` with these parameters, those by keyword alone last."""
    listed = [*settings]
    by_name = [setting for setting in listed if setting.kind is Parameter.KEYWORD_ONLY]
    others = [setting for setting in listed if setting.kind is not Parameter.KEYWORD_ONLY]
    parameters = ["self", *[s.name for s in others], *["*"] * bool(by_name), *[s.name for s in by_name]]
    made: Any = made_method(cls, "__init__", parameters, body, **names)
    made.__defaults__ = tuple([s.default for s in others if s.default is not Parameter.empty])
    made.__kwdefaults__ = {s.name: s.default for s in by_name if s.default is not Parameter.empty} or None
    made.__annotations__ = {s.name: s.annotation for s in listed} | {"return": "None"}
    return made  # type: ignore[no-any-return]


def name_by_place(members: Mapping[str, object], module: str, owner: str = "") -> None:
    """Name functions, also those of properties, after the place where they stand, unless pickles find them by their names.

    >>> class Point:
    ...     norm = lambda self: abs(self.x)
    >>> name_by_place(vars(Point), __name__, "Point.")
    >>> Point.norm.__qualname__
    'Point.norm'
    """
    for name, member in members.items():
        function = getattr(member, "fget", member)
        if isinstance(function, FunctionType) and not _is_found(function):
            function.__module__, function.__name__, function.__qualname__ = module, name, owner + name


def _is_found(function: FunctionType) -> bool:
    """Whether a function stands at its name; one of a module that makes its functions on demand does."""
    found: object = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        known = getattr(found, "__dict__", {})
        if part not in known:
            return "__getattr__" in known and part.isidentifier()
        found = known[part]
    return found is function
