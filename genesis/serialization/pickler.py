"""The pickle of a file: tensors under PyTorch's names, with references to storages instead of their bytes."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

import numpy as np

from genesis.execution.realize import realize
from genesis.ir.dtypes import DType
from genesis.ir.sparse_layouts import SparseLayout
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import Device
from genesis.serialization.names import STORAGES
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.size import Size
from genesis.tensor.views import memory_of
from genesis.tracing.trace import LOCK

_STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}


class _Name:
    """A name written to files; the object need not exist here."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *arguments: object) -> NoReturn:
        raise TypeError(f"{self.module}.{self.name} is a name in files")


_TENSOR, _TYPED = _Name("torch._utils", "_rebuild_tensor_v2"), _Name("torch._utils", "_rebuild_tensor_v3")
_PARAMETER, _PARAMETER_WITH_STATE = (
    _Name("torch._utils", "_rebuild_parameter"), _Name("torch._utils", "_rebuild_parameter_with_state"))
_SPARSE, _LAYOUT = _Name("torch._utils", "_rebuild_sparse_tensor"), _Name("torch.serialization", "_get_layout")
_OF_CLASS = _Name("torch._tensor", "_rebuild_from_type_v2")
_TENSOR_CLASS, _BYTES = _Name("torch", "Tensor"), _Name("torch.storage", "UntypedStorage")
_DEVICE, _SIZE = _Name("torch", "device"), _Name("torch", "Size")
_NAMES = {
    name: _Name("torch", name) for name in (
        *STORAGES, "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
        "complex32", "complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
        "float8_e5m2fnuz", "float8_e8m0fnu")
}


class _Reference:
    """A reference to a root's storage, instead of its bytes."""

    __slots__ = ("identity",)

    def __init__(self, *identity: object) -> None:
        self.identity = identity


_PurePickler: Any = pickle._Pickler  # the Python implementation can write names of missing objects


class Pickler(_PurePickler):
    """A Pickler that collects the storages of the tensors it meets."""

    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self._roots: dict[int, tuple[str, Tensor]] = {}

    def storages(self) -> Iterator[tuple[str, np.ndarray]]:
        """The key of each storage, and its bytes."""
        for key, root in self._roots.values():
            with LOCK:  # a compiled call in another thread may write it
                yield key, memory_of(root).numpy(root.dtype).reshape(-1).view(np.uint8)

    def persistent_id(self, obj: Any) -> tuple[object, ...] | None:
        return ("storage", *obj.identity) if type(obj) is _Reference else None

    def reducer_override(self, obj: Any) -> Any:
        """Reduces tensors, devices and sizes; other objects reduce themselves."""
        if isinstance(obj, Device):
            return _DEVICE, (str(obj),)
        if type(obj) is Size:
            return _SIZE, (tuple(obj),)
        if isinstance(obj, SparseTensor):
            return _SPARSE, self._sparse(obj)
        if isinstance(obj, SparseLayout):
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
        return _OF_CLASS, (function, _TENSOR_CLASS if type(obj) is Tensor else type(obj), arguments, own)

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
        key, _ = self._roots.setdefault(id(root), (str(len(self._roots)), root))
        dtype, layout, elements = tensor.dtype, tensor.layout, root.numel()
        kind = _STORAGE_OF.get(dtype.name)
        hooks: OrderedDict[int, object] = OrderedDict()
        if kind is not None:
            storage = _Reference(_NAMES[kind], key, str(root.device), elements)
            return _TENSOR, (storage, layout.offset, tuple(layout.shape), tuple(layout.strides), requires_grad, hooks)
        storage = _Reference(_BYTES, key, str(root.device), elements * dtype.itemsize)
        return _TYPED, (storage, layout.offset, tuple(layout.shape), tuple(layout.strides), requires_grad, hooks, dtype)

    def _save_name(self, name: _Name) -> None:
        self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())
        self.memoize(name)

    def _save_dtype(self, dtype: DType) -> None:
        self.save(_NAMES[dtype.name])

    def _save_part(self, part: _Part) -> None:
        self.save_reduce(part.function, part.arguments)


class _Part:
    """The tensor inside a parameter, which is not an object of its own."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: _Name, arguments: tuple[object, ...]) -> None:
        self.function = function
        self.arguments = arguments


Pickler.dispatch = {
    **_PurePickler.dispatch, _Name: Pickler._save_name, DType: Pickler._save_dtype, _Part: Pickler._save_part,
}
