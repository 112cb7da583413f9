"""Functions of modules that are imported at their first call, as few processes need them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from genesis.runtime.uninterrupted import uninterrupted


def deferred(module: str, name: str) -> Callable[..., Any]:
    """A function that imports `module` and calls its function `name`.

    Signal handlers cannot interrupt that import, because a handler that computes would find a half-imported module.

    >>> isleap = deferred("calendar", "isleap")
    >>> isleap(2028)
    True
    """

    def function(*args: Any, **kwargs: Any) -> Any:
        if module not in sys.modules:
            uninterrupted(import_module, module)
        return getattr(import_module(module), name)(*args, **kwargs)  # waits if another thread imports it

    function.__name__, function.__module__ = name, module
    return function
