"""New tensors: from data, filled, ranges, and the grids of indices."""

from __future__ import annotations

import builtins
import math
from array import array
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from genesis.ir.annotations import Extents, Options
from genesis.ir.dtypes import DType, complex128, dtype_of_scalar, float64, from_numpy_dtype, get_default_dtype, int64
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.replayable import replayable_module
from genesis.ir.sparse_layouts import SparseLayout
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike, device_of
from genesis.runtime.dlpack import CUDA, VERSION, Outside, imported
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call, call_on, filled
from genesis.tensor.from_python import from_data, from_memory, from_outside
from genesis.tensor.handle import Operand, Tensor
from genesis.tensor.out import takes_out


def as_shape(name: str, size: Sequence[Extents]) -> tuple[int, ...]:
    """The shape that `f(2, 3)` or `f((2, 3))` names; raises for extents that are no counts."""
    extents: Sequence[Any] = size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size
    try:
        shape = tuple([extent.__index__() for extent in extents])  # a traced number has it, and `operator.index` asks its class
    except AttributeError:
        raise TypeError(f"{name}: extents must be ints, got {tuple(extents)}") from None
    if builtins.any(extent < 0 for extent in shape):
        raise ArgumentError(f"{name}: extents must not be negative, got {shape}")
    return shape


class Placing(TypedDict, total=False):
    """How PyTorch's tensors may lie in memory. Those of genesis lie in one way, so these change nothing."""

    layout: object
    pin_memory: bool
    memory_format: object


def check_placing(name: str, placing: Options) -> None:
    """Raise TypeError for what is none of these."""
    if isinstance(layout := placing.get("layout"), SparseLayout):
        raise ArgumentError(f"{name}: makes dense tensors, got layout {layout!r}; sparse_coo_tensor(size) has zeros alone")
    unknown = placing.keys() - Placing.__annotations__.keys()
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument {unknown.pop()!r}")


# ---- from data ----


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

    `ext_tensor` has DLPack's methods, or is a capsule of theirs. With `copy` the tensor has memory of its own; where `copy`
    is False, a `device` other than the array's raises ValueError. Raises TypeError for what has no such methods, BufferError
    for what is on another kind of device or has another dtype.

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
    """An array's capsule, of the newest version that both sides know."""
    kind, index = array.__dlpack_device__()
    options: dict[str, Any] = {}
    if kind == CUDA:
        gpu = device_of(f"cuda:{index}").memory.gpu
        options["stream"] = gpu.stream or 1  # 0 is no stream's name: 1 is the default one's
    try:
        return array.__dlpack__(max_version=VERSION, **options)
    except TypeError:  # a library from before DLPack 1.0
        return array.__dlpack__(**options)


