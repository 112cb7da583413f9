"""New arrays."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from genesis.functions import creation, from_data, ranges
from genesis.ir.dtypes import DType, get_default_dtype, int64
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

Shape = int | tuple[int, ...]


def _shape(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: builtins.bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array, unless `copy` is true."""
    return from_data.from_dlpack(x, device=device, copy=copy)


def asarray(obj: Any, /, *, dtype: DType | None = None, device: DeviceLike = None, copy: builtins.bool | None = None) -> Tensor:
    """An array of numbers, of nested sequences, or of another array, whose memory it may share unless `copy` is true.

    Raises ValueError where `copy` is false and a copy cannot be avoided.
    """
    return from_data.asarray(obj, dtype=dtype, device=device, copy=copy)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType | None = None, device: DeviceLike = None
) -> Tensor:
    """start, start + step, .. below `stop`; empty where the step leads away from it."""
    if stop is None:
        start, stop = 0, start
    whole = all([isinstance(v, int) for v in (start, stop, step)])
    kind = dtype or (int64 if whole else get_default_dtype())
    count = max(0, -((start - stop) // step) if whole else math.ceil((stop - start) / step))
    if not count:
        return creation.zeros(0, dtype=kind, device=device)
    return ranges.arange(start, stop, step, dtype=kind, device=device)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: DType | None = None, device: DeviceLike = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """`num` numbers from `start` to `stop` at even distances, without `stop` if `endpoint` is false."""
    values, default = np.linspace(start, stop, num, endpoint=endpoint), get_default_dtype()
    return from_data.tensor(values, dtype=dtype or (default.complex if values.dtype.kind == "c" else default), device=device)


def empty(shape: Shape, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """An array to be written."""
    return creation.empty(_shape(shape), dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """Zeros, of the default float if no `dtype` is given."""
    return creation.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """Ones, of the default float if no `dtype` is given."""
    return creation.ones(_shape(shape), dtype=dtype, device=device)


def full(shape: Shape, fill_value: complex, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """`fill_value` everywhere, in the dtype that it suggests."""
    return creation.full(_shape(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """An array to be written, of the shape of `x`."""
    return creation.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """Zeros of the shape and dtype of `x`."""
    return creation.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """Ones of the shape and dtype of `x`."""
    return creation.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: DType | None = None, device: DeviceLike = None) -> Tensor:
    """`fill_value` in the shape and dtype of `x`."""
    return creation.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: DeviceLike = None
) -> Tensor:
    """Ones on the diagonal `k`, above the main one, and zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    rows = ranges.arange(n_rows, device=device).unsqueeze(1)
    return (rows + k == ranges.arange(columns, device=device)).to(dtype or get_default_dtype())


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Each 1-d array spread over the grid of all."""
    return tuple(ranges.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and below the diagonal `k`, and zeros."""
    return x.tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and above the diagonal `k`, and zeros."""
    return x.triu(k)
