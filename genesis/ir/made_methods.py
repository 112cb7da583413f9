"""Methods generated from class declarations, as source, so that they are as fast as handwritten ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable

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