def _from_cuda(data: Any) -> Tensor:
    """A tensor that shares the memory of what has __cuda_array_interface__."""
    about = data.__cuda_array_interface__
    dtype = np.dtype(about["typestr"])
    strides = about.get("strides")
    told = getattr(data, "device", None)  # the interface itself does not tell; CuPy calls the number id, PyTorch index
    place = getattr(told, "id", getattr(told, "index", None))
    if place is None:
        place = device_of("cuda").memory.gpu.owner_of(about["data"][0])
    if about.get("stream") is not None:
        device_of(f"cuda:{place}").memory.wait_for(about["stream"])
    return from_outside(Outside(
        about["data"][0], tuple(about["shape"]), strides and tuple(s // dtype.itemsize for s in strides),
        from_numpy_dtype(dtype).name, (CUDA, place), data))


def as_tensor(data: ArrayLike, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """`data` as a tensor, sharing its memory where it is a tensor, a NumPy array or one of a GPU's, of that dtype and place."""
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
    """`obj` as a tensor: a number, nested lists, another array, or what has a buffer, which is read as `dtype`.

    It shares memory where it can, unless `copy` is true; tensors stay in their graph, unless `requires_grad` is False.
    Raises ValueError where `copy` is False and a copy cannot be avoided.

    >>> import genesis, numpy
    >>> a = numpy.zeros(2); x = genesis.asarray(a, copy=False); a[0] = 7; x
    tensor([7., 0.], dtype=genesis.float64)
    """
    shared = obj
    if isinstance(obj, bytes | bytearray | memoryview | array):
        obj = np.frombuffer(obj, (dtype or get_default_dtype()).numpy)
    if isinstance(obj, np.ndarray):
        shared, device = from_memory(obj), device_of(device)
    elif not isinstance(obj, Tensor) and hasattr(obj, "__dlpack__"):
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
    """A 0-d tensor of the default float (or `dtype`)."""
    return from_data(value, dtype or get_default_dtype(), requires_grad, device)


# ---- filled ----


@takes_out
def full(
    size: Extents, fill_value: Operand, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    **placing: Unpack[Placing],
) -> Tensor:
    """`fill_value` everywhere, in the dtype that it suggests.

    >>> genesis.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if placing:
        check_placing("full", placing)
    shape = as_shape("full", size if isinstance(size, Sequence) else (size,))
    if isinstance(fill_value, Tensor):
        result = call(OPERATIONS["full"], (fill_value.to(device), shape, dtype or fill_value.dtype))
    else:
        result = filled(fill_value, shape, dtype or dtype_of_scalar(fill_value), device_of(device))
    return result.requires_grad_() if requires_grad else result


@takes_out
def zeros(
    *extents: Extents, size: Extents | None = None, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **placing: Unpack[Placing],
) -> Tensor:
    """Zeros, of the default float if no `dtype` is given.

    >>> genesis.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    shape = as_shape("zeros", extents if size is None else (size,))
    return full(shape, 0, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad, **placing)


@takes_out
def ones(
    *extents: Extents, size: Extents | None = None, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **placing: Unpack[Placing],
) -> Tensor:
    """Ones, of the default float if no `dtype` is given."""
    shape = as_shape("ones", extents if size is None else (size,))
    return full(shape, 1, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad, **placing)


@takes_out
def empty(
    *extents: Extents, size: Extents | None = None, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **placing: Unpack[Placing],
) -> Tensor:
    """A tensor to be written; it happens to hold zeros."""
    shape = as_shape("empty", extents if size is None else (size,))
    return full(shape, 0, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad, **placing)


def full_like(
    input: Tensor, fill_value: Operand, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    **placing: Unpack[Placing],
) -> Tensor:
    """`full` of the shape and dtype, and on the device, of `input`."""
    dtype, device = dtype or input.dtype, device or input.device
    if isinstance(input, CompositeTensor):
        settings = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        return input.computed("full_like", (input, fill_value), settings)  # type: ignore[no-any-return]
    return full(input.shape, fill_value, dtype=dtype, device=device, requires_grad=requires_grad, **placing)


def zeros_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    **placing: Unpack[Placing],
) -> Tensor:
    """`zeros` of the shape and dtype, and on the device, of `input`."""
    return full_like(input, 0, dtype=dtype, device=device, requires_grad=requires_grad, **placing)


def ones_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    **placing: Unpack[Placing],
) -> Tensor:
    """`ones` of the shape and dtype, and on the device, of `input`."""
    return full_like(input, 1, dtype=dtype, device=device, requires_grad=requires_grad, **placing)


empty_like = zeros_like


# ---- ranges ----


@takes_out
def arange(
    start: Operand, end: Operand | None = None, step: Operand = 1, *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **placing: Unpack[Placing],
) -> Tensor:
    """start, start+step, .. as long as `end` is not reached; `arange(end)` starts at 0.

    Ints give int64, floats the default float. Raises ValueError for a step that leads away from `end`, or 0.

    >>> genesis.arange(4), genesis.arange(1, 2, 0.5)
    (tensor([0, 1, 2, 3]), tensor([1.0000, 1.5000]))
    """
    if placing:
        check_placing("arange", placing)
    place = device_of(device)
    if end is None:
        start, end = 0, start
    low, high, by = (_real_number("arange", v) for v in (start, end, step))
    if by == 0 or (high - low) * by < 0:
        raise ArgumentError(f"arange: step {by} does not lead from {low} to {high}")
    if dtype is None:
        whole = builtins.all(isinstance(v, int) for v in (low, high, by))
        dtype = int64 if whole else get_default_dtype()
    count = max(0, math.ceil((high - low) / by))
    result = call_on(place, OPERATIONS["arange"], (low, by, count, dtype))
    return result.requires_grad_() if requires_grad else result


