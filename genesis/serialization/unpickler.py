"""The two pickle readers: one builds only tensors and plain containers, the other anything that the file names."""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO

from genesis.ir.annotations import AnyFunction
from genesis.ir.library import Library
from genesis.serialization.names import Builder, Kind, Read, allowed_by_users, damaged, data_of, functions_of, today
from genesis.serialization.storage import Storage

# The opcodes for plain containers and calls.
_OPCODES = """
    MARK STOP POP POP_MARK DUP PROTO FRAME GLOBAL STACK_GLOBAL NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1
    LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES
    SHORT_BINBYTES BINBYTES8 BYTEARRAY8 EMPTY_LIST LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT EMPTY_SET
    FROZENSET GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE BINPERSID
"""
Handler = Callable[[Any], None]  # implements an opcode of the unpickler


class _Call:
    """A function that a file may call. The file never gets the function itself."""

    __slots__ = ("function",)

    def __init__(self, function: AnyFunction) -> None:
        self.function = function

    def __call__(self, *arguments: Read) -> Read:
        return self.function(*arguments)


class TrustingUnpickler(pickle.Unpickler):
    """An Unpickler that builds whatever the file names."""

    def __init__(self, file: BinaryIO, builder: Builder, limit: int | None = None) -> None:
        super().__init__(file, encoding="utf-8")
        self._builder = builder
        self._functions = functions_of(builder)
        self._limit = limit

    def persistent_load(self, reference: Read) -> Storage:
        return self._builder.storage(reference, self._limit)

    def find_class(self, module: str, name: str) -> AnyFunction:
        module, name = today(module, name)
        if not module.startswith("builtins"):
            found = self._functions.get((module, name)) or data_of(module, name)
            if found is not None:
                return found.type if isinstance(found, Kind) else found
        if module.partition(".")[0] == "torch" and Library.name != "torch":
            raise pickle.UnpicklingError(
                f"load: the file holds a {module}.{name}, which is PyTorch's own code; want a state_dict(), or run as "
                "`python -m genesis.as_torch`")
        return super().find_class(module, name)


class CarefulUnpickler(pickle._Unpickler):
    """An Unpickler of only tensors, dtypes, devices, numbers, strings and plain containers.

    A file's names refer to entries of a table, never to library objects that a file could modify. Only functions of that table
    are called, items go only into plain containers, and sizes are checked against the data.
    """

    def __init__(self, file: BinaryIO, builder: Builder, limit: int | None = None) -> None:
        super().__init__(file, encoding="utf-8")
        self._builder = builder
        self._functions = {name: _Call(function) for name, function in functions_of(builder).items()}
        self._limit = limit

    def persistent_load(self, reference: Read) -> Storage:
        return self._builder.storage(reference, self._limit)

    def find_class(self, module: str, name: str) -> Read:
        module, name = today(module, name)
        found = self._functions.get((module, name)) or data_of(module, name) or allowed_by_users.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(
                f"load: the file asks for {module}.{name}; if you trust it, give weights_only=False, or allow the name with "
                "genesis.serialization.add_safe_globals")
        return found


def _allowed(kind: Read) -> bool:
    return any(kind is allowed for allowed in allowed_by_users.values())


def _call(self: Read) -> None:
    """REDUCE: a call of a function of the table, or of one that the user allows."""
    arguments, function = self.stack.pop(), self.stack[-1]
    if type(function) is not _Call and not _allowed(function):
        raise damaged(f"it calls {type(function).__name__}")
    self.stack[-1] = function(*arguments)


def _instance(self: Read) -> None:
    """NEWOBJ: an object of a class that the user allows."""
    arguments, kind = self.stack.pop(), self.stack[-1]
    if not _allowed(kind):
        raise pickle.UnpicklingError(f"load: the file makes a {type(kind).__name__}; if you trust it, give weights_only=False")
    self.stack[-1] = kind.__new__(kind, *arguments)


_BUILD = pickle._Unpickler.dispatch[pickle.BUILD[0]]


def _state(self: Read) -> None:
    """BUILD: attributes of an OrderedDict, as state dicts have them, or of what the user allows."""
    state, target = self.stack[-1], self.stack[-2]
    if type(target) is OrderedDict and type(state) is dict and all(
        type(name) is str and not hasattr(OrderedDict, name) for name in state
    ):
        self.stack.pop()
        target.__dict__.update(state)
    elif _allowed(type(target)):
        _BUILD(self)
    else:
        raise damaged(f"it writes attributes of a {type(target).__name__}")


def _filling(opcode: bytes, kinds: tuple[type, ...], depth: int) -> Handler:
    """An opcode that puts items into a container, which must be of one of the `kinds`."""
    original = pickle._Unpickler.dispatch[opcode[0]]

    def fill(self: Read) -> None:
        container = (self.metastack[-1] if depth == 0 else self.stack)[-1 - depth]
        if type(container) not in kinds:
            raise damaged(f"it puts items into {type(container).__name__}")
        original(self)

    return fill


class _Handlers(dict[int, Handler]):
    """The allowed opcodes' handlers; any other opcode raises, because it does more than describe data."""

    def __missing__(self, opcode: int) -> Handler:
        raise pickle.UnpicklingError(f"load: the file does more than hold data (opcode {bytes([opcode])!r}); if you trust it, "
                                     "give weights_only=False")


_DICTS = (dict, OrderedDict, Counter)
CarefulUnpickler.dispatch = _Handlers({
    **{(code := getattr(pickle, name)[0]): pickle._Unpickler.dispatch[code] for name in _OPCODES.split()},
    pickle.REDUCE[0]: _call, pickle.NEWOBJ[0]: _instance, pickle.BUILD[0]: _state,
    pickle.APPEND[0]: _filling(pickle.APPEND, (list,), 1), pickle.APPENDS[0]: _filling(pickle.APPENDS, (list,), 0),
    pickle.SETITEM[0]: _filling(pickle.SETITEM, _DICTS, 2), pickle.SETITEMS[0]: _filling(pickle.SETITEMS, _DICTS, 0),
    pickle.ADDITEMS[0]: _filling(pickle.ADDITEMS, (set,), 0),
})
