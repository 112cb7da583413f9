"""`size_average` and `reduce`: old PyTorch's arguments of losses, replaced by `reduction`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

from genesis.ir.annotations import AnyFunction

_OLD = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="bool | None") for name in
        ("size_average", "reduce")]


def takes_size_average(before: str = "reduction") -> Callable[[AnyFunction], AnyFunction]:
    """Decorator: a function with `reduction` also takes the old parameters, at PyTorch's positions, with a warning.

    `size_average` precedes the parameter `before`, `reduce` precedes `reduction`.

    >>> @takes_size_average()
    ... def loss(input, reduction="mean"):
    ...     return reduction
    >>> with warnings.catch_warnings(action="ignore"):
    ...     loss(1, size_average=False), loss(1, True, False), loss(1)
    ('sum', 'none', 'mean')
    """

    def decorate(function: AnyFunction) -> AnyFunction:
        parameters = {**signature(function).parameters}
        average, reduce = ([*parameters].index(name) for name in (before, "reduction"))
        own = [*parameters.values()]
        extended = [*own[:average], _OLD[0], *own[average:reduce], _OLD[1], *own[reduce:]]
        names = [parameter.name for parameter in extended]

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if len(args) <= average and "size_average" not in kwargs and "reduce" not in kwargs:
                return function(*args, **kwargs)
            bound = dict(zip(names, args, strict=False))
            if len(args) > len(names) or bound.keys() & kwargs.keys():
                signature(called).bind(*args, **kwargs)  # raises the TypeError that Python would
            given = bound | kwargs
            old = [given.pop(name, None) for name in ("size_average", "reduce")]
            if old != [None, None]:
                given["reduction"] = _reduction(*old)
            return function(**given)

        called.__signature__ = Signature(extended)  # type: ignore[attr-defined]
        return called

    return decorate


def _reduction(size_average: bool | None, reduce: bool | None) -> str:
    found = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(f"size_average and reduce are deprecated; want reduction={found!r}", UserWarning, stacklevel=3)
    return found
