"""The pickle of a file, written under PyTorch's names; and its readers, one of tensors alone, one of all that it names."""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from genesis.execution.realize import realize
from genesis.functions.methods.storage import TypedStorage, UntypedStorage
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import NAMED, DType
from genesis.ir.library import Library
from genesis.ir.named_layouts import NamedLayout
from genesis.nn.parameter import Buffer, Parameter
from genesis.runtime.devices import Device
from genesis.serialization.names import STORAGES, Builder, Kind, Read, allowed_by_users, damaged, data_of, functions_of, today
from genesis.serialization.storage import LoadedStorage
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.size import Size
from genesis.tensor.views import memory_of
from genesis.tracing.trace import LOCK

_STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}


class _Name(NamedTuple):
    """A name written to files; the object need not exist here."""

    module: str
    name: str

    def __call__(self, *arguments: object) -> NoReturn:
        raise TypeError(f"{self.module}.{self.name} is a name in files")


_TENSOR, _TYPED = _Name("torch._utils", "_rebuild_tensor_v2"), _Name("torch._utils", "_rebuild_tensor_v3")
_PARAMETER, _PARAMETER_WITH_STATE = (
    _Name("torch._utils", "_rebuild_parameter"), _Name("torch._utils", "_rebuild_parameter_with_state"))
_SPARSE, _LAYOUT = _Name("torch._utils", "_rebuild_sparse_tensor"), _Name("torch.serialization", "_get_layout")
_OF_CLASS = _Name("torch._tensor", "_rebuild_from_type_v2")
_TENSOR_CLASS, _BYTES = _Name("torch", "Tensor"), _Name("torch.storage", "UntypedStorage")
_DEVICE, _SIZE = _Name("torch", "device"), _Name("torch", "Size")
_NAMES = {name: _Name("torch", name) for name in (*STORAGES, *NAMED)}


class _Part(NamedTuple):
    """The tensor inside a parameter, which is not an object of its own."""

    function: _Name
    arguments: tuple[object, ...]


class _Reference(tuple[object, ...]):
    """A reference to a root's storage, instead of its bytes."""


_PurePickler: Any = pickle._Pickler  # the Python implementation can write names of missing objects


class Pickler(_PurePickler):
    """A Pickler that collects the storages of the tensors it meets."""

    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self._roots: dict[int, tuple[str, Tensor, _Name]] = {}

    def storages(self) -> Iterator[tuple[str, np.ndarray]]:
        """The key of each storage, and its bytes."""
        for key, root, _ in self._roots.values():
            with LOCK:  # a compiled call in another thread may write it
                yield key, memory_of(root).numpy(root.dtype).reshape(-1).view(np.uint8)

    def persistent_id(self, obj: Any) -> tuple[object, ...] | None:
        if isinstance(obj, TypedStorage):
            if (kind := "bytes" if isinstance(obj, UntypedStorage) else _STORAGE_OF.get(obj.dtype.name)) is None:
                raise TypeError(f"save: PyTorch has no storages of {obj.dtype.name}; want its untyped()")
            obj = self._reference(obj._root, _NAMES.get(kind, _BYTES))
        return ("storage", *obj) if type(obj) is _Reference else None

    def _reference(self, root: Tensor, kind: _Name) -> _Reference:
        key, _, before = self._roots.setdefault(id(root), (str(len(self._roots)), root, kind))
        if before is not kind:
            raise RuntimeError(f"save: the same memory as {before.name} and as {kind.name}; want one of these, or a clone()")
        return _Reference((kind, key, str(root.device), root.nbytes if kind is _BYTES else root.numel()))

    def reducer_override(self, obj: Any) -> Any:
        """Reduces tensors, devices and sizes; other objects reduce themselves."""
        if isinstance(obj, Device):
            return _DEVICE, (str(obj),)
        if type(obj) is Size:
            return _SIZE, (tuple(obj),)
        if isinstance(obj, SparseTensor):
            return _SPARSE, self._sparse(obj)
        if isinstance(obj, NamedLayout):
            return _LAYOUT, (f"torch.{obj.name}",)
        if not isinstance(obj, Tensor) or type(obj).__reduce_ex__ is not Tensor.__reduce_ex__:
            return NotImplemented
        own = {name: value for name, value in obj.__dict__.items() if not name.startswith("_")}
        if type(obj) is Parameter:
            function, arguments = self._rebuilt(obj, False)
            data = _Part(function, arguments)
            hooks: OrderedDict[int, object] = OrderedDict()
            state = (obj.requires_grad, hooks)
            return (_PARAMETER_WITH_STATE, (data, *state, own)) if own else (_PARAMETER, (data, *state))
        function, arguments = self._rebuilt(obj, obj.requires_grad)
        if type(obj) is Tensor and not own:
            return function, arguments
        kind = _TENSOR_CLASS if type(obj) in (Tensor, Buffer) else type(obj)
        return _OF_CLASS, (function, kind, arguments, {**own, "_is_buffer": True} if type(obj) is Buffer else own)

    def _sparse(self, x: SparseTensor) -> tuple[object, ...]:
        size = Size(x.shape)
        if x._kind.axis is None:
            return x._kind, (x._positions, x._elements.detach(), size, x._is_coalesced)
        plain = x._positions[1 - x._kind.axis]
        return x._kind, (x._pointers, plain, x._elements.detach(), size)

    def _rebuilt(self, tensor: Tensor, requires_grad: bool) -> tuple[_Name, tuple[object, ...]]:
        realize(tensor._array)
        root = root_of(tensor)
        # Views across dtypes (a complex tensor's parts, and back) are copied, because a file's storage has one dtype; and lazy
        # conjugates.
        if tensor.dtype is not root.dtype or tensor._element_map is not None:
            tensor = root = tensor.detach().clone()
        dtype, layout, kind = tensor.dtype, tensor.storage_layout, _STORAGE_OF.get(tensor.dtype.name)
        storage = self._reference(root, _BYTES if kind is None else _NAMES[kind])
        hooks: OrderedDict[int, object] = OrderedDict()
        arguments = storage, layout.offset, tuple(layout.shape), tuple(layout.strides), requires_grad, hooks
        return (_TENSOR, arguments) if kind else (_TYPED, (*arguments, dtype))

    def _save_name(self, name: _Name) -> None:
        self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())
        self.memoize(name)

    def _save_dtype(self, dtype: DType) -> None: self.save(_NAMES[dtype.name])
    def _save_part(self, part: _Part) -> None: self.save_reduce(part.function, part.arguments)


Pickler.dispatch = {
    **_PurePickler.dispatch, _Name: Pickler._save_name, DType: Pickler._save_dtype, _Part: Pickler._save_part,
}


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

    def persistent_load(self, reference: Read) -> LoadedStorage:
        return LoadedStorage(self._builder.storage(reference, self._limit))

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

    def persistent_load(self, reference: Read) -> LoadedStorage:
        return LoadedStorage(self._builder.storage(reference, self._limit))

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
