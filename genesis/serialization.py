"""Saving to files and loading: pickle, which by default builds nothing but tensors and plain containers."""

from __future__ import annotations

import math
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from genesis.functions.methods.conversion import _rebuilt
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DTYPES, DType, bool_
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import Device, DeviceLike, device_of
from genesis.tensor.handle import Tensor

__all__ = ["load", "save"]

_TENSOR = "genesis.functions.methods.conversion", "_rebuilt"  # what makes a tensor
_DEVICE_AT = 6  # its argument that says where
_MOVED = {  # modules as files of earlier versions name them
    "genesis.devices": "genesis.runtime.devices", "genesis.methods.conversion": "genesis.functions.methods.conversion",
    "genesis.tensor": "genesis.tensor.handle", "genesis.variable": "genesis.functions.variable",
}
# The opcodes of plain containers, and of calls. BUILD is none of them: it writes attributes of whatever it is given.
_OPCODES = """
    MARK STOP POP POP_MARK DUP PROTO FRAME GLOBAL STACK_GLOBAL NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1
    LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES
    SHORT_BINBYTES BINBYTES8 BYTEARRAY8 EMPTY_LIST LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT EMPTY_SET
    FROZENSET GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE
"""


Read = Any  # what a file holds
Handler = Callable[[Any], None]  # an opcode of an unpickler


