"""Sharing memory with other libraries (NumPy, DLPack, the CUDA array interface) and with other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.execution.flush import flush
from genesis.execution.realize import is_interrupted
from genesis.functions.methods.conversion import values_of
from genesis.functions.overrides import routed_access_method
from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import NOT_NUMPYS
from genesis.ir.errors import ArgumentError
from genesis.runtime import dlpack
from genesis.runtime.deferred import deferred
from genesis.runtime.devices import META
from genesis.runtime.shared_file import SharedFile
from genesis.tensor.dispatch import array_of
from genesis.tensor.from_python import from_memory
from genesis.tensor.handle import LAZY, Tensor, attribute, method, root_of
from genesis.tensor.views import memory_of
from genesis.tracing.memory import Memory
from genesis.tracing.state import readers_of, thread_state
from genesis.tracing.trace import BUSY, LOCK

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from genesis.tensor.process_sharing import move_to_file
else:
    move_to_file = deferred("genesis.tensor.process_sharing", "move_to_file")


@routed_access_method
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The values as an ndarray that shares the tensor's memory: writes to one are seen in the other.

    Pending computations that use this tensor, in any thread, run now, so later writes to the array do not affect them. With
    `force` a tensor that requires a gradient is detached first, and one that is not on the CPU copied there. Otherwise the
    first raises RuntimeError, except under `no_grad`, and the second TypeError.

    >>> x = genesis.zeros(2)
    >>> x.numpy()[0] = 1
    >>> x
    tensor([1., 0.])
    """
    if self._element_map is not None:
        if not force:
            raise RuntimeError(f"numpy: {LAZY[self._element_map]} has no memory of its own; use clone().numpy()")
        return values_of(self).copy()
    if self._requires_grad and not force and thread_state.grad_enabled:
        raise RuntimeError("numpy: this tensor requires a gradient; use .detach().numpy()")
    if not array_of(self).device.memory.is_host:
        if not force:
            raise TypeError(
                f"numpy: can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first.")
        return values_of(self).copy()
    with LOCK:
        root = root_of(self)
        if is_interrupted(root._array):  # inside a signal handler or finalizer: it cannot be shared
            return values_of(self).copy()
        memory = memory_of(self)
        if readers := readers_of(memory.buffer):
            if any([trace.closed is BUSY for trace in readers]):
                return memory.numpy(self.dtype).copy()
            for trace in readers:
                flush(trace)
        return memory.numpy(self.dtype)


@method
def share_memory_(self: Tensor) -> Tensor:
    """Move the storage to shared memory: processes to which `multiprocessing` sends the tensor see it. Returns the tensor.

    In-place writes by one process are seen by the others. No effect on GPUs. Raises RuntimeError for a result that requires a
    gradient.

    >>> genesis.zeros(2).share_memory_().is_shared()
    True
    """
    if not self.is_shared() and self.device.memory.is_host:
        move_to_file(self)
    return self


@method
def is_shared(self: Tensor) -> bool:
    """Whether other processes may share its memory: after `share_memory_`, and on GPUs."""
    memory = root_of(self)._array.memory
    return self.device.type == "cuda" or (memory is not None and isinstance(memory.buffer._owner, SharedFile))


@method
def is_pinned(self: Tensor, device: object = None) -> bool:
    """Whether its memory is pinned: never."""
    return False


@method
def data_ptr(self: Tensor) -> int:
    """The address of the first element, on the tensor's device; 0 on "meta". The storage stays there from now on.

    >>> x = genesis.zeros(4)
    >>> x[1:].data_ptr() - x.data_ptr()
    4
    """
    memory = _seen_outside(self)
    if memory.buffer.device is META:
        return 0
    memory.buffer.expose()
    return memory.pointer


