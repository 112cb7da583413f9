"""Overrides of public functions: functions that users register, modes of a thread, classes of tensors.

Public functions check for overrides only if OVERRIDES is not empty, so calls cost nothing without any.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from genesis.ir.annotations import AnyFunction, Options

OVERRIDES: dict[str, AnyFunction] = {}  # of all threads: by operation; other keys only make every call check
REPLACING: set[str] = set()  # those among them that may override any call: nothing is replayed meanwhile


class _Running(threading.local):
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.modes: list[FunctionMode] = []  # the innermost last
        self.plain = False  # classes of tensors are ignored


running = _Running()
asking: set[type] = set()  # classes of tensors whose `__torch_function__` overrides calls with them
_lock = threading.Lock()
_entered = 0  # modes, in all threads


def replace(name: str, function: AnyFunction) -> None:
    """Override the operation `name` by `function`."""
    OVERRIDES[name] = function
    REPLACING.add(name)


def replace_no_more(name: str) -> bool:
    """Undo `replace`; returns whether there was an override."""
    REPLACING.discard(name)
    return OVERRIDES.pop(name, None) is not None


def ask(kind: type) -> None:
    """Route every call with a tensor of this class to its `__torch_function__`."""
    _look_out()
    asking.add(kind)
    OVERRIDES["(classes)"] = _never


def ask_no_more(kind: type) -> None:
    """Undo `ask`."""
    asking.discard(kind)
    if not asking:
        replace_no_more("(classes)")


def _count_modes(more: int) -> None:
    global _entered
    _look_out()
    with _lock:
        _entered += more
        if _entered:
            replace("(modes)", _never)
        else:
            replace_no_more("(modes)")


def _look_out() -> None:
    while AT_FIRST:
        AT_FIRST.pop()()


def _never(*args: Any) -> None:
    raise AssertionError("no operation has this name")


class FunctionMode:
    """A context that routes this thread's calls to `intercept`: operators, methods and functions.

    Calls within `intercept` go to the enclosing mode, if there is one. Compiled functions are not replayed in a mode, but
    called.

    Attributes:
        sees_methods: whether `x[..]`, `x[..] = y`, `item()`, `tolist()` and the like, which compute nothing, are routed too.
    """

    sees_methods = False

    def intercept(self, function: AnyFunction, args: Sequence[Any], kwargs: Options) -> Any:
        """The override of a call of a public function."""
        return function(*args, **kwargs)

    def __enter__(self) -> FunctionMode:
        _count_modes(1)
        running.modes.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        running.modes.remove(self)
        _count_modes(-1)


@contextlib.contextmanager
def asking_none() -> Iterator[None]:
    """A context in which classes of tensors are ignored."""
    before, running.plain = running.plain, True
    try:
        yield
    finally:
        running.plain = before


def asked_class(arguments: Iterable[Any]) -> Any:
    """The most derived class with `__torch_function__` among the arguments, and in lists among them."""
    found: Any = None
    for argument in arguments:
        kind: Any = asked_class(argument) if argument.__class__ in (list, tuple) else argument.__class__
        if kind is not None and not asking.isdisjoint(kind.__mro__) and (found is None or issubclass(kind, found)):
            found = kind
    return found


AT_FIRST: list[Callable[[], None]] = []  # called before the first mode or class overrides calls
PUBLIC: list[Callable[[str], AnyFunction]] = []  # finds the public function of a name; the module of the table adds it
