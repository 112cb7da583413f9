"""Comparing tensors in tests, and tensors for tests: the API of `torch.testing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from genesis.functions.methods.conversion import values_of
from genesis.ir.annotations import Extents, Tree
from genesis.ir.dtypes import DType, bfloat16, complex128, float16, float32, float64
from genesis.random import rand, randint
from genesis.runtime.devices import DeviceLike
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
__dir__ = __all__.copy

_TOLERANCES = {float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7)}


def assert_close(
    actual: Tree, expected: Tree, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere.

    Args:
        actual, expected: tensors, arrays, numbers or None, or sequences and mappings of them.
        allow_subclasses: whether classes of tensors may differ, if one is the other's base.
        rtol, atol: given together; by default they depend on the dtype (the coarser one of two).
        equal_nan: NaN is close to NaN.
        check_device, check_dtype, check_layout, check_stride: whether these must be equal too.
        msg: the error's message, or a function of the default message.

    Raises TypeError for what is none of these, and for unrelated classes.

    >>> assert_close(genesis.ones(2), genesis.ones(2) + 1e-7)
    >>> assert_close([1, genesis.ones(2)], [1, genesis.zeros(2)])
    Traceback (most recent call last):
    AssertionError: assert_close: item 1: 2 of 2 elements differ, by 1 at most, at (0,): 1 for 0; rtol 1.3e-06, atol 1e-05
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: rtol and atol are given together, or not at all")
    checks = {"device": check_device, "dtype": check_dtype, "layout": check_layout, "stride": check_stride,
              "class": not allow_subclasses}
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    problem = _difference(actual, expected, tolerances, equal_nan, checks)
    if problem:
        text = f"assert_close: {problem}"
        raise AssertionError(msg(text) if callable(msg) else msg or text)


Tolerances = tuple[float, float] | None


def _difference(a: Tree, b: Tree, tolerances: Tolerances, equal_nan: bool, checks: Mapping[str, bool]) -> str:
    """The difference as text, or "" if there is none."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            return f"keys {sorted(map(str, a))} instead of {sorted(map(str, b))}"
        pairs: list[tuple[object, Tree, Tree]] = [(key, a[key], b[key]) for key in a]
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            return f"{len(a)} items instead of {len(b)}"
        pairs = [(index, x, y) for index, (x, y) in enumerate(zip(a, b, strict=True))]
    else:
        return _of_arrays(a, b, tolerances, equal_nan, checks)
    found = ((key, _difference(x, y, tolerances, equal_nan, checks)) for key, x, y in pairs)
    return next((f"item {key}: {problem}" for key, problem in found if problem), "")


def _as_tensors(a: Tree, b: Tree, checks: Mapping[str, bool]) -> tuple[Tensor, Tensor]:
    """Two tensors, or numbers and arrays as tensors. Raises TypeError for other pairs."""
    kinds = [Tensor if isinstance(x, CompositeTensor) else type(x) for x in (a, b)]
    if not isinstance(a, Tensor) and not isinstance(b, Tensor) and not {*kinds} & {str, bytes}:
        a, b = (from_data(np.asarray(x, np.float64 if isinstance(x, float) else None)) for x in (a, b))
    elif not (issubclass(*kinds) or issubclass(*kinds[::-1])) or (checks["class"] and len({*kinds}) > 1):
        raise TypeError(f"assert_close: {kinds[0].__name__} and {kinds[1].__name__}; want two tensors, or two numbers")
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        raise TypeError(f"assert_close: {kinds[0].__name__}; want tensors, numbers, None, or sequences and mappings of them")
    return a, b


def _of_attributes(a: Tensor, b: Tensor, checks: Mapping[str, bool]) -> str:
    """The first attribute that differs, as text."""
    if a.shape != b.shape:
        return f"shape {tuple(a.shape)} instead of {tuple(b.shape)}"
    layouts = [x.layout.name for x in (a, b)]
    same = {"device": (a.device, b.device), "dtype": (a.dtype, b.dtype), "layout": layouts}
    if layouts == ["strided"] * 2:
        same["stride"] = a.stride(), b.stride()
    elif layouts[0] == layouts[1]:
        same["number of values"] = a.values().shape, b.values().shape
    for name, (of_a, of_b) in same.items():
        if checks.get(name, True) and of_a != of_b:
            return f"{name} {of_a} instead of {of_b}"
    return ""


def _of_arrays(a: Tree, b: Tree, tolerances: Tolerances, equal_nan: bool, checks: Mapping[str, bool]) -> str:
    if a is None or b is None:
        return "" if a is b else f"{type(a).__name__} instead of {type(b).__name__}"
    a, b = _as_tensors(a, b, checks)
    if problem := _of_attributes(a, b, checks):
        return problem
    (r, s), (q, u) = (_TOLERANCES.get(t.dtype.real, (0.0, 0.0)) for t in (a, b))
    rtol, atol = tolerances or (max(r, q), max(s, u))
    category = max(a.dtype.category, b.dtype.category)
    wide = complex128 if category == 3 else float64 if category == 2 or rtol or atol else None  # None: integers, exactly
    x, y = (values_of(t.to_dense() if wide is None else t.to_dense().to(wide)) for t in (a, b))
    far = x != y if wide is None else ~np.isclose(x, y, rtol, atol, equal_nan)
    if not far.any():
        return ""
    with np.errstate(invalid="ignore"):
        gaps = np.where(far, np.abs(x - y) if wide else _distances(x, y), 0)
    at = tuple(int(i) for i in np.unravel_index(np.argmax(gaps), gaps.shape))
    return (f"{far.sum()} of {far.size} elements differ, by {gaps[at]:g} at most, at {at}: {x[at]:g} for {y[at]:g}; "
            f"rtol {rtol}, atol {atol}")


def _distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """|x - y| of integers or bools, without overflow."""
    return np.maximum(x, y).astype(np.uint64) - np.minimum(x, y).astype(np.uint64)  # type: ignore[no-any-return]


def assert_allclose(
    actual: Tree, expected: Tree, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """`assert_close` under an old name: dtypes may differ, and NaN is close to NaN.

    >>> assert_allclose(genesis.ones(2), [1, 1])
    """
    pair = [x if isinstance(x, Tensor) else from_data(x) for x in (actual, expected)]
    assert_close(*pair, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def make_tensor(
    *shape: Extents, dtype: DType, device: DeviceLike = None, low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
) -> Tensor:
    """Random numbers in [low, high), by default [-9, 9), without negative ones for unsigned dtypes.

    >>> genesis.testing.make_tensor(2, 3, dtype=genesis.float64).dtype
    genesis.float64
    """
    size: Any = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    least = -9 if dtype.is_signed else 0
    low, high = least if low is None else low, (2 if dtype.category == 0 else 9) if high is None else high
    wide = (*size[:-1], 2 * size[-1]) if noncontiguous and size else size
    if dtype.is_floating_point:
        made = (rand(wide, device=device) * (high - low) + low).to(dtype)
    else:
        made = randint(int(low), int(high), wide, dtype=dtype if dtype.category else None, device=device).to(dtype)
    made = made[..., ::2] if noncontiguous and size else made
    if exclude_zero:
        made = made.masked_fill(made == 0, 1)
    return made.detach().requires_grad_(requires_grad) if requires_grad else made
