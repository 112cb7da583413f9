"""Properties of tensors: extents, strides, device, length."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import overload

from genesis.functions.overrides import function, inspection, routed_access
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import FLOATS_OF_8_BITS, NAMED, DType
from genesis.ir.errors import ArgumentError
from genesis.ir.library import Library
from genesis.ir.shapes import Shape, normalize_axis, numel as product
from genesis.runtime.devices import META, Device
from genesis.tensor.call_modes import OVERRIDES
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, attribute, is_of_inference_mode, method
from genesis.tensor.views import known_views, view
from genesis.tracing.recording_hooks import refuse


class ElementCount(int):
    """The number of elements; called, the shape or one extent of it.

    >>> x = genesis.zeros(2, 3)
    >>> int(x.size), x.size(), x.size(0)
    (6, (2, 3), 2)
    """

    tensor: Tensor | None = None
    shape: Shape

    @overload
    def __call__(self) -> Shape: ...
    @overload
    def __call__(self, dim: int) -> int: ...
    def __call__(self, dim: int | None = None) -> Shape | int:
        if self.tensor is not None:
            return _size(self.tensor) if dim is None else _size(self.tensor, dim)
        return self.shape if dim is None else self.shape[normalize_axis("size", dim, len(self.shape))]


def _extents(self: Tensor, dim: int | None = None) -> Shape | int:
    return self.shape if dim is None else self.shape[normalize_axis("size", dim, len(self.shape))]


_extents.__name__ = "size"
_size = routed_access(_extents)


class _Counted(property):
    """`Tensor.size`, called with a tensor like an unbound method."""

    __name__ = "size"

    def __call__(self, tensor: Tensor, dim: int | None = None) -> Shape | int:
        return _extents(tensor, dim)


def size(self: Tensor) -> ElementCount:
    """The number of elements; `size()` is the shape and `size(dim)` an extent."""
    return _of_tensor(self) if OVERRIDES or self.__class__ is not Tensor else _of_shape(self.shape)


@functools.lru_cache(maxsize=1024, typed=True)  # under PyTorch's name, shapes are of another class
def _of_shape(shape: Shape) -> ElementCount:
    result = ElementCount(product(shape))
    result.shape = shape
    return result


def _of_tensor(tensor: Tensor) -> ElementCount:
    """The count of a tensor whose size modes and classes may override."""
    result = ElementCount(product(tensor.shape))
    result.tensor = tensor
    return result


Tensor.size = _Counted(size)  # type: ignore[assignment, method-assign]


def define_properties(
    show: Callable[[AnyFunction], object], kind: builtins.type, properties: Mapping[str, tuple[str, AnyFunction]]
) -> None:
    """Define attributes (or methods, by `show`) of one type, each from an expression."""
    for name, (doc, expression) in properties.items():
        expression.__name__, expression.__doc__, expression.__annotations__ = name, doc, {"return": kind}
        show(expression)


define_properties(attribute, Device, {"device": ("Where the tensor's memory is.", lambda self: array_of(self).device)})
define_properties(attribute, bool, {
    "is_cpu": ("Whether the tensor is on the CPU.", lambda self: array_of(self).device.type == "cpu"),
    "is_cuda": ("Whether the tensor is on a CUDA device.", lambda self: array_of(self).device.type == "cuda"),
    **{f"is_{kind}": (f"Always False: genesis has no devices of type {kind!r}.", lambda self: False)
       for kind in ("ipu", "maia", "mps", "mtia", "vulkan", "xpu")},
    "is_mkldnn": ("Always False: genesis has no layouts of oneDNN.", lambda self: False),
    **{f"is_{kind}": ("False: this one is dense.", lambda self: False) for kind in ("sparse", "nested")},
    "is_quantized": ("False: there are no quantized tensors here.", lambda self: False),
})
define_properties(attribute, int, {
    "itemsize": ("Bytes in one element.", lambda self: self.dtype.itemsize),
    "nbytes": ("Bytes in all elements.", lambda self: product(self.shape) * self.dtype.itemsize),
})
define_properties(method, bool, {
    "_is_view": ("Whether it views another tensor; a detached one does not, although it shares memory.",
                 lambda self: self._base is not None and (not self._detached or self._detached_root is not None)),
})
define_properties(method, Tensor, {
    "__reversed__": ("The tensor with its first axis walked backwards.", lambda self: self.flip(0) if self.ndim else self),
})
define_properties(method, int, {
    "dim": ("The number of axes.", lambda self: len(self.shape)),
    "ndimension": ("The number of axes.", lambda self: len(self.shape)),
    "const_data_ptr": ("`data_ptr()`.", lambda self: self.data_ptr()),
    "element_size": ("Bytes in one element.", lambda self: self.dtype.itemsize),
})


@method
def storage_offset(self: Tensor) -> int:
    """The offset of the first element in the storage, in elements."""
    return self.storage_layout.offset


@method
def is_contiguous(self: Tensor, memory_format: object = None) -> bool:
    """Whether the elements are contiguous in row-major order, or in channels-last order if `memory_format` is that."""
    if "channels_last" not in str(memory_format):
        return self.storage_layout.is_contiguous
    if self.ndim != (5 if "3d" in str(memory_format) else 4):
        return False
    return view(self, "permute", (0, *range(2, self.ndim), 1)).storage_layout.is_contiguous


@method
def get_device(self: Tensor) -> int:
    """The tensor's GPU number; -1 for other devices."""
    device = array_of(self).device
    return -1 if device.type == "cpu" else device.index or 0


