"""Tensors from Python data (copied), and over the memory of NumPy and other libraries (shared)."""

from __future__ import annotations

import functools
from types import UnionType
from typing import Any

import numpy as np

from genesis.ir.annotations import Tree
from genesis.ir.dtypes import (
    NAMED, DType, as_dtype, bool_, dtype_of_scalar, from_numpy_dtype, get_default_dtype, int64, promote, refuse_complex_number,
    refuse_number,
)
from genesis.ir.errors import ArgumentError, DataError
from genesis.ir.shapes import Shape, contiguous_strides, reach
from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.registry import OPERATIONS, Operation
from genesis.runtime import dlpack
from genesis.runtime.devices import CPU, Device, DeviceLike, device_of
from genesis.runtime.dlpack import Outside
from genesis.runtime.memory import Buffer
from genesis.runtime.object_words import address_of
from genesis.tensor.dispatch import call, known, moved
from genesis.tensor.handle import CallArguments, Operand, Tensor, from_values, method, new_root, tensor_of
from genesis.tracing.memory import LINE, NUMBERS, Memory
from genesis.tracing.recording_hooks import made_from_python, python_data, refuse
from genesis.tracing.state import current_trace, grad_mode, thread_mode, thread_state
from genesis.tracing.trace import Array


@method
def __init__(
    self: Tensor, array: object, *options: DeviceLike | DType | bool, device: DeviceLike = None, dtype: DType | None = None,
    requires_grad: bool = False, **parameters: object,
) -> None:
    """A tensor with a copy of `array`: nested lists, numbers, a NumPy array or a tensor.

    `dtype`, `device` and `requires_grad` may be given by position, in any order; other parameters are ignored.
    """
    for option in options:
        if isinstance(option, DType):
            dtype = option
        elif isinstance(option, bool):
            requires_grad = option
        elif option is not None:
            device = option
    made = from_data(array, dtype, requires_grad, device)
    self._array, self._requires_grad = made._array, made._requires_grad


