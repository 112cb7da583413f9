"""Lazy imports of a package's names (PEP 562): programs load only the parts of the library that they use."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from genesis.runtime.deferred import import_whole


class LazyNames:
    """A package's `__getattr__`: imports a name at its first use and makes it a normal attribute.

    `modules` maps modules to names; names under the package's own name are submodules.

    >>> names = LazyNames("genesis", {"genesis": "nn optim", "genesis.capture": "compile"})
    >>> names("compile") is genesis.compile, "compile" in names, "add" in names
    (True, True, False)
    """

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self._package = package
        self._homes = {name: module for module, names in modules.items() for name in names.split()}

    def __contains__(self, name: str) -> bool:
        return name in self._homes

    def __call__(self, name: str) -> object:
        """The value. Raises AttributeError for a name that is not listed."""
        home = self._homes.get(name)
        if home is None:
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
        value = import_whole(f"{home}.{name}") if home == self._package else getattr(import_whole(home), name)
        setattr(sys.modules[self._package], name, value)
        return value
