"""A file's storages: the memory of its tensors, on the device that `map_location` chooses."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from genesis.functions.methods.storage import TypedStorage
from genesis.ir.dtypes import DType, bool_, uint8
from genesis.ir.graph import MOST_BYTES
from genesis.ir.shapes import numel, reach
from genesis.ops.layout import Layout, contiguous_layout
from genesis.runtime.devices import CPU, Device, DeviceLike, device_of
from genesis.runtime.memory import Buffer
from genesis.tensor.handle import Tensor, root_of, share_storage, tensor_of
from genesis.tracing.trace import Array

_MOST_AXES = 64


class StorageKind(NamedTuple):
    """A storage class named by a file: of a dtype, or of bytes."""

    dtype: DType | None


class Source(Protocol):
    """The source of storages' bytes: `read` fills an array with those of a key, `mapped` returns them mapped from the file.

    `check` raises UnpicklingError unless the size is right.
    """

    def check(self, key: str, nbytes: int) -> None: ...

    def read(self, key: str, into: np.ndarray) -> None: ...

    def mapped(self, key: str, nbytes: int) -> np.ndarray | None: ...


class Storage:
    """A run of memory of one dtype that tensors are views of. `device` is its current or future device.

    >>> storage = Storage(None, 8)
    >>> storage.nbytes(), storage.to("cpu:1").device
    (8, device(type='cpu', index=1))
    """

    def __init__(self, dtype: DType | None, nbytes: int, device: Device = CPU) -> None:
        self.dtype = dtype
        self.device = device
        self._nbytes = nbytes
        self._buffer: Buffer | None = None
        self._roots: dict[DType, Tensor] = {}
        self._swapped = False  # bytes of unknown dtype, in the opposite byte order

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._nbytes

    def to(self, device: DeviceLike) -> Storage:
        """The storage, with `device` as its target."""
        return Storage(self.dtype, self._nbytes, device_of(device))

    def cpu(self) -> Storage:
        """The storage, with the CPU as its target."""
        return self.to(CPU)

    def cuda(self, device: int | None = None) -> Storage:
        """The storage, with a GPU as its target."""
        return self.to("cuda" if device is None else f"cuda:{device}")

    def allocate(self, device: Device) -> None:
        """Allocate memory on `device`, for `fill`."""
        self.device, self._buffer = device, Buffer(self._nbytes, device)

    def open(self, key: str, source: Source, swapped: bool, device: Device) -> None:
        """Read the storage's bytes; `swapped` if they are in the opposite byte order."""
        source.check(key, self._nbytes)  # before allocating: the file may claim any size
        content = source.mapped(key, self._nbytes) if device is CPU else None
        if content is None:
            self.allocate(device)
            self.fill(lambda into: source.read(key, into), swapped)
            return
        self._prepare(content, swapped)
        self.device, self._buffer = device, Buffer.wrap(content)

    def fill(self, read: Callable[[np.ndarray], None], swapped: bool) -> None:
        """Let `read` write the storage's bytes."""
        assert self._buffer is not None
        on_host = self.device.memory.is_host
        content = self._buffer.numpy(np.uint8, (self._nbytes,)) if on_host else np.empty(self._nbytes, np.uint8)
        read(content)
        self._prepare(content, swapped)
        if not on_host:
            self.device.memory.write(self._buffer.ptr, content)

    def _prepare(self, content: np.ndarray, swapped: bool) -> None:
        """Converts the bytes for this machine and its kernels: native byte order, bools as 0 and 1."""
        self._swapped = swapped and self.dtype is None
        if swapped and self.dtype is not None and self.dtype.itemsize > 1:
            content.view(f"u{self.dtype.itemsize}").byteswap(inplace=True)
        if self.dtype is bool_ and (content > 1).any():
            np.minimum(content, 1, out=content)

    def tensor(self, dtype: DType, at: Layout) -> Tensor:
        """A tensor of this storage with a layout. The first one that covers all of it is the root of the others."""
        assert self._buffer is not None
        if self._swapped and dtype.itemsize > 1:
            raise pickle.UnpicklingError(f"load: the file holds {dtype.name} in another byte order than {sys.byteorder}")
        root = self._roots.get(dtype)
        if root is None:
            if self._roots:  # two dtypes share these bytes: writes through one are immediate
                self._buffer.expose()
            flat = contiguous_layout((self._nbytes // dtype.itemsize,))
            whole = at.offset == 0 and at.is_contiguous and numel(at.shape) == flat.shape[0]
            root = tensor_of(Array.realized(self._buffer, contiguous_layout(at.shape) if whole else flat, dtype))
            self._roots[dtype] = root
            if whole:
                return root
        view = tensor_of(Array.realized(self._buffer, at, dtype))
        share_storage(view, root, at)
        view._detached = root.requires_grad
        return view


class LoadedStorage(TypedStorage):
    """A file's storage as users see it, whose root is made last, so that a tensor of it can be that; bytes are uint8."""

    def __init__(self, content: Storage | Tensor) -> None:
        if isinstance(content, Storage):
            self.memory = content
        else:
            super().__init__(content)

    @cached_property
    def _root(self) -> Tensor:  # type: ignore[override]
        dtype, nbytes = self.memory.dtype or uint8, self.memory.nbytes()
        return root_of(self.memory.tensor(dtype, contiguous_layout((nbytes // dtype.itemsize,))))

    def __reduce__(self) -> tuple[Any, ...]:
        return TypedStorage, (self._root,)


def checked_layout(elements: int, itemsize: int, offset: object, size: object, stride: object) -> Layout:
    """The layout that a file gives a tensor. Raises UnpicklingError unless it is within a storage of `elements`."""
    if (
        type(offset) is int and offset >= 0
        and isinstance(size, tuple) and isinstance(stride, tuple) and len(size) == len(stride) <= _MOST_AXES
        and all(type(number) is int and number >= 0 for number in (*size, *stride))
        and numel(size) * itemsize <= MOST_BYTES
        and (0 in size or offset + reach(size, stride)[1] <= elements)
    ):
        return Layout(tuple(size), tuple(stride), 0 if 0 in size else offset)
    raise pickle.UnpicklingError(
        f"load: the file is damaged: size {size!r:.60}, stride {stride!r:.60}, offset {offset!r:.20} exceed a storage of "
        f"{elements} elements")


LocationMap = Callable[[Storage, str], Storage | DeviceLike]
MapLocation = DeviceLike | Mapping[DeviceLike, DeviceLike] | LocationMap


def mapped_device(storage: Storage, location: str, map_location: MapLocation) -> Device:
    """The device for a storage that was at `location`. Raises RuntimeError if it does not exist here."""
    chosen: Storage | DeviceLike
    if callable(map_location):
        try:
            chosen = map_location(storage, location)
        except Exception as problem:
            raise RuntimeError(f"load: map_location raised {type(problem).__name__}: {problem}") from problem
    elif isinstance(map_location, Mapping):
        chosen = map_location.get(location, location)
    else:
        chosen = map_location
    if isinstance(chosen, Storage):
        return chosen.device
    try:
        return device_of(location if chosen is None else chosen)
    except ValueError as problem:
        raise RuntimeError(f"load: a tensor's {problem}; with map_location='cpu' it comes to the CPU") from None