@function()
@method
def is_inference(input: Tensor) -> bool:
    """Whether it was made in inference mode, which alone may write to it, or views what was.

    >>> with genesis.inference_mode():
    ...     x = genesis.zeros(2)
    >>> x[:1].is_inference(), x.clone().is_inference()
    (True, False)
    """
    refuse("it is asked whether a tensor was made in inference mode")
    return is_of_inference_mode(input)


@inspection
def numel(input: Tensor) -> int:
    """The number of elements.

    >>> genesis.numel(genesis.zeros(2, 3))
    6
    """
    return product(input.shape)


@inspection
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is floating.

    >>> genesis.is_floating_point(genesis.tensor([1.0])), genesis.is_floating_point(genesis.tensor([1]))
    (True, False)
    """
    return input.dtype.is_floating_point


@inspection
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    >>> genesis.is_signed(genesis.tensor([1], dtype=genesis.uint8))
    False
    """
    return input.dtype.is_signed


@inspection
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether `other` has the same shape.

    >>> genesis.is_same_size(genesis.ones(2, 1), genesis.ones(2))
    False
    """
    return input.shape == other.shape


@method
def stride(self: Tensor, dim: int | None = None) -> Shape | int:
    """The steps, in elements, between neighbours along each axis (or along `dim`).

    >>> genesis.zeros(2, 3).T.stride()
    (1, 3)
    """
    strides = self.storage_layout.strides
    return strides if dim is None else strides[normalize_axis("stride", dim, len(strides))]


@method
def dim_order(self: Tensor) -> tuple[int, ...]:
    """The axes from the widest stride to the narrowest.

    >>> genesis.zeros(2, 3).T.dim_order()
    (1, 0)
    """
    strides = self.storage_layout.strides
    return tuple(sorted(range(self.ndim), key=lambda axis: -strides[axis]))


@method
def __len__(self: Tensor) -> int:
    if not self.shape:
        raise TypeError("len: a 0-d tensor has no length")
    return self.shape[0]


@method
def __iter__(self: Tensor) -> Iterator[Tensor]:
    if not self.shape:
        raise TypeError("iter: a 0-d tensor cannot be iterated over")
    return iter([known_views.call(self, "select", (0, i)) for i in range(self.shape[0])])


# ---- PyTorch's old names of dtypes ----
TYPES: dict[str, str] = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64", "IntTensor": "int32", "ShortTensor": "int16", "CharTensor": "int8", "ByteTensor": "uint8",
    "BoolTensor": "bool", "ComplexFloatTensor": "complex64", "ComplexDoubleTensor": "complex128",
}
_NAMED_ALONE = {  # dtypes that have such a name but no class
    "ComplexHalfTensor": "complex32", "UInt16Tensor": "uint16", "UInt32Tensor": "uint32", "UInt64Tensor": "uint64",
    **{f"{dtype.name.capitalize()}Tensor": dtype.name for dtype in FLOATS_OF_8_BITS},
}


@method
def type(self: Tensor, dtype: DType | str | None = None) -> Tensor | str:
    """The tensor as `dtype`, a dtype or a name such as "genesis.LongTensor"; without one, its own such name.

    >>> x = genesis.ones(2).type(genesis.int64)
    >>> x, x.type()
    (tensor([1, 1]), 'genesis.LongTensor')
    """
    if dtype is None:
        own = next(name for name, kind in {**TYPES, **_NAMED_ALONE}.items() if kind == self.dtype.name)
        return f"{Library.name}.{'cuda.' if self.device.type == 'cuda' else ''}{own}"
    if isinstance(dtype, str):
        last = dtype.rpartition(".")[2]
        kind = {**TYPES, **_NAMED_ALONE}.get(last, last)
        if kind not in NAMED:
            raise ArgumentError(f"type: there is no {dtype!r}; want one of {', '.join(TYPES)}")
        dtype = NAMED[kind]
    of_class = getattr(dtype, "dtype", None)  # for a class such as torch.LongTensor
    return self.to(of_class if isinstance(of_class, DType) else dtype)


@attribute
def is_meta(self: Tensor) -> bool:
    """Whether the tensor is on the device "meta", and so without values.

    >>> genesis.zeros(2, device="meta").is_meta
    True
    """
    return self.device is META


method(numel, "nelement")
NOT_REPLAYABLE = ("storage_offset",)
