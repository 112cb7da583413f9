"""Switching the recording of gradients: context managers that are decorators too. The switch belongs to the thread."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from genesis.tracing.state import recording, thread_state

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]


def is_grad_enabled() -> bool:
    """Whether operations are recorded for backward in this thread.

    >>> import genesis
    >>> with genesis.no_grad():
    ...     genesis.is_grad_enabled()
    False
    """
    return thread_state.grad_enabled


class _Switch:
    """Sets the mode on entry and restores it on exit; as a decorator, around every call."""

    _enabled = False

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(thread_state.grad_enabled)
        thread_state.grad_enabled = self._enabled

    def __exit__(self, *problem: object) -> None:
        thread_state.grad_enabled = self._before[-1]
        self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        enabled = self._enabled

        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with recording(enabled) as again, again:
                return function(*args, **kwargs)

        @functools.wraps(function)
        def resumed(*args: Any, **kwargs: Any) -> Iterator[Any]:
            """Between its steps a generator's caller has the mode it had."""
            generator = function(*args, **kwargs)
            step = functools.partial(next, generator)
            try:
                while True:
                    with recording(enabled) as again, again:
                        value = step()
                    try:
                        step = functools.partial(generator.send, (yield value))
                    except BaseException as problem:
                        step = functools.partial(generator.throw, problem)
            except StopIteration as end:
                return end.value

        return resumed if inspect.isgeneratorfunction(function) else switched


def _decorating(cls: type[_Switch], function: Callable[..., Any] | None) -> Any:
    """`@no_grad` without parentheses decorates at once."""
    switch = object.__new__(cls)
    if function is None:
        return switch
    _Switch.__init__(switch)
    return switch(function)


def _flag(name: str, mode: Any) -> bool:
    if not isinstance(mode, bool):
        raise TypeError(f"{name}: wants True or False, got {type(mode).__name__} {mode!r:.40}")
    return mode


class no_grad(_Switch):
    """Within it, results do not require gradients.

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _enabled = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return _decorating(cls, function)


class enable_grad(_Switch):
    """Within it, results require gradients again, inside `no_grad` too.

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.no_grad(), genesis.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    _enabled = True

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return _decorating(cls, function)


class set_grad_enabled(_Switch):
    """Switch to `mode`, True or False, at once; as a context manager, back on exit. Raises TypeError for another `mode`.

    >>> import genesis
    >>> with genesis.set_grad_enabled(False):
    ...     genesis.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._enabled = _flag("set_grad_enabled", mode)
        self._at_first = thread_state.grad_enabled
        thread_state.grad_enabled = self._enabled

    def __enter__(self) -> None:
        self._before.append(self._at_first)
        thread_state.grad_enabled = self._enabled

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        thread_state.grad_enabled = self._at_first
        return super().__call__(function)


class inference_mode(_Switch):
    """As `no_grad`; `inference_mode(False)` records. Raises TypeError for a `mode` that is no bool.

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.inference_mode():
    ...     (x * 2).requires_grad
    False
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        return _decorating(cls, mode if callable(mode) else None)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._enabled = not _flag("inference_mode", mode)
