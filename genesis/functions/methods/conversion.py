"""Conversions: to Python numbers and lists, between dtypes and devices; copies and pickles."""

from __future__ import annotations

import builtins
import operator
import warnings
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from genesis.execution.realize import realize, realize_by_twin
from genesis.functions.memory_order import is_row_major
from genesis.functions.methods.strides import share_copy
from genesis.functions.overrides import overridable_method, routed_access_method
from genesis.functions.random_draws import is_shared_by_examples
from genesis.ir.annotations import Arguments, Attributes, Tree
from genesis.ir.dtypes import (
    NAMED, STORED, DType, as_dtype, bfloat16, bool_, complex32, complex64, complex128, float8_e4m3fn, float8_e8m0fnu, float16,
    float32, float64, int8, int16, int32, int64, uint8,
)
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.shapes import numel as product
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import CPU, Device, DeviceLike, device_of
from genesis.runtime.rng import Generator
from genesis.tensor.dispatch import array_of, call, known, moved
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor, from_values, hold_gradient, method
from genesis.tensor.known_calls.calls import KnownCalls
from genesis.tensor.users_attributes import users_attributes
from genesis.tensor.views import detach, share_data
from genesis.tracing.memory import NUMBERS, Memory
from genesis.tracing.recording_hooks import item_read, reads_forbidden, refuse, values_read
from genesis.tracing.state import thread_state
from genesis.tracing.trace import LOCK, Array


def values_of(tensor: Tensor) -> np.ndarray:
    """The values, computed now, as a temporary array: read it at once and drop it."""
    with LOCK:
        return _memory_read(tensor).read(tensor.dtype)  # type: ignore[no-any-return]


def _memory_read(tensor: Tensor) -> Memory:
    """The memory of the values, computed now, which are read at once. The caller holds LOCK, as a compiled call in another
    thread may write them."""
    array = tensor._array if tensor._base is None else array_of(tensor)
    if thread_state.recorder is not None:
        values_read(array)
    return _computed(array)


def _computed(array: Array) -> Memory:
    """The memory of a value, computed now; a vmapped function goes on after a look at what its examples share."""
    return array.memory or (realize_by_twin if is_shared_by_examples(array) else realize)(array)


# ---- to Python ----
@routed_access_method
def item(self: Tensor) -> bool | int | float:
    """The one element, as a Python number. Raises ValueError unless there is exactly one.

    >>> genesis.tensor([2.5]).item()
    2.5
    """
    return _looks.call(self, True)  # type: ignore[no-any-return]


def _looked_at(tensor: Tensor, is_number: bool) -> Any:
    """The values, by Python."""
    if is_number:
        return _number(tensor)
    with LOCK:
        return _memory_read(tensor).listed(tensor._array.node.dtype)


_looks = KnownCalls("genesis_look", _looked_at)


def _number(tensor: Tensor) -> bool | int | float:
    """The one element, by Python."""
    if thread_state.recorder is not None:
        return item_read(tensor)
    array = tensor._array if tensor._base is None else array_of(tensor)
    kind, shape = NUMBERS.get(array.node.dtype), array.node.shape
    if kind is not None and (not shape or product(shape) == 1):
        with LOCK:
            memory = _computed(array)
            if memory.buffer.device.memory.is_host:
                return kind.from_address(memory.pointer).value  # type: ignore[no-any-return]
    values = values_of(tensor)
    if values.size != 1:
        raise ArgumentError(f"item: a tensor of shape {tensor.shape} is not one number; want exactly one element")
    return values.astype(tensor.dtype.compute.numpy).item()


