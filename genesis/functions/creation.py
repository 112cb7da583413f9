"""New tensors: filled with a number, or like another tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

from genesis.functions.overrides import routed_function
from genesis.ir.annotations import Extents, Options
from genesis.ir.dtypes import DType, dtype_of_scalar, get_default_dtype
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.named_layouts import NamedLayout, SparseLayout
from genesis.ir.shapes import Shape
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike, device_of
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import call_on, filled
from genesis.tensor.handle import Operand, Tensor
from genesis.tensor.out import takes_out

_SEQUENCES = tuple, list, Sequence  # in this order, as the last one takes long to ask


def as_shape(name: str, size: Sequence[Extents]) -> tuple[int, ...]:
    """The shape given as `f(2, 3)` or `f((2, 3))`; raises for extents that are not nonnegative ints."""
    is_one = len(size) == 1 and size[0].__class__ is not int and isinstance(size[0], _SEQUENCES)
    extents: Sequence[Any] = size[0] if is_one else size  # type: ignore[assignment]
    for extent in extents:
        if type(extent) is not int or extent < 0:  # a traced number says that its class is int
            return _as_extents(name, extents)
    return tuple(extents)


def _as_extents(name: str, extents: Sequence[Any]) -> tuple[int, ...]:
    try:  # on traced numbers, `operator.index` fails
        shape = tuple([extent.__index__() for extent in extents])
    except AttributeError:
        raise TypeError(f"{name}: extents must be ints, got {tuple(extents)}") from None
    if shape and min(shape) < 0:
        raise ArgumentError(f"{name}: extents must not be negative, got {shape}")
    return shape


class LayoutOptions(TypedDict, total=False):
    """PyTorch's options for memory. A sparse `layout` is one of zeros; the others change nothing."""

    layout: object
    pin_memory: bool
    memory_format: object


SPARSE_ZEROS: list[Callable[[SparseLayout, Shape, DType, DeviceLike], Tensor]] = []  # the function of `sparse` that makes them


def check_layout_options(name: str, options: Options) -> None:
    """Raise TypeError for an unknown option, and for a layout that is none; ValueError for a sparse one."""
    layout = options.get("layout")
    if not isinstance(layout, NamedLayout | None):
        raise ArgumentTypeError(f"{name}(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
    if isinstance(layout, SparseLayout):
        raise ArgumentError(f"{name}: makes dense tensors, got layout {layout!r}; sparse_coo_tensor(size) has zeros alone")
    unknown = options.keys() - LayoutOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument {unknown.pop()!r}")


@takes_out
def full(
    size: Extents, fill_value: Operand, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    **options: Unpack[LayoutOptions],
) -> Tensor:
    """`fill_value` everywhere; the dtype defaults to that of the value.

    >>> genesis.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    shape = as_shape("full", size if isinstance(size, _SEQUENCES) else (size,))
    return _full(shape, fill_value, dtype, device, requires_grad, options)


def _full(
    shape: tuple[int, ...], fill_value: Operand, dtype: DType | None, device: DeviceLike, requires_grad: bool, options: Options,
) -> Tensor:
    """`full` of a checked shape."""
    if options:
        layout = options.get("layout")
        if isinstance(layout, SparseLayout) and fill_value.__class__ is int and fill_value == 0:
            return SPARSE_ZEROS[0](layout, shape, dtype or dtype_of_scalar(0), device).requires_grad_(requires_grad)
        check_layout_options("full", options)
    if isinstance(fill_value, Tensor):
        result = call(OPERATIONS["full"], (fill_value.to(device), shape, dtype or fill_value.dtype))
    elif fill_value.__class__ is int and dtype.__class__ is DType:
        result = call_on(device_of(device), OPERATIONS["full"], (fill_value, shape, dtype))
    else:
        result = filled(fill_value, shape, dtype or dtype_of_scalar(fill_value), device_of(device))
    return result.requires_grad_() if requires_grad else result


@takes_out
def zeros(
    *extents: Extents, size: Extents | None = None, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """Zeros, by default in the default float dtype.

    >>> genesis.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    shape = as_shape("zeros", extents if size is None else (size,))
    return _full(shape, 0, dtype or get_default_dtype(), device, requires_grad, options)


@takes_out
def ones(
    *extents: Extents, size: Extents | None = None, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """Ones, by default in the default float dtype.

    >>> genesis.ones(2)
    tensor([1., 1.])
    """
    shape = as_shape("ones", extents if size is None else (size,))
    return _full(shape, 1, dtype or get_default_dtype(), device, requires_grad, options)


@takes_out
def empty(
    *extents: Extents, size: Extents | None = None, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """An uninitialized tensor; it happens to contain zeros.

    >>> genesis.empty(2, 3).shape
    (2, 3)
    """
    shape = as_shape("empty", extents if size is None else (size,))
    return _full(shape, 0, dtype or get_default_dtype(), device, requires_grad, options)


@routed_function
def full_like(
    input: Tensor, fill_value: Operand, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    **options: Unpack[LayoutOptions],
) -> Tensor:
    """`full` with the shape, dtype and device of `input`.

    >>> genesis.full_like(genesis.zeros(2), 7.0)
    tensor([7., 7.])
    """
    return _full_like(input, fill_value, dtype, device, requires_grad, options)


def _full_like(
    input: Tensor, fill_value: Operand, dtype: DType | None, device: DeviceLike, requires_grad: bool, options: Options
) -> Tensor:
    dtype, device = dtype or input.dtype, device or input.device
    if input.__class__ is not Tensor and isinstance(input, CompositeTensor):
        settings = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": options.get("layout")}
        return input.computed("full_like", (input, fill_value), settings)  # type: ignore[no-any-return]
    return _full(input.shape, fill_value, dtype, device, requires_grad, options)


@routed_function
def zeros_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    **options: Unpack[LayoutOptions],
) -> Tensor:
    """`zeros` with the shape, dtype and device of `input`.

    >>> genesis.zeros_like(genesis.ones(2))
    tensor([0., 0.])
    """
    return _full_like(input, 0, dtype, device, requires_grad, options)


@routed_function
def ones_like(
    input: Tensor, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    **options: Unpack[LayoutOptions],
) -> Tensor:
    """`ones` with the shape, dtype and device of `input`.

    >>> genesis.ones_like(genesis.zeros(2))
    tensor([1., 1.])
    """
    return _full_like(input, 1, dtype, device, requires_grad, options)


empty_like = routed_function(zeros_like, "empty_like")
