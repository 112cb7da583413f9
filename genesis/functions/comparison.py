"""Comparisons that return Python values, and facts about dtypes and shapes."""

from __future__ import annotations

import numpy as np

from genesis.functions.overrides import overridable_method
from genesis.ir import dtypes, shapes
from genesis.ir.annotations import Extents, Scalar
from genesis.ir.dtypes import DType, as_dtype
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.shapes import numel as product
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, method
from genesis.tensor.size import Size
from genesis.tracing.memory import LINE
from genesis.tracing.recording_hooks import reads_forbidden


@overridable_method
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether the tensors have the same shape and equal elements.

    >>> genesis.equal(genesis.tensor([1, 2]), genesis.tensor([1, 2]))
    True
    """
    if not isinstance(other, Tensor):
        raise ArgumentTypeError(f"equal: other is a {type(other).__name__}; want a tensor")
    shape = input.shape
    if shape != other.shape:
        return False
    if input.dtype is other.dtype and product(shape) <= LINE and not reads_forbidden():
        return input.tolist() == other.tolist()
    return bool((input == other).all())


@overridable_method
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close in the sense of `isclose`.

    >>> genesis.allclose(genesis.tensor([1.0, 2.0]), genesis.tensor([1.0, 2.0 + 1e-6]))
    True
    """
    if input.dtype is not other.dtype:
        raise ArgumentTypeError(f"allclose: dtypes are {input.dtype.name} and {other.dtype.name}; want one, with .to()")
    close = call(OPERATIONS["isclose"], (input, other, rtol, atol, equal_nan))
    return bool(call(OPERATIONS["all"], (close,)))


@method
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is nonzero. Raises ValueError for another number of elements.

    >>> genesis.is_nonzero(genesis.tensor([2]))
    True
    """
    if input.numel() != 1:
        raise ArgumentError(f"is_nonzero: wants one element, got shape {input.shape}; use any() or all()")
    return bool(input.item())


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a Tensor.

    >>> genesis.is_tensor(genesis.ones(2)), genesis.is_tensor([1.0, 1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


# ---- shapes and dtypes ----
def broadcast_shapes(*shapes_: Extents) -> Size:
    """The shape to which all broadcast.

    >>> genesis.broadcast_shapes((2, 1), (3,))
    genesis.Size([2, 3])
    """
    return Size(shapes.broadcast_shapes("broadcast_shapes", *[(s,) if isinstance(s, int) else tuple(s) for s in shapes_]))


def result_type(tensor1: Tensor | Scalar, tensor2: Tensor | Scalar) -> DType:
    """The result dtype of arithmetic on two tensors or numbers.

    >>> genesis.result_type(genesis.tensor([1, 2]), 1.0)
    genesis.float32
    """
    operands = [
        (x.dtype, 2 if x.shape else 1) if isinstance(x, Tensor) else (dtypes.dtype_of_scalar(x), 0) for x in (tensor1, tensor2)
    ]
    return dtypes.result_type(operands)


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a conversion keeps the category: not from floats to integers, nor from either to bools.

    >>> genesis.can_cast(genesis.int64, genesis.float32), genesis.can_cast(genesis.float32, genesis.int64)
    (True, False)
    """
    return as_dtype("can_cast", from_).category <= as_dtype("can_cast", to).category


class _Limits:
    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype.name
        self.bits = 8 * dtype.itemsize

    def __repr__(self) -> str:
        return f"{type(self).__name__}(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"  # type: ignore[attr-defined]


class finfo(_Limits):
    """The limits of a floating dtype (the default one if None): min, max, eps, tiny, resolution and bits.

    A complex dtype has the limits of its parts.

    >>> genesis.finfo(genesis.float16).max
    65504.0
    """

    def __init__(self, dtype: DType | None = None) -> None:
        dtype = dtypes.get_default_dtype() if dtype is None else as_dtype("finfo", dtype).real
        if not dtype.is_floating_point:
            raise TypeError(f"finfo: wants a floating dtype, got {dtype.name}; use iinfo")
        info = dtypes.float_limits(dtype)
        super().__init__(dtype)
        self.min, self.max, self.eps = float(info.min), float(info.max), float(info.eps)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(f"{float(info.resolution):.0e}")  # a power of ten, not its neighbour in the dtype

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{name}={getattr(self, name):g}' for name in names)}, dtype={self.dtype})"


class iinfo(_Limits):
    """The limits of an integer dtype: min, max and bits.

    >>> genesis.iinfo(genesis.int8).min
    -128
    """

    def __init__(self, dtype: DType) -> None:
        dtype = as_dtype("iinfo", dtype)
        if dtype.category != 1:
            raise TypeError(f"iinfo: wants an integer dtype, got {dtype.name}; use finfo")
        info = np.iinfo(dtype.numpy)
        super().__init__(dtype)
        self.min, self.max = int(info.min), int(info.max)
