"""Storages: the memory that a tensor and its views share, as PyTorch's storage objects; tensors rebound to others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genesis.functions.creation import empty
from genesis.functions.from_data import from_numpy
from genesis.functions.methods.inspection import TYPES
from genesis.functions.methods.strides import as_strided
from genesis.functions.overrides import function
from genesis.ir.dtypes import NAMED, DType, get_default_dtype, uint8
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import normalize_axes
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import Device, DeviceLike
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor, method, root_of
from genesis.tensor.in_place import refuse_leaf
from genesis.tensor.versions import count_write
from genesis.tracing.state import thread_state


def of_file(filename: str | os.PathLike[str], shared: bool | None, size: int, dtype: DType) -> Tensor:
    """`size` elements of a file as a tensor: with `shared` mapped from the file, which is created if needed, else a copy."""
    kind = np.dtype(dtype.numpy)
    if shared:
        with open(filename, "ab") as file:
            file.truncate(max(os.path.getsize(filename), size * kind.itemsize))
    return from_numpy(np.memmap(filename, kind, "r+" if shared else "c", shape=(size,)))


class TypedStorage:
    """A run of elements of one dtype that tensors are views of: made from a size, a list, or a tensor.

    >>> x = genesis.arange(4.0)
    >>> storage = x[1:3].storage()
    >>> len(storage), storage.tolist(), storage.data_ptr() == x.data_ptr()
    (4, [0.0, 1.0, 2.0, 3.0], True)
    """

    def __init__(
        self, content: int | Sequence[float] | Tensor = 0, *, dtype: DType | None = None, device: DeviceLike = None
    ) -> None:
        if isinstance(content, Tensor):
            array_of(content)
            root = root_of(content)
        elif isinstance(content, int):
            root = empty(content, dtype=dtype, device=device)
        else:
            root = from_data(content, dtype or get_default_dtype(), device=device)
        self._root: Tensor = root

    # ---- properties ----
    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._root.dtype

    @property
    def device(self) -> Device:
        """The device."""
        return self._root.device

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU."""
        return self._root.is_cuda

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._root.data_ptr()

    def element_size(self) -> int:
        """Bytes in one element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Bytes in all elements."""
        return self._root.nbytes

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def is_shared(self) -> bool:
        """Whether other processes may share it."""
        return self._root.is_shared()

    def is_pinned(self) -> bool:
        """Whether it is pinned: never."""
        return False

    def share_memory_(self) -> TypedStorage:
        """Move it to shared memory: processes to which `multiprocessing` sends a tensor of it see it. Returns the storage."""
        self._root.share_memory_()
        return self

    # ---- elements ----
    def _elements(self) -> np.ndarray:
        """The elements, in the storage's memory on the CPU."""
        return self._root.detach().numpy().reshape(-1)

    def __getitem__(self, index: Any) -> Any:
        chosen = self._elements()[index]
        return chosen.item() if np.ndim(chosen) == 0 else type(self)(from_numpy(chosen))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements()[index] = value

    def __iter__(self) -> Iterator[Any]: return iter(self.tolist())
    def __eq__(self, other: object) -> bool: return isinstance(other, TypedStorage) and other._root is self._root

    __hash__ = object.__hash__

    def tolist(self) -> list[Any]:
        """The elements, as a list."""
        values = self._root.detach().cpu().numpy().reshape(-1)
        return values.view(np.uint8).tolist() if self.element_size() != self.dtype.itemsize else values.tolist()

    def fill_(self, value: float) -> TypedStorage:
        """Write `value` everywhere."""
        self._elements()[...] = value
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool | None = None) -> TypedStorage:
        """Write the elements of another storage of the same size."""
        self._elements()[...] = source._elements()
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return type(self)(self._root.detach().clone())

    def cpu(self) -> TypedStorage:
        """A copy on the CPU; itself if it is there already."""
        return type(self)(self._root.detach().cpu())

    def __dlpack__(self, **options: Any) -> object: return from_numpy(self._elements()).__dlpack__(**options)
    def __dlpack_device__(self) -> tuple[int, int]: return self._root.__dlpack_device__()

    @classmethod
    def from_file(
        cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0, *, nbytes: int = 0
    ) -> TypedStorage:
        """`size` elements or `nbytes` of a file: with `shared` mapped from the file, created if needed, else a copy."""
        kind = cls().dtype
        return cls(of_file(filename, shared, size or nbytes // kind.itemsize, kind))

    def untyped(self) -> UntypedStorage:
        """Its bytes."""
        return UntypedStorage(self._root)

    def __repr__(self) -> str:
        return f"TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}"


class UntypedStorage(TypedStorage):
    """A run of bytes that tensors are views of."""

    def __init__(self, content: int | Sequence[float] | Tensor = 0, *, device: DeviceLike = None) -> None:
        super().__init__(content, dtype=uint8, device=device)

    def element_size(self) -> int:
        """1: its elements are bytes."""
        return 1

    def _elements(self) -> np.ndarray:
        return super()._elements().view(np.uint8)

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def __repr__(self) -> str:
        return f"UntypedStorage(device={self.device}) of size {self.size()}"


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes that this tensor and its views share.

    >>> genesis.zeros(4)[2:].untyped_storage().nbytes()
    16
    """
    return UntypedStorage(self)


@method
def storage(self: Tensor) -> TypedStorage:
    """The elements that this tensor and its views share."""
    return TypedStorage(self)


# ---- PyTorch's classes of storages, by dtype ----
class _StorageKind(type):
    """The metaclass of `FloatStorage` and the others: every storage of the dtype, on a kind of device, is an instance."""

    dtype: DType
    kind: str

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and not isinstance(instance, UntypedStorage) and (
            instance.dtype is cls.dtype and instance.device.type == cls.kind)

    def __call__(cls, content: int | Sequence[float] = 0) -> TypedStorage:
        return TypedStorage(content, dtype=cls.dtype, device=cls.kind)


STORAGES, CUDA_STORAGES = ({
    name.replace("Tensor", "Storage"): _StorageKind(
        name.replace("Tensor", "Storage"), (), {"dtype": NAMED[kind], "kind": device, "__module__": module})
    for name, kind in TYPES.items()} for module, device in (("torch", "cpu"), ("torch.cuda", "cuda")))


@method
def storage_type(self: Tensor) -> type:
    """PyTorch's class of its storage, such as `FloatStorage`."""
    kinds = CUDA_STORAGES if self.is_cuda else STORAGES
    return next(kind for kind in kinds.values() if kind.dtype is self.dtype)


# ---- tensors of a storage ----
@method
def set_(
    self: Tensor, source: Tensor | TypedStorage | None = None, storage_offset: int = 0, size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Rebind the tensor to `source`, a tensor or storage of its dtype, and share its memory; returns the tensor.

    With `size` it is `as_strided` of the storage from `storage_offset`, row-major unless `stride` is given. Without `source`
    it has no elements. Raises RuntimeError for tensors that require a gradient while gradients are recorded, and for another
    dtype.

    >>> x, y = genesis.zeros(2), genesis.arange(4.0)
    >>> x.set_(y.storage(), 1, (2,))[0] = 7
    >>> x, y
    (tensor([7., 2.]), tensor([0., 7., 2., 3.]))
    """
    refuse_leaf(self)
    if source is None:
        source = empty(0, dtype=self.dtype, device=self.device)
    given: Tensor = source._root if isinstance(source, TypedStorage) else source
    if thread_state.grad_enabled and (self.requires_grad or (given is source and given.requires_grad)):
        raise RuntimeError("set_: has no gradient; detach() the source, and the tensor, or use genesis.no_grad()")
    if given.dtype is not self.dtype:
        raise RuntimeError(f"set_: the source holds {given.dtype.name}; want the tensor's {self.dtype.name}")
    if size is not None:
        strides = contiguous_layout(tuple(size)).strides if stride is None else stride
        given = as_strided(given.detach(), size, strides, storage_offset)
    elif isinstance(source, TypedStorage):
        given = given.detach().reshape(-1)
    self.data = given
    count_write(self)
    return self


@method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether `tensor` is the same view of the same storage.

    >>> x = genesis.zeros(2, 3)
    >>> x.is_set_to(x.view(2, 3)), x.is_set_to(x[:1])
    (True, False)
    """
    array_of(self), array_of(tensor)
    roots = [root_of(t) for t in (self, tensor)]
    return roots[0] is roots[1] and self.storage_layout == tensor.storage_layout and self._element_map is tensor._element_map


# ---- hash ----
@function()
@method
def hash_tensor(input: Tensor, dim: int | Sequence[int] = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or of all elements' bits, over the axes `dim` (all, if there are none): floats as float64, others as int64.

    >>> genesis.tensor([1, 2, 4]).hash_tensor().item()
    7
    """
    if mode:
        raise ArgumentError(f"hash_tensor: mode is {mode}; want 0, the exclusive or")
    wide = input.double() if input.is_floating_point() else input.long()
    axes = normalize_axes("hash_tensor", dim if isinstance(dim, int) else tuple(dim) or None, input.ndim)
    return call(OPERATIONS["bits_xor"], (wide, axes, keepdim))


NOT_REPLAYABLE = ("is_set_to",)
