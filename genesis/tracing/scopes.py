"""Scopes: the modules being called and `named_scope`s in which calls are recorded.

A thread's scope is a linked list, innermost first. Each recorded call stores it beside the user's line. Names are resolved
lazily, from modules' attributes, as in `named_modules`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from genesis.tracing.thread import Scope, thread_state

P = ParamSpec("P")
R = TypeVar("R")


class named_scope:
    """A context, or a decorator, in which calls are recorded under a name: what profiles, graphs and explanations show.

    It follows the path of the module being called; modules called inside follow it.

    >>> with genesis.named_scope("loss"):
    ...     x = genesis.ones(2) * genesis.arange(2)
    >>> graph = genesis.debug.graph(x)
    >>> set(graph.modules.values())
    {'loss'}
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"named_scope: wants a name, got {name!r:.40}")
        self.name = name
        self._around: list[Scope | None] = []

    def __enter__(self) -> named_scope:
        self._around.append(thread_state.scope)
        thread_state.scope = thread_state.scope, self.name, None
        return self

    def __exit__(self, *problem: object) -> None:
        thread_state.scope = self._around.pop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function` with its calls recorded under the name."""
        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with named_scope(self.name):
                return function(*args, **kwargs)

        return inside


class ScopeNames:
    """The paths of scopes as text: `GPT.blocks.3.attention`. It caches resolved names."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Scope, str, Any]] = {}  # id -> the scope, its path, the module that names lead on from
        self._below: dict[int, dict[int, str]] = {}  # id of a module -> id of one below it -> its path

    def path(self, scope: Scope | None) -> str:
        """The names from the outermost scope inwards: classes of modules without an owner, attributes' names, named scopes."""
        return self._resolved(scope)[0]

    def named(self, scope: Scope | None) -> Scope | None:
        """A scope of that path that does not refer to the modules."""
        return None if scope is None else (None, self.path(scope), None)

    def _resolved(self, scope: Scope | None) -> tuple[str, Any]:
        waiting: list[Scope] = []
        while scope is not None and id(scope) not in self._found:
            waiting.append(scope)
            scope = scope[0]
        path, module = ("", None) if scope is None else self._found[id(scope)][1:]
        for scope in reversed(waiting):
            path, module = self._inside(path, module, scope)
            self._found[id(scope)] = scope, path, module
        return path, module

    def _inside(self, path: str, around: Any, scope: Scope) -> tuple[str, Any]:
        """The path of a scope, and the module that it is in, from those of the scope around."""
        _, place, kind = scope
        if kind is None:
            return f"{path}.{place}" if path else place, around
        module = place()
        name = kind.__name__
        if module is not None and around is not None:
            if id(around) not in self._below:
                self._below[id(around)] = {id(m): own for own, m in around.named_modules(remove_duplicate=True)}
            name = self._below[id(around)].get(id(module), name)
        return ".".join(filter(None, (path, name))), module
