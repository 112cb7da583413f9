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
        self.ignores_classes = False  # classes of tensors are ignored


running = _Running()
overriding_classes: set[type] = set()  # classes of tensors whose `__torch_function__` overrides calls with them
_lock = threading.Lock()
_entered = 0  # modes, in all threads


def set_override(name: str, function: AnyFunction) -> None:
    """Override the operation `name` by `function`."""
    OVERRIDES[name] = function
    REPLACING.add(name)


def remove_override(name: str) -> bool:
    """Undo `set_override`; returns whether there was an override."""
    REPLACING.discard(name)
    return OVERRIDES.pop(name, None) is not None


def add_overriding_class(kind: type) -> None:
    """Route every call with a tensor of this class to its `__torch_function__`."""
    prepare()
    overriding_classes.add(kind)
    OVERRIDES["(classes)"] = _never


def remove_overriding_class(kind: type) -> None:
    """Undo `add_overriding_class`."""
    overriding_classes.discard(kind)
    if not overriding_classes:
        remove_override("(classes)")


def _count_modes(more: int) -> None:
    global _entered
    prepare()
    with _lock:
        _entered += more
        if _entered:
            set_override("(modes)", _never)
        else:
            remove_override("(modes)")


def prepare() -> None:
    """Make methods check for overrides that do so only once there are any."""
    while BEFORE_FIRST_OVERRIDE:
        BEFORE_FIRST_OVERRIDE.pop()()


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
def ignoring_classes() -> Iterator[None]:
    """A context in which classes of tensors are ignored."""
    before, running.ignores_classes = running.ignores_classes, True
    try:
        yield
    finally:
        running.ignores_classes = before


def overriding_kinds(arguments: Iterable[Any]) -> list[Any]:
    """The classes with `__torch_function__` among the arguments, and in lists among them, in the order in which they are asked.

    It is that of the arguments, but a derived class comes before its bases.
    """
    found: list[Any] = []
    for argument in arguments:
        kinds = overriding_kinds(argument) if argument.__class__ in (list, tuple) else (argument.__class__,)
        for kind in kinds:
            if kind not in found and not overriding_classes.isdisjoint(kind.__mro__):
                bases = (place for place, other in enumerate(found) if issubclass(kind, other))
                found.insert(next(bases, len(found)), kind)
    return found


BEFORE_FIRST_OVERRIDE: list[Callable[[], None]] = []  # called before the first mode or class overrides calls
PUBLIC: list[Callable[[str], AnyFunction]] = []  # finds the public function of a name; the module of the table adds it
