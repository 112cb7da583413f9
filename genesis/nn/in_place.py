"""Functions that can write their result into their input."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from genesis.ir.annotations import AnyFunction
from genesis.tensor.in_place import write


def in_place_too(function: AnyFunction) -> AnyFunction:
    """`function` with a further argument `inplace`: whether to write the result into the first argument."""
    signature = inspect.signature(function)
    parameters = [*signature.parameters.values()]
    inplace = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False)
    first, count = parameters[0].name, len(parameters)

    @functools.wraps(function)
    def either(*args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        if len(args) > count:
            *args, inplace = args  # type: ignore[assignment]
        result = function(*args, **kwargs)
        return write(args[0] if args else kwargs[first], result) if inplace else result

    either.__signature__ = signature.replace(parameters=[*parameters, inplace])  # type: ignore[attr-defined]
    return either