@routed_access_method
def tolist(self: Tensor) -> Tree:
    """The elements as nested lists of Python numbers (one number, if 0-d).

    >>> genesis.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return _looks.call(self, False)  # type: ignore[no-any-return]


@routed_access_method
def __bool__(self: Tensor) -> bool:
    if self._array.node.shape and self.numel() != 1:
        raise ArgumentError(f"bool: the truth of a tensor of shape {self.shape} is ambiguous; use .any() or .all()")
    return bool(_looks.call(self, True))


@routed_access_method
def __float__(self: Tensor) -> float:
    return float(_real_item("float", self))


@routed_access_method
def __complex__(self: Tensor) -> complex:
    return complex(_looks.call(self, True))


@routed_access_method
def __int__(self: Tensor) -> int:
    return int(_real_item("int", self))


def _real_item(name: str, tensor: Tensor) -> bool | int | float:
    number = _looks.call(tensor, True)
    if isinstance(number, complex):
        if not number.imag:
            return number.real
        raise ArgumentTypeError(f"{name}: wants a real number, got {number}; take its real or imag, or abs()")
    return number


@routed_access_method
def __index__(self: Tensor) -> int:
    if self.dtype.is_floating_point:
        raise TypeError(f"index: only integer tensors of one element are indices, this one is {self.dtype.name}")
    if self.numel() != 1:
        raise TypeError(f"index: only integer tensors of one element are indices, this one has shape {self.shape}")
    return operator.index(int(_looks.call(self, True)))


@method
def __contains__(self: Tensor, element: object) -> bool:
    if not isinstance(element, Tensor | int | float | complex | np.generic):
        raise ArgumentTypeError(f"in: looks for a Tensor or a number among the elements, got {type(element).__name__}")
    return bool((self == element).any().item())


@method
def __format__(self: Tensor, specification: str) -> str:
    if self.shape and specification:
        raise TypeError(f"unsupported format string {specification!r} of a tensor of shape {self.shape}; want one of no axes")
    return format(str(self) if self.shape else self.item(), specification)


# ---- between dtypes and devices ----
@method
def to(
    self: Tensor, *targets: DType | DeviceLike | Tensor, dtype: DType | None = None, device: DeviceLike = None,
    copy: bool = False, non_blocking: bool = False, memory_format: object = None,
) -> Tensor:
    """The tensor in another dtype or on another device, or like another tensor; itself if nothing changes.

    Gradients flow back to the tensor's device. `dtype` may also be a name or a NumPy dtype. `memory_format` has no effect:
    tensors are row-major.

    >>> genesis.tensor([1.9, -1.9]).to(genesis.int32)
    tensor([ 1, -1], dtype=genesis.int32)
    >>> genesis.tensor([1.0, 2.0]).to("cpu:1")
    tensor([1., 2.], device='cpu:1')
    """
    for target in targets:
        if isinstance(target, DType):
            dtype = target
        elif isinstance(target, Tensor):
            dtype, device = target.dtype, target.device
        elif isinstance(target, str) and target in NAMED:
            dtype = NAMED[target]
        elif isinstance(target, str | Device):
            device = target
        elif isinstance(target, builtins.type | np.dtype):
            dtype = as_dtype("to", target)
        elif target is not None and not isinstance(target, bool):
            raise TypeError(f"to: wants a dtype, a device or a tensor, got {type(target).__name__} {target!r}")
    dtype = None if dtype is None else as_dtype("to", dtype)
    result = self
    if dtype is not None and dtype is not self.dtype:
        if dtype in STORED or self.dtype in STORED:
            result = _stored(self, dtype)
        else:
            if self.dtype.is_complex and dtype.category in (1, 2):
                warnings.warn("to: complex numbers as real ones lose their imaginary parts; .real says so", stacklevel=2)
            result = known.call(OPERATIONS["to_dtype"], (self, dtype), None, False, None)
    if device is not None and (there := device_of(device)) is not result.device:
        (result,) = moved([result], there)
    return self.clone() if copy and result is self else result


@np.errstate(over="ignore", invalid="ignore")
def _stored(tensor: Tensor, dtype: DType) -> Tensor:
    """A copy from or to a storage-only dtype, made by the host; no gradient."""
    refuse("values are converted from or to a dtype of storage")
    values = values_of(tensor).astype(np.float32)
    if dtype is float8_e4m3fn:  # it has no infinity: use its largest number, as PyTorch does
        greatest = np.float32(448)
        values = np.clip(values, -greatest, greatest)
    elif dtype is float8_e8m0fnu:  # powers of 2: it has no sign and no 0
        values = np.maximum(np.abs(values), np.float32(2**-127))
    return from_values(values.astype(dtype.numpy), dtype, tensor.device)


@method
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in `other`'s dtype and on its device."""
    return self.to(other)


