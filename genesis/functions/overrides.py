"""Operations overridden by users: after `register_function("add", f)`, `x + y` is `f(x, y)`.

What a user calls (operators, methods, functions) asks here while anything is registered. What the library itself records
by `call` does not, neither backward nor an optimizer. While a function runs, its own name means the operation to it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from genesis.ir.annotations import AnyFunction, Options
from genesis.ir.replayable import replayable_module
from genesis.ops.registry import Operation
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, method
from genesis.tensor.out import into

F = TypeVar("F", bound=AnyFunction)
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}  # of arguments of every function
OVERRIDES: dict[str, AnyFunction] = {}  # for all threads
OVERRIDABLE: set[str] = set()  # of the following, those in whose place users may register another
FUNCTIONS: dict[str, AnyFunction] = {}  # the public functions that are no rows of the operation table, by all their names


class _Running(threading.local):
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.modes: list[FunctionMode] = []  # the innermost is the last
        self.plain = False  # classes of tensors are not asked


_running = _Running()
_lock = threading.Lock()
_switches = dict[str, int]()  # what has every call come here, and how often it was switched on


def switch(name: str, on: bool) -> None:
    """Have every call of a function of Tensors come here, or no longer. OVERRIDES has the switch, which is no operation's."""
    with _lock:
        count = _switches[name] = _switches.get(name, 0) + (1 if on else -1)
        if count:
            OVERRIDES[name] = _never
        else:
            OVERRIDES.pop(name, None)


def _never(*args: Any) -> None:
    raise AssertionError("a switch is called")


class FunctionMode:
    """A context in which what this thread calls goes to `intercept`, which may call it: operators, methods, functions.

    What `intercept` calls goes to the mode around this one, if there is one. In-place operations and `genesis.compile` do not
    come here: a compiled function is called each time.
    """

    def intercept(self, function: AnyFunction, args: Sequence[Any], kwargs: Options) -> Any:
        """What takes the place of the call of a public function."""
        return function(*args, **kwargs)

    def __enter__(self) -> FunctionMode:
        switch("(modes)", True)
        _running.modes.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        _running.modes.remove(self)
        switch("(modes)", False)


asking: set[type] = set()  # classes of tensors whose `__torch_function__` takes the place of calls with them


@contextlib.contextmanager
def asking_none() -> Iterator[None]:
    """A context in which classes of tensors are not asked."""
    before, _running.plain = _running.plain, True
    try:
        yield
    finally:
        _running.plain = before


def asked_class(arguments: Iterable[Any]) -> Any:
    """The class among those of the arguments, and in lists of them, that is to be asked; the most derived one."""
    found: Any = None
    for argument in arguments:
        kind: Any = asked_class(argument) if argument.__class__ in (list, tuple) else argument.__class__
        if kind is not None and not asking.isdisjoint(kind.__mro__) and (found is None or issubclass(kind, found)):
            found = kind
    return found


PUBLIC: list[Callable[[str], AnyFunction]] = []  # finds the public function of a name; the module of the table adds it


def routed(name: str, builtin: AnyFunction, args: Sequence[Any], kwargs: Options) -> Any:
    """Call what is registered under `name`; `builtin` if nothing is, or if this thread is inside of it.

    The innermost mode comes first, then the class of an argument.
    """
    if modes := _running.modes:
        mode = modes.pop()
        try:
            return mode.intercept(PUBLIC[0](name), args, kwargs)
        finally:
            modes.append(mode)
    if asking and not _running.plain and (kind := asked_class([*args, *kwargs.values()])) is not None:
        return kind.__torch_function__(PUBLIC[0](name), (kind,), tuple(args), kwargs)
    function = OVERRIDES.get(name)
    if function is None or name in _running.names:
        return builtin(*args, **kwargs)
    _running.names.add(name)
    try:
        return function(*args, **kwargs)
    finally:
        _running.names.discard(name)


def route(operation: Operation, args: Sequence[Any], kwargs: Options | None = None) -> Any:
    """`call`, by way of what is registered under the operation's name."""
    return routed(operation.name, lambda *args, **kwargs: call(operation, args, kwargs), args, kwargs or {})


def keywords(**names: str) -> Callable[[F], F]:
    """Decorator: further names of arguments, of what is overridable then."""

    def note(builtin: F) -> F:
        vars(builtin)["keywords"] = names
        return builtin

    return note


def overridable(builtin: F) -> F:
    """Decorator of a public function of Tensors that is no row: users may register another under its name."""
    name, names = builtin.__name__, {**NUMPY_NAMES, **vars(builtin).get("keywords", {})}
    if "axis" in inspect.signature(builtin).parameters:
        names = {}

    @functools.wraps(builtin)
    def public(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {names.get(name, name): value for name, value in kwargs.items()}
            if "out" in kwargs and (out := kwargs.pop("out")) is not None:
                return into(out, name, public, args, kwargs)
        return routed(name, builtin, args, kwargs) if OVERRIDES else builtin(*args, **kwargs)

    OVERRIDABLE.add(name)
    return function()(public)  # type: ignore[return-value]


def overridable_method(builtin: F) -> F:
    """Decorator: what is overridable, as a method of Tensor too."""
    return method(overridable(builtin))


def function(*aliases: str) -> Callable[[F], F]:
    """Decorator: a method of Tensor, or what is overridable, is a function of `genesis` too. `aliases` name it in both."""

    def show(public: F) -> F:
        FUNCTIONS.update(dict.fromkeys((public.__name__, *aliases), public))
        for alias in aliases if hasattr(Tensor, public.__name__) else ():
            setattr(Tensor, alias, public)
        return public

    return show


replayable_module(__name__)
