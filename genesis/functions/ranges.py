"""New tensors of evenly spaced numbers, and grids of indices."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from ctypes import c_float
from typing import Any, Unpack

import numpy as np

from genesis.functions.creation import LayoutOptions, as_shape, check_layout_options
from genesis.functions.overrides import overridable, routed_function
from genesis.ir.dtypes import STORED, DType, as_dtype, float32, get_default_dtype, int64, refuse_number
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ops.registry import OPERATIONS, wrapped
from genesis.runtime.devices import DeviceLike, device_of
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import call_on
from genesis.tensor.handle import Operand, Tensor, from_values
from genesis.tensor.out import takes_out


@takes_out
def arange(
    start: Operand, end: Operand | None = None, step: Operand = 1, *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """start, start+step, .. before `end`; `arange(end)` starts at 0.

    Ints give int64, floats the default float. With int64, all three are truncated to integers first. Raises ValueError for a
    step of 0 or away from `end`.

    >>> genesis.arange(4), genesis.arange(1, 2, 0.5)
    (tensor([0, 1, 2, 3]), tensor([1.0000, 1.5000]))
    """
    if options:
        check_layout_options("arange", options)
    device = device_of(device)
    if end is None:
        start, end = 0, start
    low, high, by = (_real_number("arange", v) for v in (start, end, step))
    if dtype is not None and as_dtype("arange", dtype) is int64:
        low, high, by = int(low), int(high), int(by)
    if by == 0 or (high - low) * by < 0:
        raise ArgumentError(f"arange: step {by} does not lead from {low} to {high}")
    if dtype is None:
        whole = builtins.all(isinstance(v, int) for v in (low, high, by))
        dtype = int64 if whole else get_default_dtype()
    count = max(0, math.ceil((high - low) / by))
    result = call_on(device, OPERATIONS["arange"], (low, by, count, dtype))
    return result.requires_grad_() if requires_grad else result


def _real_number(name: str, number: Operand) -> Any:
    """The number, possibly from a tensor; raises TypeError for a complex one."""
    number = number.item() if isinstance(number, Tensor | np.generic) else number
    if isinstance(number, complex):
        raise ArgumentTypeError(f"{name}: wants real numbers, got {number}")
    return number


@takes_out
def linspace(
    start: complex, end: complex, steps: int, *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, both included; complex if an end or `dtype` is.

    >>> genesis.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    numbers = _spaced("linspace", start, end, steps, dtype, device, True)
    return _rounded("linspace", numbers, dtype, device, requires_grad, options)


def _spaced(
    name: str, start: Operand, end: Operand, steps: int, dtype: DType | None, device: DeviceLike, is_rounded: bool = False
) -> Tensor:
    """Evenly spaced numbers in float64 or complex128. Integers, and what is rounded to float32, have ends of that dtype and
    are computed from the nearer one; they are in that dtype if `is_rounded`. Ends that are tensors are not read.

    Raises TypeError for a number of steps that is no int, and ValueError for a negative one and for an end outside an integer
    dtype's range.
    """
    (steps,) = as_shape(name, (steps,))
    dtype = get_default_dtype() if dtype is None else as_dtype(name, dtype)
    narrow = dtype if dtype.category == 1 or dtype is float32 else None
    low, high = [_end(name, x, dtype) for x in (start, end)]
    device = next((x.device for x in (low, high) if isinstance(x, Tensor)), device)
    return call_on(device_of(device), OPERATIONS["linspace"], (low, high, steps, narrow, is_rounded))


def _end(name: str, end: Operand, dtype: DType) -> Operand:
    """An end, without a derivation; a real number is rounded to integers and to float32."""
    if isinstance(end, Tensor):
        if end.ndim:
            raise ArgumentError(f"{name}: an end has shape {end.shape}; want a number or a tensor of no axes")
        return end.detach()
    if isinstance(end, complex):
        return end
    refuse_number(name, end, dtype)
    if dtype is float32:
        return c_float(float(end)).value
    return wrapped(int(end.real), dtype) if dtype.category == 1 else end


def _rounded(
    name: str, numbers: Tensor, dtype: DType | None, device: DeviceLike, requires_grad: bool, options: LayoutOptions
) -> Tensor:
    """The numbers in `dtype`, or the default one; raises TypeError for real numbers between complex ends."""
    if options:
        check_layout_options(name, options)
    is_complex, default = numbers.dtype.is_complex, get_default_dtype()
    dtype = as_dtype(name, dtype or (default.complex if is_complex else default))
    if is_complex and not dtype.is_complex:
        raise ArgumentTypeError(f"{name}: the ends are complex, and dtype is {dtype.name}; want complex64 or complex128")
    rounded = numbers if numbers.dtype is dtype and device is None else numbers.to(dtype, device=device)
    return rounded.requires_grad_() if requires_grad else rounded


@takes_out
def logspace(
    start: complex, end: complex, steps: int, base: complex = 10.0, *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """`steps` numbers from base**start to base**end, at even ratios.

    >>> genesis.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    numbers = base ** _spaced("logspace", start, end, steps, dtype, device)
    return _rounded("logspace", numbers, dtype, device, requires_grad, options)