@method
def cpu(self: Tensor) -> Tensor:
    """The tensor on the first CPU device; itself if it is there already."""
    return self.to(CPU)


@method
def cuda(self: Tensor, device: DeviceLike = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a GPU, a device or its number, the first by default; itself if it is there already."""
    return self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")


@method
def pin_memory(self: Tensor, device: DeviceLike = None) -> Tensor:
    """The tensor itself: transfers to a GPU use pinned memory anyway."""
    return self


@method
def record_stream(self: Tensor, stream: object) -> None:
    """Does nothing: a GPU has one stream."""


def _dtype_method(name: str, dtype: DType) -> None:
    def convert(self: Tensor, memory_format: object = None) -> Tensor:
        return self.to(dtype)

    convert.__name__ = name
    convert.__doc__ = f"The tensor as {dtype.name}."
    method(convert)


for _name, _dtype in {
    "float": float32, "double": float64, "half": float16, "bfloat16": bfloat16, "long": int64, "int": int32,
    "short": int16, "char": int8, "byte": uint8, "bool": bool_,
    "chalf": complex32, "cfloat": complex64, "cdouble": complex128,
}.items():
    _dtype_method(_name, _dtype)


# ---- copies ----
@overridable_method
def clone(input: Tensor, *, memory_format: object = None) -> Tensor:
    """A copy; gradients flow through it. `memory_format` has no effect.

    >>> genesis.clone(genesis.tensor([1, 2]))
    tensor([1, 2])
    """
    return known.call(OPERATIONS["clone"], (input,), None, False, None)  # type: ignore[no-any-return]


@method
def contiguous(self: Tensor, memory_format: object = None) -> Tensor:
    """The tensor itself if it is row-major, otherwise a copy. `memory_format` has no effect."""
    if type(self) is Tensor and Generator.in_pytorchs_order and not reads_forbidden():
        lies_in_rows = self.storage_layout.is_contiguous and is_row_major(self)
        return self if lies_in_rows else call(OPERATIONS["clone"], (self, "rows"))  # type: ignore[no-any-return]
    return self if self.storage_layout.is_contiguous else self.clone()


@routed_access_method
def __deepcopy__(self: Tensor, memo: dict[int, object]) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError("deepcopy: only leaf tensors can be copied deeply; detach() this one")
    result = Tensor.__new__(type(self))  # not its own `__new__`, which may want arguments
    memo[id(self)] = result
    result.__dict__.update({k: v for k, v in self.__dict__.items() if not hasattr(Tensor, k)})
    share_copy(result, self, memo)
    result._requires_grad = self.requires_grad
    if self.grad is not None:
        hold_gradient(result, self.grad.__deepcopy__(memo))
    return result


@method
def to_padded_tensor(self: Tensor, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """A nested tensor as a dense one, see `genesis.nested`; its class has a method of its own. Raises ValueError for others."""
    raise ArgumentError(f"to_padded_tensor: wants a nested tensor, got a dense one of shape {self.shape}")


@routed_access_method
def __copy__(self: Tensor) -> Tensor:
    """`copy.copy`: a leaf that shares the tensor's storage, with its attributes but for `grad`."""
    result = Tensor.__new__(type(self))  # not its own `__new__`, which may want arguments
    result.__dict__.update(users_attributes(self))
    share_data(result, detach(self))
    result._requires_grad = self.requires_grad
    return result


@routed_access_method
def __reduce_ex__(self: Tensor, protocol: SupportsIndex) -> Arguments:
    values = np.ascontiguousarray(self.numpy(force=True)).reshape(self.shape)
    rest = self.dtype, self.requires_grad, users_attributes(self), str(self.device)
    return _rebuilt, (type(self), values.tobytes(), tuple(self.shape), *rest)


def _rebuilt(kind: type[Tensor], content: bytes, shape: tuple[int, ...], dtype: DType, requires_grad: bool,
             own: Attributes, device: str = "cpu") -> Tensor:
    """Rebuilds a tensor from its pickle."""
    values = np.frombuffer(content, dtype.numpy).reshape(shape)
    result = Tensor.__new__(kind)
    result._array, result._requires_grad = from_data(values, device=device)._array, requires_grad
    result.__dict__.update(own)
    return result
