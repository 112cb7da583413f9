"""Norms of vectors and matrices, normalization by them, and distances."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from genesis.ir.dtypes import DType
from genesis.ir.graph import Value
from genesis.ir.shapes import normalize_axes, normalize_axis, numel
from genesis.ops.complex_primitives import squared_modulus
from genesis.ops.contraction import matmul, swapped
from genesis.ops.decompositions import svdvals
from genesis.ops.elementwise import clamp, pow, sqrt, where
from genesis.ops.reduction import Axes, amax, amin, sum
from genesis.ops.registry import alike, cast, composite, promoted, widened
from genesis.ops.views import permute_value, reshape_value


def _norm(name: str, x: Value, order: float, axes: tuple[int, ...], keepdim: bool) -> Value:
    """The norm of `x`, widened; where it is 0, so is its gradient."""
    if x.dtype.is_complex and order != 2:
        x = abs(x)
    if (order < 0 or order == inf) and not numel([x.shape[a] for a in axes]):
        raise ValueError(f"{name}: shape {x.shape} has no elements along dim {axes}; the {order}-norm wants one at least")
    if order in (inf, -inf):
        return (amax if order > 0 else amin)(abs(x), axes, keepdim) if axes else abs(x)
    if order == 0:
        return _over(cast(x != 0, x.dtype), axes, keepdim)
    if order == 1:
        return _over(abs(x), axes, keepdim)
    if order < 0:
        nothing = x == 0
        return pow(_over(where(nothing, inf, pow(where(nothing, 1, abs(x)), order)), axes, keepdim), 1 / order)
    return _root(_over(squared_modulus(x) if order == 2 else _power(x, order), axes, keepdim), order)


def _root(total: Value, order: float) -> Value:
    """The root of sums of powers; where it is 0, so is its gradient."""
    nothing = total == 0
    safe = where(nothing, 1, total)
    return where(nothing, 0, sqrt(safe) if order == 2 else pow(safe, 1 / order))


def _power(x: Value, order: float) -> Value:
    """|x|^order. At 0 the slope is 0, also of a root, where it is infinite."""
    if order > 1:
        return pow(abs(x), order)
    nothing = x == 0
    return where(nothing, 0, pow(where(nothing, 1, abs(x)), order))


def _over(x: Value, axes: tuple[int, ...], keepdim: bool) -> Value:
    return sum(x, axes, keepdim) if axes else x


def _greatest(sizes: Value, axis: int, keepdim: bool = False) -> Value:
    """The maximum of nonnegative sizes; 0 if there are none."""
    return (amax if sizes.shape[axis] else sum)(sizes, axis, keepdim)


def _float(name: str, input: Value, dtype: DType | None) -> Value:
    if (dtype or input.dtype).category < 2:
        raise TypeError(f"{name}: wants floating numbers, got {(dtype or input.dtype).name}; convert with .to(genesis.float32)")
    return input if dtype is None else cast(input, dtype)


# ---- norms ----
@composite("vector_norm", method=False, namespace="linalg", takes_complex=True)
def vector_norm(x: Value, ord: float = 2, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Value:
    """sum(|x|^ord)^(1/ord) over `dim` (all axes, if None), whatever the shape.

    `ord` inf is the greatest |x|, -inf the least, and 0 counts the nonzero elements. Where the norm is 0 its gradient is 0.
    Raises TypeError unless `x` is floating.

    >>> x = genesis.tensor([[3.0, 4.0], [6.0, 8.0]])
    >>> genesis.linalg.vector_norm(x, dim=1), genesis.linalg.vector_norm(x, float("inf"))
    (tensor([ 5., 10.]), tensor(8.))
    """
    given = _float("vector_norm", x, dtype)
    axes = normalize_axes("vector_norm", dim, x.ndim)
    return cast(_norm("vector_norm", widened(given), ord, axes, keepdim), given.dtype.real)


@composite("norm", takes_complex=True)
def norm(
    input: Value, p: float | str | None = "fro", dim: Axes = None, keepdim: bool = False, dtype: DType | None = None
) -> Value:
    """sum(|x|^p)^(1/p) over `dim` (all axes, if None); "fro" and None are 2.

    As `linalg.vector_norm`; "nuc" is the sum of the singular values of the matrices on two axes.

    >>> genesis.tensor([[3.0, 4.0], [6.0, 8.0]]).norm(1, dim=0)
    tensor([ 9., 12.])
    """
    if p == "nuc":
        axes = (0, 1) if dim is None and input.ndim == 2 else normalize_axes("norm", dim, input.ndim)
        return matrix_norm(input, "nuc", axes, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f"norm: p is {p!r}; want a number, 'fro', 'nuc' or None")
    order = 2.0 if p is None or isinstance(p, str) else p
    return vector_norm(_float("norm", input, dtype), order, dim, keepdim)


@composite("matrix_norm", method=False, namespace="linalg", takes_complex=True)
def matrix_norm(
    A: Value, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: DType | None = None
) -> Value:
    """The norms of the matrices on two axes: "fro", or the extreme sum of |x| over columns (1, -1) or rows (inf, -inf).

    2 is the greatest singular value, -2 the least, and "nuc" their sum. Raises ValueError for other orders, and
    TypeError unless `A` is floating.

    >>> genesis.linalg.matrix_norm(genesis.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    given = _float("matrix_norm", A, dtype)
    if len(dim) != 2:
        raise ValueError(f"matrix_norm: dim is {tuple(dim)}; want two axes")
    rows, columns = (normalize_axis("matrix_norm", d, A.ndim) for d in dim)
    if ord == "fro":
        return vector_norm(given, 2, (rows, columns), keepdim)
    if rows == columns or ord not in (1, -1, 2, -2, inf, -inf, "nuc"):
        raise ValueError(f"matrix_norm: ord is {ord!r} over {tuple(dim)}; want 'fro', 'nuc', 1, 2, inf, -1, -2 or -inf")
    if ord in (2, -2, "nuc"):
        others = [a for a in range(A.ndim) if a not in (rows, columns)]
        sizes = svdvals(permute_value(widened(given), [*others, rows, columns]))
        found = sum(sizes, -1) if ord == "nuc" else _greatest(sizes, -1) if ord == 2 else amin(sizes, -1)
        extreme = reshape_value(found, tuple([1 if a in (rows, columns) else e for a, e in enumerate(A.shape)]))
    else:
        summed, left = (rows, columns) if ord in (1, -1) else (columns, rows)
        sums = sum(abs(widened(given)), summed, True)
        extreme = _greatest(sums, left, True) if ord in (1, inf) else amin(sums, left, True)
    if not keepdim:
        extreme = reshape_value(extreme, tuple([e for a, e in enumerate(A.shape) if a not in (rows, columns)]))
    return cast(extreme, given.dtype.real)


@composite("normalize", method=False, namespace="nn.functional", takes_complex=True)
def normalize(input: Value, p: float = 2.0, dim: Axes = 1, eps: float = 1e-12) -> Value:
    """`input` divided by its p-norm along `dim`, which is clamped at `eps`.

    >>> genesis.nn.functional.normalize(genesis.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    x = widened(_float("normalize", input, None))
    return cast(x / clamp(_norm("normalize", x, p, normalize_axes("normalize", dim, x.ndim), True), min=eps), input.dtype)


@composite("renorm", autocast="float32", in_place=True, takes_complex=True)
def renorm(input: Value, p: float, dim: int, maxnorm: float) -> Value:
    """`input` with its slices along `dim` scaled down to the p-norm `maxnorm` if theirs is greater.

    >>> genesis.renorm(genesis.tensor([[3.0, 4.0], [0.0, 1.0]]), p=2, dim=0, maxnorm=2.5)
    tensor([[1.5000, 2.0000],
            [0.0000, 1.0000]])
    """
    axis = normalize_axis("renorm", dim, input.ndim)
    if input.ndim < 2 or p <= 0 or maxnorm < 0:
        raise ValueError(f"renorm: p {p}, maxnorm {maxnorm}, shape {input.shape}; want p above 0, maxnorm 0 or more, two axes")
    x = widened(_float("renorm", input, None))
    sizes = _norm("renorm", x, p, tuple([a for a in range(x.ndim) if a != axis]), True)
    return cast(x * where(sizes > maxnorm, maxnorm / (sizes + 1e-7), 1), input.dtype)


# ---- distances ----
@composite("dist", 2, autocast="float32", takes_complex=True)
def dist(input: Value, other: Value, p: float = 2) -> Value:
    """The p-norm of input - other, taken as one vector."""
    a, b = promoted(input, other)
    return norm(_float("dist", a, None) - b, p)


_MODES = {"use_mm_for_euclid_dist_if_necessary": 26, "use_mm_for_euclid_dist": 0, "donot_use_mm_for_euclid_dist": inf}


@composite("cdist", 2, method=False, autocast="float32")
def cdist(x1: Value, x2: Value, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Value:
    """The p-norms of the differences of all rows of `x1` (.., m, k) and `x2` (.., n, k): (.., m, n).

    For p = 2 and more than 25 rows, the default `compute_mode` uses a matrix product, as in PyTorch: half the time, but rows
    that are close relative to their lengths lose digits. "use_mm_for_euclid_dist" always does so,
    "donot_use_mm_for_euclid_dist" never. Raises ValueError for another mode and if the rows' lengths differ.

    >>> genesis.cdist(genesis.tensor([[0.0, 0.0], [3.0, 0.0]]), genesis.tensor([[3.0, 4.0]]))
    tensor([[5.],
            [4.]])
    """
    a, b = alike("cdist", x1, x2)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise ValueError(f"cdist: x1 {a.shape} and x2 {b.shape}; want (.., m, k) and (.., n, k)")
    if p < 0:
        raise ValueError(f"cdist: p is {p}; want 0 or more")
    if compute_mode not in _MODES:
        raise ValueError(f"cdist: compute_mode is {compute_mode!r}; want one of {', '.join(map(repr, _MODES))}")
    x, y = widened(_float("cdist", a, None)), widened(b)
    if p == 2 and max(x.shape[-2], y.shape[-2]) >= _MODES[compute_mode]:
        lengths = [sum(rows * rows, -1, True) for rows in (x, y)]
        squares = lengths[0] + swapped(lengths[1]) - 2 * matmul(x, swapped(y))
        return cast(_root(clamp(squares, min=0), 2), a.dtype)
    columns = swapped(y)  # in memory as such, so that distances to neighbouring rows are computed at once
    columns = y.graph.add("clone", (columns,), columns.shape, columns.dtype, {"materialize": True})
    difference = reshape_value(x, (*x.shape, 1)) - reshape_value(columns, (*y.shape[:-2], 1, *columns.shape[-2:]))
    return cast(_norm("cdist", difference, p, (difference.ndim - 2,), False), a.dtype)