def _real_number(name: str, number: Operand) -> Any:
    """The number, which may stand in a tensor; raises TypeError for a complex one."""
    number = number.item() if isinstance(number, Tensor | np.generic) else number
    if isinstance(number, complex):
        raise ArgumentTypeError(f"{name}: wants real numbers, got {number}")
    return number


@takes_out
def linspace(
    start: complex, end: complex, steps: int, *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, at even distances; complex ones if an end or `dtype` is.

    >>> genesis.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    if steps < 0:
        raise ArgumentError(f"linspace: steps must not be negative, got {steps}")
    if isinstance(start, Tensor) or isinstance(end, Tensor):
        return _rounded("linspace", _between(start, end, steps), dtype, device, requires_grad)
    values = np.linspace(start, end, steps)
    return from_data(values, _dtype_of_ends("linspace", values.dtype.kind == "c", dtype), requires_grad, device)


def _dtype_of_ends(name: str, is_complex: bool, dtype: DType | None) -> DType:
    """`dtype`, or the default one; raises TypeError for real numbers between complex ends."""
    found = dtype or (get_default_dtype().complex if is_complex else get_default_dtype())
    if is_complex and not found.is_complex:
        raise ArgumentTypeError(f"{name}: the ends are complex, and dtype is {found.name}; want complex64 or complex128")
    return found


def _rounded(name: str, numbers: Tensor, dtype: DType | None, device: DeviceLike, requires_grad: bool) -> Tensor:
    dtype = _dtype_of_ends(name, numbers.dtype.is_complex, dtype)
    return numbers.to(dtype=dtype, device=device).requires_grad_(requires_grad)


def _between(start: Tensor | complex, end: Tensor | complex, steps: int) -> Tensor:
    """`linspace` of ends that are tensors of no axes, in float64 or complex128: they are not looked at."""
    for x in (start, end):
        if isinstance(x, Tensor) and x.ndim:
            raise ArgumentError(f"linspace: an end has shape {x.shape}; want a number or a tensor of no axes")
    low, high = (x.detach().to(dtype=complex128 if x.dtype.is_complex else float64) if isinstance(x, Tensor) else x
                 for x in (start, end))
    place = next(x.device for x in (start, end) if isinstance(x, Tensor))
    return low + (high - low) * (arange(steps, dtype=float64, device=place) / max(steps - 1, 1))


@takes_out
def logspace(
    start: complex, end: complex, steps: int, base: complex = 10.0, *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers from base**start to base**end, at even ratios."""
    if isinstance(start, Tensor) or isinstance(end, Tensor):
        return _rounded("logspace", base ** _between(start, end, steps), dtype, device, requires_grad)
    values = base ** np.linspace(start, end, steps)
    return from_data(values, _dtype_of_ends("logspace", values.dtype.kind == "c", dtype), requires_grad, device)


@takes_out
def eye(
    n: int, m: int | None = None, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """The matrix (n, m) with ones on its diagonal.

    >>> genesis.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    n, m = as_shape("eye", (n, n if m is None else m))
    rows, columns = arange(n, device=device).unsqueeze(1), arange(m, device=device)
    return (rows == columns).to(dtype or get_default_dtype()).requires_grad_(requires_grad)


# ---- grids of indices ----


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DType = int64, device: DeviceLike = None) -> Tensor:
    """Row and column of every element of a (row, col) matrix on or below a diagonal: (2, count).

    >>> genesis.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return from_data(np.stack(np.tril_indices(row, offset, col)), dtype, device=device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DType = int64, device: DeviceLike = None) -> Tensor:
    """Row and column of every element of a (row, col) matrix on or above a diagonal: (2, count)."""
    return from_data(np.stack(np.triu_indices(row, offset, col)), dtype, device=device)


def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Each 1-d tensor spread over the grid of all of them; "xy" exchanges the first two axes.

    >>> a, b = genesis.meshgrid(genesis.arange(2), genesis.arange(3))
    >>> a.shape, b[0]
    ((2, 3), tensor([0, 1, 2]))
    """
    listed: list[Any] = [*(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors)]
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    exchanged = indexing == "xy" and len(listed) > 1
    if exchanged:
        listed[0], listed[1] = listed[1], listed[0]
    shape = tuple(t.numel() for t in listed)
    grids = [t.reshape((1,) * i + (-1,) + (1,) * (len(listed) - i - 1)).expand(shape) for i, t in enumerate(listed)]
    if exchanged:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


replayable_module(__name__)
