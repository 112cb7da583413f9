"""Shapes and dtypes of what public functions take and give, as the examples of their docstrings have them.

The examples are run, and calls noted: what a page of the reference says about shapes is what a call did.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import inspect
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import genesis

_MOST = 3  # calls that are shown


def shapes_in_examples(thing: Any, modules: Sequence[ModuleType]) -> list[str]:
    """A line for each kind of call of a function, or of a module's instances, in the examples of its docstring.

    `modules` are those where users find it.

    >>> shapes_in_examples(genesis.matmul, [genesis])
    ['(2, 2) float32, (2,) float32 -> (2,) float32']
    """
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
    noted: dict[str, None] = {}
    with contextlib.ExitStack() as stack:
        for owner, name in _places(thing, modules):
            stack.enter_context(_noting(owner, name, noted))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(genesis.eager())
        names = {**vars(sys.modules[thing.__module__]), "genesis": genesis, "bool": bool, "float": float, "int": int}
        for example in examples:
            with contextlib.suppress(Exception):  # an example may show an error
                exec(compile(example.source, "example", "single"), names)
    return list(noted)[:_MOST]


def _places(thing: Any, modules: Sequence[ModuleType]) -> list[tuple[Any, str]]:
    """Where calls of `thing` find their function: other names of it, and methods, have its description."""
    if inspect.isclass(thing):
        return [(thing, "forward")] if issubclass(thing, genesis.nn.Module) else []
    home = sys.modules[thing.__module__]
    inside = [(home, name) for name, found in vars(home).items() if found is thing]
    return [*inside, *_described((*modules, genesis.Tensor)).get(_words(thing), [])]


@functools.cache
def _described(owners: tuple[Any, ...]) -> dict[str, list[tuple[Any, str]]]:
    """The functions of modules and classes by their descriptions."""
    found: dict[str, list[tuple[Any, str]]] = {}
    for owner in owners:
        for name in dir(owner):
            if inspect.isroutine(function := getattr(owner, name, None)) and not name.startswith("__") and _words(function):
                found.setdefault(_words(function), []).append((owner, name))
    return found


def _words(thing: Any) -> str:
    """A docstring before its examples."""
    return (inspect.getdoc(thing) or "").partition(">>>")[0].strip()


@contextlib.contextmanager
def _noting(owner: Any, name: str, noted: dict[str, None]) -> Iterator[None]:
    own = name in vars(owner)
    function: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(function)
    def spy(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        taken, given = _told([*args, *kwargs.values()]), _told(result)
        if taken or given:
            noted[f"{', '.join(taken)} -> {', '.join(given)}".strip()] = None
        return result

    setattr(owner, name, spy)
    try:
        yield
    finally:
        setattr(owner, name, function) if own else delattr(owner, name)


def _told(value: Any) -> list[str]:
    """The tensors in arguments or results."""
    if isinstance(value, genesis.Tensor):
        return [f"{tuple(value.shape)} {value.dtype.name}"]
    return [text for item in value for text in _told(item)] if isinstance(value, list | tuple) else []
