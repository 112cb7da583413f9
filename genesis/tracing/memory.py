"""The memory of realized values, on every device. Only this file reads, writes and copies values on the host."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.ir.dtypes import DType, bool_, float32, float64, int32, int64, uint8
from genesis.ir.shapes import Shape
from genesis.ops.layout import Layout, contiguous_layout
from genesis.runtime.devices import META, Device
from genesis.runtime.memory import Buffer
from genesis.runtime.object_words import address_of

_new = object.__new__
LINE = 64  # numbers that ctypes reads and writes in less time than NumPy takes to make an array
NUMBERS: dict[DType, Any] = {
    float32: ctypes.c_float, float64: ctypes.c_double, int64: ctypes.c_int64, int32: ctypes.c_int32, uint8: ctypes.c_uint8,
    bool_: ctypes.c_bool,
}


@functools.lru_cache(maxsize=4096)
def kernel_strides(layout: Layout) -> Shape | None:
    """The strides of a layout, None if it is contiguous: kernels take only other ones."""
    return None if layout.is_contiguous else layout.strides


@functools.lru_cache(maxsize=1024)
def _array_of(kind: Any, extent: int) -> Any:
    """The type of an array of ctypes' numbers."""
    return kind * extent


class Memory:
    """The memory of a realized array: a buffer and a layout in it, in elements."""

    __slots__ = ("buffer", "layout", "pointer", "strides")

    def __init__(self, buffer: Buffer, layout: Layout, dtype: DType) -> None:
        self.buffer = buffer
        self.layout = layout
        self.pointer = buffer.ptr + layout.offset * dtype.itemsize
        self.strides = kernel_strides(layout)

    @classmethod
    def laid(cls, buffer: Buffer, layout: Layout, start: int, strides: Shape | None) -> Memory:
        """As `Memory(buffer, layout, dtype)`, given the start in bytes and the strides for kernels."""
        memory = _new(cls)
        memory.buffer = buffer
        memory.layout = layout
        memory.pointer = buffer.ptr + start
        memory.strides = strides
        return memory

    def at(self, layout: Layout, dtype: DType, own: DType) -> Memory:
        """The memory of a view with another dtype; `layout` is in elements of `dtype`. This memory, of dtype `own`, is
        contiguous."""
        if start := self.layout.offset * own.itemsize // dtype.itemsize:
            layout = layout._replace(offset=layout.offset + start)
        return self if layout == self.layout and dtype is own else Memory(self.buffer, layout, dtype)

    @classmethod
    def of(cls, values: np.ndarray, dtype: DType, device: Device) -> Memory:
        """New row-major memory on `device`, with `values` converted to `dtype`."""
        buffer = Buffer(values.size * dtype.itemsize, device)
        source = np.ascontiguousarray(values, dtype.numpy)
        if device.memory.is_host:  # making an array over the buffer would take twice as long as copying small values
            ctypes.memmove(buffer.ptr, address_of(source), buffer.nbytes)
        else:
            device.memory.write(buffer.ptr, source)
        return cls.laid(buffer, contiguous_layout(values.shape), 0, None)

    @classmethod
    def of_line(cls, numbers: Sequence[float], shape: Shape, dtype: DType) -> Memory:
        """New memory of the host with Python numbers, which fit `dtype` or overflow to inf."""
        buffer = Buffer(len(numbers) * dtype.itemsize)
        _array_of(NUMBERS[dtype], len(numbers)).from_address(buffer.ptr)[:] = numbers
        return cls.laid(buffer, contiguous_layout(shape), 0, None)

    @classmethod
    def unwritten(cls, shape: Shape, dtype: DType, device: Device) -> Memory:
        """New row-major memory on `device`, uninitialized."""
        return cls(Buffer(math.prod(shape) * dtype.itemsize, device), contiguous_layout(shape), dtype)

    def copied(self, dtype: DType, device: Device) -> Memory:
        """A copy of the values on `device`."""
        if device is META:
            return Memory.unwritten(self.layout.shape, dtype, device)
        if self.strides is not None or device.memory is not self.buffer.device.memory:
            return Memory.of(self.numpy(dtype), dtype, device)
        nbytes = math.prod(self.layout.shape) * dtype.itemsize
        buffer = Buffer(nbytes, device)
        if device.memory.is_host:
            ctypes.memmove(buffer.ptr, self.pointer, nbytes)
        else:
            device.memory.copy(buffer.ptr, self.pointer, nbytes)
        return Memory.laid(buffer, contiguous_layout(self.layout.shape), 0, None)

    def values_as_bytes(self, dtype: DType) -> bytes:
        """The elements in row-major order, on the host."""
        if self.strides is not None:
            return self.numpy(dtype).tobytes()  # type: ignore[no-any-return]
        return ctypes.string_at(self.pointer, math.prod(self.layout.shape) * dtype.itemsize)

    def read(self, dtype: DType) -> Any:
        """An array over this memory, to be read or written, and dropped at once: it is not lent to the outside."""
        if not self.buffer.device.memory.is_host:
            return self.numpy(dtype)
        shape, strides, offset = self.layout
        if 0 in shape:
            return np.empty(shape, dtype.numpy)
        size = dtype.itemsize
        steps = None if self.strides is None else tuple([stride * size for stride in strides])
        return np.ndarray(shape, dtype.numpy, self.buffer.block(), offset * size, steps)

    def listed(self, dtype: DType) -> Any:
        """The elements as nested lists of numbers; one number, if 0-d."""
        shape, kind = self.layout.shape, NUMBERS.get(dtype)
        is_line = kind is not None and self.strides is None and len(shape) == 1 and shape[0] <= LINE
        if is_line and self.buffer.device.memory.is_host:
            return _array_of(kind, shape[0]).from_address(self.pointer)[:]
        values, computed = self.read(dtype), dtype.compute
        return (values if computed is dtype else values.astype(computed.numpy)).tolist()

    def mapped(self, element_map: str, dtype: DType) -> Memory:
        """A copy of the values with an element map (such as conjugation) applied."""
        values = self.numpy(dtype)
        return Memory.of(np.conj(values) if element_map == "conjugates" else -values, dtype, self.buffer.device)

    def overwrite(self, source: Memory, dtype: DType) -> None:
        """Overwrite this memory with the values of `source`, of the same shape and dtype. Raises ValueError for memory that the
        outside gave for reading."""
        device = self.buffer.device
        if not self.buffer.writeable:
            raise ValueError("assignment destination is read-only")
        if device.memory.is_host and source.buffer.device.memory.is_host and self.strides is None is source.strides:
            ctypes.memmove(self.pointer, source.pointer, math.prod(self.layout.shape) * dtype.itemsize)
        elif device.memory.is_host:
            self.read(dtype)[...] = source.read(dtype)
        elif self.layout.is_contiguous and source.layout.is_contiguous and device is source.buffer.device:
            device.memory.copy(self.pointer, source.pointer, math.prod(self.layout.shape) * dtype.itemsize)
        else:
            whole = self.buffer.numpy(np.uint8, (self.buffer.nbytes,)).copy()
            size = dtype.itemsize
            strides = tuple([s * size for s in self.layout.strides])
            np.ndarray(self.layout.shape, dtype.numpy, whole, self.layout.offset * size, strides)[...] = source.numpy(dtype)
            device.memory.write(self.buffer.ptr, whole)

    def numpy(self, dtype: DType) -> Any:
        """An ndarray over this memory; a read-only copy if the host cannot access it."""
        size, at = dtype.itemsize, self.layout
        if 0 in at.shape:
            return self.buffer.numpy(dtype.numpy, at.shape)
        if self.strides is None:
            return self.buffer.numpy(dtype.numpy, at.shape, None, at.offset * size)
        return self.buffer.numpy(dtype.numpy, at.shape, tuple([s * size for s in at.strides]), at.offset * size)


def joined_rows(memories: Sequence[Memory], shape: Shape, dtype: DType) -> Memory | None:
    """Memory of this shape with the values of contiguous memories of one shape, on the host; None for others, and 0-d ones."""
    part = memories[0].layout.shape
    if not part or not all([memory.strides is None and memory.layout.shape == part for memory in memories]):
        return None
    block = _array_of(ctypes.c_ubyte, math.prod(part) * dtype.itemsize)
    joined = b"".join([block.from_address(memory.pointer) for memory in memories])
    buffer = Buffer(len(joined))
    ctypes.memmove(buffer.ptr, joined, len(joined))
    return Memory.laid(buffer, contiguous_layout(shape), 0, None)
