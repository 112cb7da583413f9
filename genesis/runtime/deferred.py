"""Modules that are imported when they are first asked for: those that compile, and those that few processes need.

Functions of theirs are defined beside an import for type checkers, at the top of the file that calls them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import _bootstrap, import_module
from types import FrameType, ModuleType
from typing import Any

from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.profile_hook import unprofiled
from genesis.runtime.references import grow_old
from genesis.runtime.uninterrupted import uninterrupted

_importing = fork_safe_lock()  # a child forked by another thread would find half a module, and its lock held for ever
_LOCKING = _bootstrap._find_and_load.__code__  # type: ignore[attr-defined]  # holds the lock of a module that it imports


def import_whole(module: str) -> ModuleType:
    """The module, whose import no signal handler interrupts: one that computes would find half of it, and one that raises
    would leave a lock of Python's taken, for which the imports of other threads wait.

    >>> import_whole("calendar").isleap(2028)
    True
    """
    if module not in sys.modules and not _is_importing():
        uninterrupted(_import, module)
    return unprofiled(import_module, module)  # waits if an import statement of another thread is at it


def _is_importing() -> bool:
    """Whether this thread is within an import: another thread would wait for its locks, and it for that thread."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not _LOCKING:
        frame = frame.f_back
    return frame is not None


def _import(module: str) -> None:
    """Import a module, with the lock in the hands of the thread that does it."""
    with _importing:
        import_module(module)
        grow_old()


def deferred(module: str, name: str) -> Callable[..., Any]:
    """A function that imports `module` and calls its function `name`.

    >>> isleap = deferred("calendar", "isleap")
    >>> isleap(2028)
    True
    """
    loaded: list[ModuleType] = []

    def function(*args: Any, **kwargs: Any) -> Any:
        if not loaded:
            loaded.append(import_whole(module))
        return getattr(loaded[0], name)(*args, **kwargs)

    function.__name__, function.__module__ = name, module
    return function


# ---- names of packages ----


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
