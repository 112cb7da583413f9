"""Functions of modules that are imported at their first call: what compiles, and what few processes need.

They are defined beside an import for type checkers, at the top of the file that calls them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.references import grow_old
from genesis.runtime.uninterrupted import uninterrupted

_importing = fork_safe_lock()  # a child forked by another thread would find half a module, and its lock held for ever


def _import(module: str) -> None:
    """Import a module, with the lock in the hands of the thread that does it."""
    with _importing:
        import_module(module)
        grow_old()


def deferred(module: str, name: str) -> Callable[..., Any]:
    """A function that imports `module` and calls its function `name`.

    Signal handlers cannot interrupt that import, because a handler that computes would find a half-imported module.

    >>> isleap = deferred("calendar", "isleap")
    >>> isleap(2028)
    True
    """
    loaded: list[ModuleType] = []

    def function(*args: Any, **kwargs: Any) -> Any:
        if not loaded:
            if module not in sys.modules:
                uninterrupted(_import, module)
            loaded.append(import_module(module))  # waits if an import statement of another thread is at it
        return getattr(loaded[0], name)(*args, **kwargs)

    function.__name__, function.__module__ = name, module
    return function