def from_memory(values: np.ndarray, requires_grad: bool = False) -> Tensor:
    """A tensor over the memory of `values`. Raises ValueError if its strides are not whole elements.

    The root is all memory between the lowest and the highest element; an array that is not contiguous is a view of it.
    """
    refuse("the memory of a NumPy array is shared")
    dtype = from_numpy_dtype(values.dtype)
    if values.flags.c_contiguous:
        return new_root(Array.realized(Buffer.wrap(values), contiguous_layout(values.shape), dtype), requires_grad)
    size = values.itemsize
    if any(s % size for s in values.strides):
        raise ArgumentError(f"a NumPy array of {size}-byte elements with strides {values.strides} has no tensor; copy() it")
    buffer = Buffer.wrap(values)
    offset = (address_of(values) - buffer.ptr) // size
    return over_buffer(buffer, Layout(values.shape, tuple(s // size for s in values.strides), offset), dtype, requires_grad)


def from_outside(array: Outside) -> Tensor:
    """A tensor over the memory of another library's array, without a copy."""
    kind, index = array.device
    if kind not in (dlpack.CPU, dlpack.CUDA):
        raise BufferError(f"from_dlpack: the array is on a device of DLPack's type {kind}; want the CPU or CUDA")
    refuse("the memory of another library is shared")
    dtype = NAMED.get(array.dtype)
    if dtype is None:
        raise BufferError(f"from_dlpack: genesis has no dtype {array.dtype}; it has {', '.join(NAMED)}")
    strides = array.strides or contiguous_strides(array.shape)
    low, high = reach(array.shape, strides)
    device, size = Device("cuda", index) if kind == dlpack.CUDA else CPU, dtype.itemsize
    buffer = Buffer.outside(array.address + low * size, (high - low) * size, device, array.owner)
    buffer.writeable = array.writeable
    return over_buffer(buffer, Layout(array.shape, strides, -low), dtype)


def over_buffer(buffer: Buffer, at: Layout, dtype: DType, requires_grad: bool = False) -> Tensor:
    """A tensor over an outside buffer; if it is not contiguous, a view of the whole buffer."""
    if at.is_contiguous or 0 in at.shape:
        return new_root(Array.realized(buffer, contiguous_layout(at.shape), dtype), requires_grad)
    result = tensor_of(Array.realized(buffer, at, dtype), requires_grad)
    extent = buffer.nbytes // dtype.itemsize
    result._base, result._layout = new_root(Array.realized(buffer, contiguous_layout((extent,)), dtype)), at
    return result


def _copied(tensor: Tensor, dtype: DType | None, requires_grad: bool, device: DeviceLike) -> Tensor:
    """A leaf with a copy of the present value of `tensor`."""
    if requires_grad and dtype is None and tensor.dtype.category < 2:
        dtype = get_default_dtype()
    with grad_mode(False):
        (tensor,) = [tensor] if device is None else moved([tensor], device_of(device))
        copy = call(OPERATIONS["clone"], (tensor,)) if dtype in (None, tensor.dtype) else call(
            OPERATIONS["to_dtype"], (tensor, dtype))
    copy.requires_grad = requires_grad
    return copy


def from_data(data: Tree, dtype: DType | None = None, requires_grad: bool = False, device: DeviceLike = None) -> Tensor:
    """A tensor with a copy of `data`, in `dtype` or the one that `data` suggests, on `device` or that of a tensor.

    With `requires_grad`, integers become the default float, unless `dtype` says otherwise.
    """
    target = device_of(device)
    dtype = None if dtype is None else as_dtype("tensor", dtype)
    if isinstance(data, Tensor):
        return _copied(data, dtype, requires_grad, device)
    data = python_data(data)
    if dtype is None and target is CPU and not requires_grad and (line := _line(data)) is not None:
        return line
    values = as_numpy(data, dtype)
    kind = from_numpy_dtype(values.dtype)
    if requires_grad and dtype is None and kind.category < 2:
        kind = get_default_dtype()
    result = from_values(values, kind, target)
    result.requires_grad = requires_grad
    return result


def _line(data: Tree) -> Tensor | None:
    """The tensor of one Python number, or of a short list of such of one type, by ctypes; None of other data."""
    numbers: Any = data if data.__class__ in (list, tuple) else (data,)
    kinds = {*map(type, numbers)} if len(numbers) <= LINE else ()
    if len(kinds) != 1:
        return None
    [kind] = kinds
    dtype = get_default_dtype() if kind is float else int64 if kind is int else bool_
    if dtype not in NUMBERS or kind not in (bool, int, float):
        return None
    if kind is int and not -(1 << 63) <= min(numbers) <= max(numbers) < 1 << 63:
        return None
    array = Array.over(Memory.of_line(numbers, (len(numbers),) if numbers is data else (), dtype), dtype)
    made_from_python(array)
    return new_root(array)


@np.errstate(over="ignore", invalid="ignore")  # overflow is inf, as in kernels
def as_numpy(data: Tree, dtype: DType | None = None) -> np.ndarray:
    """`data` as an ndarray of `dtype`, or of the dtype it suggests.

    NumPy's own types are kept; Python ints are int64, bools bool, and floats the default floating dtype. Raises
    TypeError for what has no genesis dtype, ValueError for lists of uneven lengths.

    >>> as_numpy([1.5, 2]).dtype, as_numpy([1, 2]).dtype, as_numpy(np.float64(1)).dtype
    (dtype('float32'), dtype('int64'), dtype('float64'))
    """
    leaf = _first_leaf(data)
    if hasattr(leaf, "detach"):
        dtype, data = dtype or _common_dtype(data), _plain(data)
    try:
        values = np.asarray(data)
    except ValueError as problem:
        raise ArgumentError(f"tensor: {problem}") from None
    if values.dtype == object and _has_only(data, int | float) and (dtype.category > 1 if dtype else not _has_only(data, int)):
        values = np.asarray(data, np.float64)  # integers beyond 64 bits as floats
    elif values.dtype == object:
        raise DataError(f"tensor: cannot make a tensor of {type(data).__name__} {data!r:.60}; want numbers or bools")
    if dtype is not None:
        if values.dtype.kind == "c":
            refuse_complex_number("tensor", complex(values.flat[0]) if values.size else 0j, dtype)
        elif dtype.category == 1 and values.size and not isinstance(data, np.ndarray):
            for extreme in values.min(), values.max():
                refuse_number("tensor", extreme, dtype)
        return values.astype(dtype.numpy, copy=False)
    if values.dtype == np.complex128 and not hasattr(leaf, "dtype"):
        return values.astype(get_default_dtype().complex.numpy)
    is_whole = leaf.__class__ in (bool, int)
    if is_whole and values.dtype in (np.uint64, np.float64) and _has_only(data, int | np.integer):
        raise ArgumentError(f"tensor: {data!r:.60} has an integer beyond int64; want dtype=genesis.uint64, or a float's")
    if leaf is None or leaf.__class__ is float or (is_whole and values.dtype == np.float64):
        return values.astype(get_default_dtype().numpy)
    from_numpy_dtype(values.dtype)
    return values


def _has_only(data: Tree, kinds: UnionType | type) -> bool:
    """Whether all leaves of nested lists are of some classes."""
    return all([_has_only(item, kinds) for item in data]) if isinstance(data, list | tuple) else isinstance(data, kinds)


def _first_leaf(data: Tree) -> object:
    """The first leaf of nested lists, None in empty ones; arrays are their own leaf."""
    while isinstance(data, list | tuple | range):
        if not len(data):
            return None
        data = data[0]
    return data


def _common_dtype(data: Tree) -> DType:
    """The dtype to which all leaves of nested lists with tensors promote: there a 0-d tensor counts as much as others."""
    if isinstance(data, list | tuple):
        return functools.reduce(promote, map(_common_dtype, data), bool_)
    if isinstance(data, Tensor):
        return data.dtype
    return from_numpy_dtype(_plain(data).dtype) if hasattr(data, "detach") else dtype_of_scalar(data)


def _plain(data: Tree) -> Tree:
    """Nested lists with the tensors in them as arrays, those of one element as numbers, as in PyTorch."""
    if isinstance(data, list | tuple):
        items = [_plain(item) for item in data]
        return [item.reshape(()) if isinstance(item, np.ndarray) and item.size == 1 else item for item in items]
    if not hasattr(data, "detach"):
        return data
    return data.numpy(force=True)


# ---- calls without tensors among their arguments ----

_FLOATS = float, complex


def call_on(device: Device, operation: Operation, arguments: CallArguments, target: Tensor | None = None) -> Any:
    """Record a call without tensors among its arguments; its results are on `device`. The target is that of `call`."""
    if device is CPU and not thread_state.multi_device:
        return known.call(operation, arguments, None, False, target)
    current_trace(device)  # from now on this thread's calls check devices
    with thread_mode("device", device):
        return call(operation, arguments)


def filled(value: Operand, shape: Shape, dtype: DType, device: Device = CPU, target: Tensor | None = None) -> Tensor:
    """A tensor of one number everywhere; the target is that of `call`. Raises ValueError for a number that the dtype lacks."""
    if dtype.__class__ is not DType:
        dtype = as_dtype("full", dtype)
    if isinstance(value, _FLOATS) and not max(abs(value.real), abs(value.imag)) < 65504:  # the least floating limit
        refuse_number("full", value, dtype)
    result: Tensor = call_on(device, OPERATIONS["full"], (value, shape, dtype), target)
    return result