@takes_out
def eye(
    n: int, m: int | None = None, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False,
    **options: Unpack[LayoutOptions],
) -> Tensor:
    """The matrix (n, m) with ones on its diagonal.

    >>> genesis.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if options:
        check_layout_options("eye", options)
    n, m = as_shape("eye", (n, n if m is None else m))
    dtype = as_dtype("eye", dtype or get_default_dtype())
    computed = float32 if dtype in STORED else dtype
    result = call_on(device_of(device), OPERATIONS["eye"], (1, n, m, computed))
    if computed is not dtype:
        result = result.to(dtype)
    return result.requires_grad_() if requires_grad else result  # type: ignore[no-any-return]


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType = int64, device: DeviceLike = None, **options: Unpack[LayoutOptions]
) -> Tensor:
    """Row and column of every element of a (row, col) matrix on or below a diagonal: (2, count).

    >>> genesis.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _constant("tril_indices", np.stack(np.tril_indices(row, offset, col)), dtype, device, options)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType = int64, device: DeviceLike = None, **options: Unpack[LayoutOptions]
) -> Tensor:
    """Row and column of every element of a (row, col) matrix on or above a diagonal: (2, count).

    >>> genesis.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _constant("triu_indices", np.stack(np.triu_indices(row, offset, col)), dtype, device, options)


def _constant(name: str, values: np.ndarray, dtype: DType, device: DeviceLike, options: LayoutOptions) -> Tensor:
    """A tensor of values that depend only on numbers: a compiled call that makes it can be replayed, and copies them."""
    if options:
        check_layout_options(name, options)
    return call(OPERATIONS["clone"], (from_values(values, as_dtype("tensor", dtype), device_of(device)),))  # type: ignore[no-any-return]


@overridable
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All rows of `r` elements of a vector, in their order; with replacement, of an element several times too.

    >>> genesis.combinations(genesis.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    if input.ndim != 1 or r < 0:
        raise ArgumentError(f"combinations: {r} elements of shape {tuple(input.shape)}; want 0 or more of a vector")
    if r == 0:
        return input[:0]
    count, positions, first = input.shape[0], np.zeros((1, 0), np.int64), np.zeros(1, np.int64)
    for _ in range(r):  # each row so far is repeated before all elements that may follow it, from `first` on
        sizes = count - first
        last = np.arange(sizes.sum()) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
        positions = np.column_stack([np.repeat(positions, sizes, axis=0), last])
        first = last + (not with_replacement)
    return input[_constant("combinations", positions, int64, input.device, {})]


@routed_function
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Each 1-d tensor spread over the grid of all of them; "xy" exchanges the first two axes.

    >>> a, b = genesis.meshgrid(genesis.arange(2), genesis.arange(3))
    >>> a.shape, b[0]
    ((2, 3), tensor([0, 1, 2]))
    """
    listed: list[Any] = [*(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors)]
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    if any([t.ndim > 1 for t in listed]) or len({t.dtype for t in listed}) != 1:
        kinds = [f"{t.dtype.name} {tuple(t.shape)}" for t in listed]
        raise ArgumentError(f"meshgrid: got {kinds}; want tensors of no axis or one, at least one, and all of one dtype")
    exchanged = indexing == "xy" and len(listed) > 1
    if exchanged:
        listed[0], listed[1] = listed[1], listed[0]
    shape = tuple(t.numel() for t in listed)
    grids = [t.reshape((1,) * i + (-1,) + (1,) * (len(listed) - i - 1)).expand(shape) for i, t in enumerate(listed)]
    if exchanged:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)