@method
def __array__(self: Tensor, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
    values = self.numpy()
    if dtype is not None and np.dtype(dtype) != values.dtype:
        if copy is False:
            raise ArgumentError(f"__array__: a view of a {self.dtype.name} tensor cannot be {np.dtype(dtype).name}")
        return values.astype(dtype)
    return values.copy() if copy else values


@method
def __dlpack__(
    self: Tensor, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None, copy: bool | None = None,
) -> Any:
    if not isinstance(stream, int | None):
        raise TypeError(f"__dlpack__: stream is a {type(stream).__name__}; want an int or None")
    if dl_device not in (None, self.__dlpack_device__()):
        raise BufferError(f"__dlpack__: the tensor is on {self.device}; use .to() first")
    if self.requires_grad:
        raise RuntimeError("__dlpack__: this tensor requires a gradient; detach() it")
    if self._element_map is not None and not copy:
        raise BufferError(f"__dlpack__: {LAZY[self._element_map]} has no memory of its own; clone() it")
    source = self.clone() if copy else self
    memory, size = _seen_outside(source), self.dtype.itemsize
    layout, buffer = memory.layout, memory.buffer
    start = buffer.ptr + layout.offset * size
    return dlpack.exported(
        start, layout.shape, layout.strides, self.dtype.name, self.__dlpack_device__(), buffer.lent(),
        versioned=max_version is not None and max_version[0] >= 1, writeable=buffer.writeable, copied=bool(copy))


@method
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    device = self.device
    return (dlpack.CPU, 0) if device.memory.is_host else (dlpack.CUDA, device.index or 0)


@attribute
def __array_interface__(self: Tensor) -> Attributes:
    """The tensor's host memory, for other libraries. Raises AttributeError on other devices.

    The entry `data` keeps the memory alive; users of the interface must keep it.
    """
    if (
        self.requires_grad or not self.device.memory.is_host or self.dtype in NOT_NUMPYS or self._element_map is not None
    ):
        want = "use detach(), clone(), to() or cpu()"
        raise AttributeError(f"__array_interface__: has no gradients, no dtypes that NumPy lacks and no GPUs; {want}")
    memory, size = _seen_outside(self), self.dtype.itemsize
    layout = memory.layout
    strides = None if layout.is_contiguous else tuple([s * size for s in layout.strides])
    # An object, not an address: NumPy keeps it, so the memory counts as shared exactly as long as an array uses it.
    return {"data": memory.buffer.lent(), "offset": layout.offset * size, "shape": tuple(layout.shape), "strides": strides,
            "typestr": np.dtype(self.dtype.numpy).str, "version": 3}


@method
def __array_wrap__(self: Tensor, array: np.ndarray, context: object = None, return_scalar: bool = False) -> Tensor:
    """Converts the results of NumPy's functions to tensors."""
    return from_memory(np.asarray(array))


@attribute
def __cuda_array_interface__(self: Tensor) -> Attributes:
    """The tensor's GPU memory, for other libraries. Raises AttributeError on other devices."""
    if self.device.type != "cuda":
        raise AttributeError(f"__cuda_array_interface__: the tensor is on {self.device}; use .cuda()")
    if self.requires_grad or self.dtype in NOT_NUMPYS or self._element_map is not None:
        want = "DLPack does" if self.dtype in NOT_NUMPYS else "detach() or clone() it"
        raise AttributeError(f"__cuda_array_interface__: has no gradients and no dtypes that NumPy lacks; {want}")
    memory, size = _seen_outside(self), self.dtype.itemsize
    memory.buffer.expose()
    strides = None if memory.layout.is_contiguous else tuple([s * size for s in memory.layout.strides])
    return {"data": (memory.buffer.ptr + memory.layout.offset * size, False), "shape": memory.layout.shape, "strides": strides,
            "typestr": np.dtype(self.dtype.numpy).str, "version": 3}


def _seen_outside(tensor: Tensor) -> Memory:
    """A tensor's memory, after every pending computation that reads or writes it."""
    with LOCK:
        memory = memory_of(tensor)
        for trace in readers_of(memory.buffer):
            flush(trace)
        if not memory.buffer.device.memory.is_host:
            memory.buffer.device.memory.synchronize()
    return memory


NOT_REPLAYABLE = ("data_ptr", "is_shared", "__array_interface__", "__cuda_array_interface__", "__dlpack__", "__array__")
