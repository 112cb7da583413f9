"""The meaning of names in files: PyTorch's, and those of this library's earlier files, which were plain pickles."""

from __future__ import annotations

import math
import pickle
import sys
from collections import Counter, OrderedDict
from typing import Any

import numpy as np

from genesis.functions.methods.conversion import _rebuilt
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import NAMED, DType, bool_
from genesis.ir.named_layouts import LAYOUTS, NamedLayout, SparseLayout
from genesis.ir.shapes import contiguous_strides
from genesis.nn.parameter import Buffer, Parameter
from genesis.runtime.devices import Device
from genesis.runtime.moved_modules import MOVED
from genesis.serialization.storage import (
    LoadedStorage, MapLocation, Source, Storage, StorageKind, checked_layout, mapped_device,
)
from genesis.sparse.creation import sparse_compressed_tensor, sparse_coo_tensor
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size

Read = Any  # an object read from a file
Name = tuple[str, str]  # (module, name in it)

STORAGES = {  # PyTorch's classes of storages
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
}
_BUILTINS = {"__builtin__": "builtins", "numpy.core.multiarray": "numpy._core.multiarray"}  # Python 2's, and NumPy 1's
allowed_by_users: dict[Name, AnyFunction] = {}  # by `add_safe_globals`


class Kind:
    """A tensor class named by a file: it cannot be called or written to."""

    __slots__ = ("type",)

    def __init__(self, kind: type[Tensor]) -> None:
        self.type = kind


def today(module: str, name: str) -> Name:
    """The current module and name of an object named by a file."""
    return MOVED.get(module, _BUILTINS.get(module, module)), name


