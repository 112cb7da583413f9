"""From what a user writes - numbers, nested lists, NumPy arrays - to an ndarray of the dtype that it suggests."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.ir.dtypes import DType, as_dtype, from_numpy_dtype, get_default_dtype

__all__ = ["as_numpy"]


@np.errstate(over="ignore", invalid="ignore")  # what a dtype cannot hold is inf, as in kernels
def as_numpy(data: Any, dtype: DType | None = None) -> np.ndarray:
    """`data` as an ndarray of `dtype`, or of the dtype it suggests.

    NumPy's own types are kept; Python ints are int64, bools bool, and floats the default floating dtype. Raises
    TypeError for what has no genesis dtype, ValueError for lists of uneven lengths.

    >>> as_numpy([1.5, 2]).dtype, as_numpy([1, 2]).dtype, as_numpy(np.float64(1)).dtype
    (dtype('float32'), dtype('int64'), dtype('float64'))
    """
    leaf = _first_leaf(data)
    if hasattr(leaf, "detach"):
        data = _plain(data)
    try:
        values = np.array(data)
    except ValueError as problem:
        raise ValueError(f"tensor: {problem}") from None
    if values.dtype == object:
        raise TypeError(f"tensor: cannot make a tensor of {type(data).__name__} {data!r:.60}; want numbers or bools")
    if dtype is not None:
        return values.astype(as_dtype("tensor", dtype).numpy, copy=False)
    if leaf is None or leaf.__class__ is float or (leaf.__class__ is int and values.dtype == np.float64):
        return values.astype(get_default_dtype().numpy)
    from_numpy_dtype(values.dtype)
    return values


def _first_leaf(data: Any) -> Any:
    """What stands first in nested lists, None in empty ones; arrays are their own leaf."""
    while isinstance(data, list | tuple | range):
        if not len(data):
            return None
        data = data[0]
    return data


def _plain(data: Any) -> Any:
    """Nested lists with the tensors in them as arrays."""
    if isinstance(data, list | tuple):
        return [_plain(item) for item in data]
    return data.numpy(force=True) if hasattr(data, "detach") else data
