"""`torch.utils._contextlib`: context managers that are decorators too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Self

from genesis.ir.annotations import AnyFunction
from genesis.tensor.modes import decorated


def context_decorator(ctx: AbstractContextManager[Any] | Callable[[], Any], func: AnyFunction) -> AnyFunction:
    """`func`, with calls inside `ctx` or, if that is a function, its result; generators are inside only during their steps."""
    if inspect.isclass(func):
        raise RuntimeError("context_decorator: cannot decorate a class; decorate its methods")
    context: Callable[[], Any] = ctx if callable(ctx) else lambda: ctx

    def within(step: AnyFunction, /, *args: object, **kwargs: object) -> object:
        with context():
            return step(*args, **kwargs)

    return decorated(func, within)


class _DecoratorContextManager:
    """The base class of such context managers: `clone` makes one for each call."""

    def __call__(self, orig_func: AnyFunction) -> AnyFunction:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> object:
        raise NotImplementedError

    def __exit__(self, *problem: object) -> object:
        raise NotImplementedError

    def clone(self) -> Self:
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that also decorates without parentheses."""

    def __new__(cls, orig_func: AnyFunction | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