def damaged(what: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(f"load: the file is damaged: {what}")


def own_attributes(kind: type[Tensor], own: object) -> dict[str, Read]:
    """The attributes that a file gives a tensor, if all are the user's own."""
    if not (
        isinstance(own, dict) and all(type(name) is str and name.isidentifier() and name[0] != "_" for name in own)
        and not any(hasattr(kind, name) for name in own)
    ):
        raise damaged("attributes of a tensor that are not a user's")
    return own


class Builder:
    """Makes a file's storages, tensors and parameters. All arguments are checked: they come from the file."""

    def __init__(self, source: Source | None, map_location: MapLocation, swapped: bool = False) -> None:
        self._source = source
        self._map_location = map_location
        self._swapped = swapped
        self.storages: dict[str, Storage] = {}

    def storage(self, reference: Read, limit: int | None = None) -> Storage:
        """The storage that a file refers to, read now; without a source, memory of at most `limit` bytes."""
        if type(reference) is not tuple or len(reference) not in (5, 6) or reference[0] != "storage":
            raise damaged(f"a reference {reference!r:.60} to no storage")
        _, kind, key, location, elements, *view = reference
        if not (isinstance(kind, StorageKind) and type(key) is str and type(location) is str and type(elements) is int):
            raise damaged(f"a reference {reference!r:.60} to no storage")
        if any(part is not None for part in view):
            raise pickle.UnpicklingError("load: views of storages, as PyTorch wrote them before 0.4, are not read here")
        nbytes = elements * (kind.dtype.itemsize if kind.dtype else 1)
        known = self.storages.get(key)
        if known is not None:
            if known.dtype is not kind.dtype or known.nbytes() != nbytes:
                raise damaged(f"storage {key!r} of two kinds")
            return known
        if not 0 <= nbytes <= (sys.maxsize if limit is None else limit):
            raise damaged(f"storage {key!r} of {elements} elements")
        made = Storage(kind.dtype, nbytes)
        device = mapped_device(made, location, self._map_location)
        if self._source is None:
            made.allocate(device)
        else:
            made.open(key, self._source, self._swapped, device)
        self.storages[key] = made
        return made

    def tensor(
        self, storage: Read, offset: Read, size: Read, stride: Read, requires_grad: Read = False, hooks: Read = None,
        metadata: Read = None,
    ) -> Tensor:
        """`_rebuild_tensor` and `_rebuild_tensor_v2`."""
        return self.typed_tensor(storage, offset, size, stride, requires_grad, hooks, storage.memory.dtype)

    def typed_tensor(
        self, storage: Read, offset: Read, size: Read, stride: Read, requires_grad: Read, hooks: Read, dtype: Read,
        metadata: Read = None,
    ) -> Tensor:
        """`_rebuild_tensor_v3`: the storage has bytes, the tensor the dtype."""
        if not isinstance(storage, LoadedStorage) or not isinstance(dtype, DType):
            raise damaged("a tensor of no storage, or no dtype")
        if type(requires_grad) is not bool or (requires_grad and dtype.category < 2):
            raise damaged(f"a {dtype.name} tensor that requires a gradient")
        at = checked_layout(storage.memory.nbytes() // dtype.itemsize, dtype.itemsize, offset, size, stride)
        result = storage.memory.tensor(dtype, at)
        if requires_grad:
            _make_leaf(result)
        return result

    def parameter(self, data: Read, requires_grad: Read, hooks: Read, state: Read = None) -> Tensor:
        """`_rebuild_parameter`, and the same with attributes."""
        if type(data) is not Tensor or type(requires_grad) is not bool or (requires_grad and data.dtype.category < 2):
            raise damaged("a parameter of no tensor")
        own = own_attributes(Parameter, state or {})
        data.__class__ = Parameter  # in place, because the storage's other tensors are views of this one
        if requires_grad:
            _make_leaf(data)
        data.__dict__.update(own)
        return data

    def of_class(self, function: Read, kind: Read, arguments: Read, state: Read) -> Tensor:
        """`_rebuild_from_type_v2`: a tensor with attributes or of a subclass."""
        result = function(*arguments)
        own = state[0] if isinstance(state, tuple) and state else state
        wanted = kind.type if isinstance(kind, Kind) else kind
        if wanted is Tensor and isinstance(own, dict) and own.pop("_is_buffer", None) is True:
            wanted = Buffer
        if not isinstance(result, Tensor) or not (isinstance(wanted, type) and issubclass(wanted, Tensor)):
            raise damaged("a tensor of no class")
        if wanted is not type(result):
            result.__class__ = wanted
        result.__dict__.update(own_attributes(wanted, own))
        return result

    def sparse_tensor(self, layout: Read, data: Read) -> Tensor:
        """`_rebuild_sparse_tensor`; the file's indices are checked."""
        if not isinstance(layout, SparseLayout) or type(data) is not tuple or len(data) not in (3, 4):
            raise damaged("a sparse tensor of no layout")
        first, second, third, fourth = (*data, False)[:4]
        size = third if layout.axis is None else fourth
        if not all(isinstance(part, Tensor) for part in (first, second)) or type(size) is not Size:
            raise damaged("a sparse tensor of no tensors")
        if layout.axis is None:
            return sparse_coo_tensor(first, second, size, check_invariants=True, is_coalesced=fourth is True)
        return sparse_compressed_tensor(first, second, third, size, layout=layout, check_invariants=True)

    def earlier_tensor(
        self, kind: Read, content: Read, shape: Read, dtype: Read, requires_grad: Read, own: Read, device: Read = "cpu"
    ) -> Tensor:
        """A tensor of an earlier genesis file, with all bytes in the pickle."""
        wanted = kind.type if isinstance(kind, Kind) else kind
        fits = (
            isinstance(wanted, type) and issubclass(wanted, Tensor)
            and type(content) is bytes and type(shape) is tuple and isinstance(dtype, DType)
            and all(type(extent) is int and extent >= 0 for extent in shape)
            and len(content) == math.prod(shape) * dtype.itemsize
            and type(requires_grad) is bool and (dtype.category >= 2 or not requires_grad)
        )
        if not fits:
            raise damaged("a tensor's shape, dtype and data do not fit together")
        checked_layout(math.prod(shape), dtype.itemsize, 0, shape, contiguous_strides(shape))
        if dtype is bool_:
            content = (np.frombuffer(content, np.uint8) != 0).tobytes()
        target = mapped_device(Storage(dtype, len(content)), str(device), self._map_location)
        return _rebuilt(wanted, content, shape, dtype, requires_grad, own_attributes(wanted, own), str(target))


def _make_leaf(tensor: Tensor) -> None:
    tensor._requires_grad = True
    tensor._detached = tensor._base is not None


def _size(extents: Read) -> Size:
    if not isinstance(extents, tuple | list) or not all(type(extent) is int for extent in extents):
        raise damaged("a size that is no tuple of ints")
    return Size(extents)


def _layout(name: Read) -> NamedLayout:
    if type(name) is not str or name.removeprefix("torch.") not in LAYOUTS:
        raise damaged(f"a layout {name!r:.60}")
    return LAYOUTS[name.removeprefix("torch.")]


def _device(name: Read, index: Read = None) -> Device:
    storage = Storage(None, 0)
    return mapped_device(storage, str(name) if index is None else f"{name}:{index}", None)


def _encoded(text: Read, encoding: Read = "utf-8") -> bytes:
    """`_codecs.encode`, by which protocol 2 pickles represent bytes."""
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise damaged("bytes that are no text")
    return text.encode(encoding)


def _bytearray(content: Read = b"", *encoding: Read) -> bytearray:
    if type(content) not in (bytes, bytearray, list, str):  # a number would be a length and allocate any size
        raise damaged("a bytearray of no bytes")
    return bytearray(content, *encoding)


def data_of(module: str, name: str) -> Read:
    """The dtype, storage class or tensor class of a name; None for others."""
    if module in ("torch", "torch.cuda") and name in STORAGES:
        if STORAGES[name] not in NAMED:
            raise pickle.UnpicklingError(f"load: the file holds {STORAGES[name]} tensors; genesis has {', '.join(NAMED)}")
        return StorageKind(NAMED[STORAGES[name]])
    if module == "torch" and name in NAMED:
        return NAMED[name]
    return {
        ("torch.storage", "UntypedStorage"): StorageKind(None), ("torch", "UntypedStorage"): StorageKind(None),
        ("torch", "Tensor"): Kind(Tensor), ("genesis.tensor.handle", "Tensor"): Kind(Tensor),
        ("torch.nn.parameter", "Parameter"): Kind(Parameter), ("genesis.nn.parameter", "Parameter"): Kind(Parameter),
    }.get((module, name))


def functions_of(builder: Builder) -> dict[Name, AnyFunction]:
    """The functions that files may call."""
    return {
        ("torch._utils", "_rebuild_tensor"): builder.tensor, ("torch._utils", "_rebuild_tensor_v2"): builder.tensor,
        ("torch._utils", "_rebuild_tensor_v3"): builder.typed_tensor,
        ("torch._utils", "_rebuild_parameter"): builder.parameter,
        ("torch._utils", "_rebuild_parameter_with_state"): builder.parameter,
        ("torch._tensor", "_rebuild_from_type_v2"): builder.of_class, ("torch", "_rebuild_from_type_v2"): builder.of_class,
        ("torch._utils", "_rebuild_sparse_tensor"): builder.sparse_tensor, ("torch.serialization", "_get_layout"): _layout,
        ("genesis.functions.methods.conversion", "_rebuilt"): builder.earlier_tensor,
        ("torch", "Size"): _size, ("torch", "device"): _device, ("genesis.runtime.devices", "Device"): _device,
        ("genesis.ir.dtypes", "_named"): NAMED.__getitem__, ("_codecs", "encode"): _encoded,
        ("collections", "OrderedDict"): OrderedDict, ("collections", "Counter"): Counter,
        ("builtins", "set"): set, ("builtins", "frozenset"): frozenset, ("builtins", "bytearray"): _bytearray,
        ("builtins", "complex"): complex,
    }