def save(obj: object, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Write `obj` (a tensor, a state dict, anything that pickles) to a path or an open binary file.

    >>> import genesis, io
    >>> file = io.BytesIO()
    >>> save({"weight": genesis.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> load(file)
    {'weight': tensor([1., 1.])}
    """
    if isinstance(f, str | os.PathLike):
        with open(f, "wb") as file:
            pickle.dump(obj, file, protocol=5)
    else:
        pickle.dump(obj, f, protocol=5)


def load(f: str | os.PathLike[str] | BinaryIO, map_location: DeviceLike = None, *, weights_only: bool = True) -> Read:
    """Read what `save` wrote; the tensors are where they were, or on the device `map_location`.

    With `weights_only`, a file that asks for anything but tensors, dtypes, numbers, strings and their containers raises
    pickle.UnpicklingError. Without it, a pickle may run any code: do so only with files of your own.
    """
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return load(file, map_location, weights_only=weights_only)
    device = None if map_location is None else str(device_of(map_location))
    if not weights_only:
        return _TrustingUnpickler(f, device).load()
    try:
        return _CarefulUnpickler(f, device).load()
    except (pickle.UnpicklingError, RuntimeError):
        raise
    except Exception as problem:
        raise pickle.UnpicklingError(f"load: the file is damaged: {problem or type(problem).__name__}") from problem


class _TrustingUnpickler(pickle.Unpickler):
    """An Unpickler that builds whatever the file names, and puts tensors on `device`."""

    def __init__(self, file: BinaryIO, device: str | None) -> None:
        super().__init__(file)
        self._device = device

    def find_class(self, module: str, name: str) -> AnyFunction:
        module = _MOVED.get(module, module)
        found = super().find_class(module, name)
        if (module, name) != _TENSOR:
            return found
        return lambda *parts: found(*parts[:_DEVICE_AT], _available(self._device, *parts[_DEVICE_AT:]))


class _CarefulUnpickler(pickle._Unpickler):
    """An Unpickler of tensors, dtypes, devices, numbers, strings and plain containers. It builds nothing else.

    A file's names stand for the entries of a table, which are not the library's own objects where a file could write to
    these; calls go to functions of that table, items into plain containers, and sizes are checked against the data.
    """

    def __init__(self, file: BinaryIO, device: str | None) -> None:
        super().__init__(file)
        self._device = device
        self._names: dict[tuple[str, str], Read] = {
            _TENSOR: self._tensor, ("genesis.tensor.handle", "Tensor"): _Kind(Tensor),
            ("genesis.runtime.devices", "Device"): _device_named, ("genesis.ir.dtypes", "_named"): _dtype_named,
            ("collections", "OrderedDict"): OrderedDict,
            ("genesis.nn.parameter", "Parameter"): _Kind(Parameter),
        }

    def find_class(self, module: str, name: str) -> AnyFunction:
        found = self._names.get((_MOVED.get(module, module), name))
        if found is None:
            raise pickle.UnpicklingError(f"load: the file asks for {module}.{name}; if you trust it, give weights_only=False")
        return found

    def _tensor(
        self, kind: Read, content: Read, shape: Read, dtype: Read, requires_grad: Read, own: Read, device: Read = "cpu"
    ) -> Tensor:
        """A tensor of what the file says of it, if that fits together."""
        fits = (
            type(kind) is _Kind and type(content) is bytes and type(shape) is tuple and isinstance(dtype, DType)
            and all(type(extent) is int and extent >= 0 for extent in shape)
            and len(content) == math.prod(shape) * dtype.itemsize
            and type(requires_grad) is bool and (dtype.is_floating_point or not requires_grad)
            and type(own) is dict and all(type(name) is str and name.isidentifier() and name[0] != "_" for name in own)
            and not any(hasattr(kind.type, name) for name in own)
        )
        if not fits:
            raise pickle.UnpicklingError("load: the file is damaged: a tensor's shape, dtype and data do not fit together")
        if dtype is bool_:
            content = (np.frombuffer(content, np.uint8) != 0).tobytes()
        return _rebuilt(kind.type, content, shape, dtype, requires_grad, own, _available(self._device, str(device)))


class _Kind:
    """A class of tensors, as files name it: nothing can be called on it or written to it."""

    __slots__ = ("type",)

    def __init__(self, kind: type[Tensor]) -> None:
        self.type = kind


def _dtype_named(name: str) -> DType:
    return DTYPES[name]


def _device_named(name: str) -> Device:
    return Device(_available(None, str(name)))


def _reduce(self: Read) -> None:
    """REDUCE: a call of a function of the table, or of OrderedDict."""
    arguments, function = self.stack.pop(), self.stack[-1]
    if function not in (self._tensor, _dtype_named, _device_named, OrderedDict):
        raise pickle.UnpicklingError(f"load: the file is damaged: it calls {type(function).__name__}")
    self.stack[-1] = function(*arguments)


def _filling(opcode: bytes, kinds: tuple[type, ...], depth: int) -> Handler:
    """An opcode that puts items into a container, which must be of one of the `kinds`."""
    original = pickle._Unpickler.dispatch[opcode[0]]

    def fill(self: Read) -> None:
        container = (self.metastack[-1] if depth == 0 else self.stack)[-1 - depth]
        if type(container) not in kinds:
            raise pickle.UnpicklingError(f"load: the file is damaged: it puts items into {type(container).__name__}")
        original(self)

    return fill


class _Handlers(dict[int, Handler]):
    """What each opcode does; one that is not among them asks for more than data."""

    def __missing__(self, opcode: int) -> Handler:
        raise pickle.UnpicklingError(f"load: the file does more than hold data (opcode {bytes([opcode])!r}); if you trust it, "
                                     "give weights_only=False")


_CarefulUnpickler.dispatch = _Handlers({
    **{(code := getattr(pickle, name)[0]): pickle._Unpickler.dispatch[code] for name in _OPCODES.split()},
    pickle.REDUCE[0]: _reduce,
    pickle.APPEND[0]: _filling(pickle.APPEND, (list,), 1), pickle.APPENDS[0]: _filling(pickle.APPENDS, (list,), 0),
    pickle.SETITEM[0]: _filling(pickle.SETITEM, (dict, OrderedDict), 2),
    pickle.SETITEMS[0]: _filling(pickle.SETITEMS, (dict, OrderedDict), 0),
    pickle.ADDITEMS[0]: _filling(pickle.ADDITEMS, (set,), 0),
})


def _available(chosen: str | None, *named: str) -> str:
    """The name of the device that is `chosen`, else of the one that the file names. Raises RuntimeError if it is not here."""
    try:
        return str(device_of(chosen or "".join(named) or "cpu"))
    except ValueError as problem:
        raise RuntimeError(f"load: a tensor's {problem}; with map_location='cpu' it comes to the CPU") from None
