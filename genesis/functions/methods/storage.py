"""Storages: the memory that a tensor and its views share, as an object of its own, by PyTorch's names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genesis.functions.creation import empty
from genesis.functions.from_data import from_numpy
from genesis.functions.methods.inspection import TYPES
from genesis.functions.methods.restriding import as_strided
from genesis.functions.methods.shaping import new_tensor
from genesis.functions.overrides import function
from genesis.ir.dtypes import NAMED, DType, get_default_dtype, uint8
from genesis.ir.errors import ArgumentError
from genesis.ir.replayable import replayable_module
from genesis.ir.shapes import normalize_axes
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import Device, DeviceLike
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor, method
from genesis.tracing.state import thread_state


def of_file(filename: str | os.PathLike[str], shared: bool | None, size: int, dtype: DType) -> Tensor:
    """`size` elements of a file as a tensor: with `shared` in the file itself, which is made if need be, else in memory."""
    kind = np.dtype(dtype.numpy)
    if shared:
        with open(filename, "ab") as file:
            file.truncate(max(os.path.getsize(filename), size * kind.itemsize))
    return from_numpy(np.memmap(filename, kind, "r+" if shared else "c", shape=(size,)))


class TypedStorage:
    """A run of elements of one dtype, which tensors are views of: of so many, of those of a list, or that of a tensor.

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
            root = content if content._base is None else content._base
        elif isinstance(content, int):
            root = empty(content, dtype=dtype, device=device)
        else:
            root = from_data(content, dtype or get_default_dtype(), device=device)
        self._root: Tensor = root

    # ---- what it is ----
    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._root.dtype

    @property
    def device(self) -> Device:
        """Where it is."""
        return self._root.device

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU."""
        return self._root.is_cuda

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

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
        """Whether other processes see it: no."""
        return False

    is_pinned = is_shared

    def share_memory_(self) -> TypedStorage:
        """The storage itself: processes get a copy when it is sent to them."""
        return self

    # ---- its elements ----
    def _elements(self) -> np.ndarray:
        """The elements, in the storage's memory on the CPU."""
        return self._root.detach().numpy().reshape(-1)

    def __getitem__(self, place: Any) -> Any:
        chosen = self._elements()[place]
        return chosen.item() if np.ndim(chosen) == 0 else type(self)(from_numpy(chosen))

    def __setitem__(self, place: Any, value: Any) -> None:
        self._elements()[place] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and other._root is self._root

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
        """Write the elements of another storage of as many."""
        self._elements()[...] = source._elements()
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return type(self)(self._root.detach().clone())

    def cpu(self) -> TypedStorage:
        """A copy on the CPU; itself, if it is there."""
        return type(self)(self._root.detach().cpu())

    def __dlpack__(self, **options: Any) -> object:
        return from_numpy(self._elements()).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._root.__dlpack_device__()

    @classmethod
    def from_file(
        cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0, *, nbytes: int = 0
    ) -> TypedStorage:
        """`size` elements or `nbytes` of a file: with `shared` in the file itself, made if need be, else in memory."""
        kind = cls().dtype
        return cls(of_file(filename, shared, size or nbytes // kind.itemsize, kind))

    def untyped(self) -> UntypedStorage:
        """Its bytes."""
        return UntypedStorage(self._root)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dtype={self.dtype}, device={self.device}) of size {self.size()}"


class UntypedStorage(TypedStorage):
    """A run of bytes, which tensors are views of."""

    def __init__(self, content: int | Sequence[float] | Tensor = 0, *, device: DeviceLike = None) -> None:
        super().__init__(content, dtype=uint8, device=device)

    def element_size(self) -> int:
        """1: what it holds is bytes."""
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
    """The class of `FloatStorage` and its kin: whatever storage has the dtype is an instance of it."""

    dtype: DType

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype

    def __call__(cls, content: int | Sequence[float] = 0) -> TypedStorage:
        return TypedStorage(content, dtype=cls.dtype)


STORAGES = {name: _StorageKind(name, (), {"dtype": NAMED[kind], "__module__": "torch"}) for name, kind in (
    (name.replace("Tensor", "Storage"), kind) for name, kind in TYPES.items())}


@method
def storage_type(self: Tensor) -> type:
    """The class of its storage by PyTorch's name, `FloatStorage`."""
    return next(kind for kind in STORAGES.values() if kind.dtype is self.dtype)


# ---- a tensor on another storage ----
@method
def set_(
    self: Tensor, source: Tensor | TypedStorage | None = None, storage_offset: int = 0, size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Have the tensor be `source` from now on, a tensor or a storage of its dtype, and share its memory; returns the tensor.

    With `size`, it is what `as_strided` makes of the storage: row by row from `storage_offset`, without `stride`. Without
    `source` it has no elements. Raises RuntimeError for a leaf that requires a gradient while gradients are recorded, and for
    another dtype.

    >>> x, y = genesis.zeros(2), genesis.arange(4.0)
    >>> x.set_(y.storage(), 1, (2,))[0] = 7
    >>> x, y
    (tensor([7., 2.]), tensor([0., 7., 2., 3.]))
    """
    if self.requires_grad and self.is_leaf and thread_state.grad_enabled:
        raise RuntimeError("set_: a leaf tensor that requires grad cannot be changed in place; use genesis.no_grad()")
    if source is None:
        source = empty(0, dtype=self.dtype, device=self.device)
    given: Tensor = source._root if isinstance(source, TypedStorage) else source
    if given.dtype is not self.dtype:
        raise RuntimeError(f"set_: the source holds {given.dtype.name}; want the tensor's {self.dtype.name}")
    if size is not None:
        strides = contiguous_layout(tuple(size)).strides if stride is None else stride
        given = as_strided(given.detach(), size, strides, storage_offset)
    elif isinstance(source, TypedStorage):
        given = given.detach().reshape(-1)
    self.data = given
    return self


@function()
@method
def as_strided_(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """`as_strided`, in place: the tensor shows its storage with these strides from now on.

    >>> genesis.arange(4).as_strided_((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    if self.requires_grad and thread_state.grad_enabled:
        raise RuntimeError("as_strided_: a tensor that requires grad has other strides by as_strided(); use that one")
    self.data = as_strided(self.detach(), size, stride, storage_offset)
    return self


@function()
@method
def slice_inverse(
    self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor that `src`, a slice of this one's storage, is laid out as: a view of this one's storage."""
    return as_strided(self, src.shape, src.layout.strides, src.layout.offset)


@method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether `tensor` is the same view of the same storage.

    >>> x = genesis.zeros(2, 3)
    >>> x.is_set_to(x.view(2, 3)), x.is_set_to(x[:1])
    (True, False)
    """
    array_of(self), array_of(tensor)
    roots = [t if t._base is None else t._base for t in (self, tensor)]
    return roots[0] is roots[1] and self.layout == tensor.layout


@method
def dim_order(self: Tensor) -> tuple[int, ...]:
    """The axes from the widest stride to the narrowest.

    >>> genesis.zeros(2, 3).T.dim_order()
    (1, 0)
    """
    strides = self.layout.strides
    return tuple(sorted(range(self.ndim), key=lambda axis: -strides[axis]))


@method
def const_data_ptr(self: Tensor) -> int:
    """`data_ptr()`."""
    return self.data_ptr()


@method
def new(self: Tensor, *content: Any, device: DeviceLike = None) -> Tensor:
    """A tensor of this one's dtype and device: of sizes, of nested lists, or a view of a tensor or a storage.

    >>> genesis.ones(2).new([1, 2])
    tensor([1., 2.])
    """
    if len(content) == 1 and isinstance(content[0], Tensor | TypedStorage):
        return set_(empty(0, dtype=self.dtype, device=self.device), content[0])
    if content and not isinstance(content[0], int) and not isinstance(content[0], tuple):
        return new_tensor(self, content[0], device=device)
    shape = content[0] if content and isinstance(content[0], tuple) else content or (0,)
    return empty(shape, dtype=self.dtype, device=self.device if device is None else device)


@method
def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """A tensor of class `cls` that shares the storage and the derivation."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass: wants a subclass of Tensor, got {cls!r:.60}")
    result = as_strided(self, self.shape, self.layout.strides) if not self.requires_grad else self.view_as(self)
    result.__class__ = cls
    return result


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False, **ignored: object) -> Tensor:
    """A leaf of class `cls` that shares the storage of `data`."""
    return as_subclass(data.detach(), cls).requires_grad_(require_grad)


Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]


# ---- what the values are, in one number ----
@function()
@method
def hash_tensor(self: Tensor, dim: int | Sequence[int] = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or of all elements' bits, over the axes `dim` (all, if there are none): floats as float64, others as int64.

    >>> genesis.tensor([1, 2, 4]).hash_tensor().item()
    7
    """
    if mode:
        raise ArgumentError(f"hash_tensor: mode is {mode}; want 0, the exclusive or")
    wide = self.double() if self.is_floating_point() else self.long()
    axes = normalize_axes("hash_tensor", dim if isinstance(dim, int) else tuple(dim) or None, self.ndim)
    return call(OPERATIONS["bits_xor"], (wide, axes, keepdim))


replayable_module(__name__)
