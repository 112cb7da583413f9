"""New tensors from data: Python's, NumPy's and other libraries' arrays."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.ir.dtypes import DType, from_numpy_dtype, get_default_dtype
from genesis.ir.errors import ArgumentError
from genesis.runtime.devices import DeviceLike, device_of
from genesis.runtime.dlpack import CUDA, VERSION, Outside, imported
from genesis.tensor.from_python import from_data, from_memory, from_outside
from genesis.tensor.handle import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def tensor(
    data: ArrayLike, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with a copy of `data`: a number, nested lists, a NumPy array or a tensor.

    Ints give int64, floats the default float, bools bool; NumPy arrays keep their dtype.
    Raises TypeError for data without a genesis dtype, ValueError for uneven lists.

    >>> genesis.tensor([[1., 2.], [3., 4.]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return from_data(data, dtype, requires_grad, device)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares the memory of a NumPy array.

    >>> import genesis, numpy
    >>> a = numpy.zeros(2); x = genesis.from_numpy(a); a[0] = 7; x
    tensor([7., 0.], dtype=genesis.float64)
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: wants a NumPy array, got {type(array).__name__}")
    return from_memory(array)


def from_dlpack(ext_tensor: Any, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array, on the CPU or on a GPU.

    `ext_tensor` has DLPack's methods, or is a DLPack capsule. With `copy` the data is copied; with `copy=False`, a
    `device` other than the array's raises ValueError. Raises TypeError for objects without these methods, BufferError for
    other kinds of devices and other dtypes.

    >>> import genesis, numpy
    >>> a = numpy.zeros(2); x = genesis.from_dlpack(a); a[0] = 7; x
    tensor([7., 0.], dtype=genesis.float64)
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        result = from_outside(imported(ext_tensor))
    elif hasattr(ext_tensor, "__dlpack__"):
        result = from_outside(imported(_capsule_of(ext_tensor)))
    else:
        raise TypeError(f"from_dlpack: wants an array with __dlpack__, got {type(ext_tensor).__name__}")
    target = result.device if device is None else device_of(device)
    if target is not result.device:
        if copy is False:
            raise ArgumentError(f"from_dlpack: copy=False, but the array is on {result.device}, not on {target}")
        return result.to(target)
    return result.clone() if copy else result


def _capsule_of(array: Any) -> object:
    """An array's capsule, in the newest version that both sides support."""
    kind, index = array.__dlpack_device__()
    options: dict[str, Any] = {}
    if kind == CUDA:
        gpu = device_of(f"cuda:{index}").memory.gpu
        options["stream"] = gpu.stream or 1  # DLPack calls the default stream 1, not 0
    try:
        return array.__dlpack__(max_version=VERSION, **options)
    except TypeError:  # a library older than DLPack 1.0
        return array.__dlpack__(**options)


def _from_cuda(data: Any) -> Tensor:
    """A tensor that shares the memory of an object with __cuda_array_interface__."""
    about = data.__cuda_array_interface__
    dtype = np.dtype(about["typestr"])
    strides = about.get("strides")
    device_of_data = getattr(data, "device", None)  # not in the interface itself; CuPy's device has `id`, PyTorch's `index`
    number = getattr(device_of_data, "id", getattr(device_of_data, "index", None))
    if number is None:
        number = device_of("cuda").memory.gpu.owner_of(about["data"][0])
    if about.get("stream") is not None:
        device_of(f"cuda:{number}").memory.wait_for(about["stream"])
    return from_outside(Outside(
        about["data"][0], tuple(about["shape"]), strides and tuple(s // dtype.itemsize for s in strides),
        from_numpy_dtype(dtype).name, (CUDA, number), data))


def as_tensor(data: ArrayLike, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """`data` as a tensor. It shares memory with a tensor, NumPy array or GPU array of that dtype and device.

    >>> genesis.as_tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        return data.to(device, dtype)
    if isinstance(data, np.ndarray) and (dtype is None or from_numpy_dtype(data.dtype) is dtype):
        return from_memory(data).to(device_of(device))
    if not isinstance(data, list | tuple | int | float) and hasattr(data, "__cuda_array_interface__"):
        return _from_cuda(data).to(device, dtype)
    return from_data(data, dtype, device=device)


def asarray(
    obj: Any, *, dtype: DType | None = None, device: DeviceLike = None, copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor: a number, nested lists, another array, or a buffer, whose bytes are read as `dtype`.

    It shares memory if possible, unless `copy` is true. Gradients flow to a tensor unless `requires_grad` is False.
    Raises ValueError if `copy` is False and a copy is needed.

    >>> import genesis, numpy
    >>> a = numpy.zeros(2); x = genesis.asarray(a, copy=False); a[0] = 7; x
    tensor([7., 0.], dtype=genesis.float64)
    """
    shared = obj
    if isinstance(obj, bytes | bytearray | memoryview | array):
        obj = np.frombuffer(obj, (dtype or get_default_dtype()).numpy)
    if isinstance(obj, np.ndarray):
        shared, device = from_memory(obj), device_of(device)
    elif not isinstance(obj, Tensor) and (hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule"):
        shared = from_dlpack(obj)
    result = shared.to(device, dtype) if isinstance(shared, Tensor) else from_data(shared, dtype, device=device)
    if copy is False and result is not shared:
        raise ArgumentError("asarray: copy=False, but a copy is needed for this object, dtype or device")
    if copy and result is shared:
        result = result.clone()
    if requires_grad is False:
        return result.detach()
    return result.requires_grad_() if requires_grad and not result.requires_grad else result


def scalar_tensor(
    value: float, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """A 0-d tensor of the default float (or `dtype`).

    >>> genesis.scalar_tensor(2.5)
    tensor(2.5000)
    """
    return from_data(value, dtype or get_default_dtype(), requires_grad, device)
