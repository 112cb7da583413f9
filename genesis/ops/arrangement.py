"""Rotation, diagonals, triangles, writing into slices of a copy, and differences along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.ir.dtypes import int64
from genesis.ir.errors import IndexTypeError
from genesis.ir.graph import Value
from genesis.ir.shapes import broadcast_shapes, normalize_axis, numel
from genesis.ops.elementwise import where
from genesis.ops.indexing import check_index, gather_value
from genesis.ops.joining import cat
from genesis.ops.layout import Layout, contiguous_layout, diagonal_layout, select_layout, slice_layout
from genesis.ops.reduction import sum
from genesis.ops.registry import cast, composite, expand
from genesis.ops.rows import formula
from genesis.ops.source import iota
from genesis.ops.views import diagonal_value, flip_value, permute_value, put_value, reshape_value, slice_value

# ---- rotation ----
fliplr = formula("fliplr", lambda input: _flipped("fliplr", input, 1), "Axis 1 walked backwards.", takes_complex=True)
flipud = formula("flipud", lambda input: _flipped("flipud", input, 0), "Axis 0 walked backwards.", takes_complex=True)


def _flipped(name: str, input: Value, axis: int) -> Value:
    if input.ndim <= axis:
        raise ValueError(f"{name}: wants {('an axis', 'two axes')[axis]} at least, got shape {input.shape}")
    return flip_value(input, axis)


@composite("rot90", takes_complex=True)
def rot90(input: Value, k: int = 1, dims: Sequence[int] = (0, 1)) -> Value:
    """`input` rotated by `k` quarter turns, from the first of two axes towards the second.

    >>> genesis.rot90(genesis.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    axes = [normalize_axis("rot90", d, input.ndim) for d in dims]
    if len(axes) != 2 or axes[0] == axes[1] or input.ndim < 2:
        raise ValueError(f"rot90: dims {tuple(dims)} of shape {input.shape}; want two different axes")
    if k % 2 == 0:
        return flip_value(input, *axes) if k % 4 else input
    order = [*range(input.ndim)]
    order[axes[0]], order[axes[1]] = axes[1], axes[0]
    turned = permute_value(input, order)
    return flip_value(turned, axes[0] if k % 4 == 1 else axes[1])


# ---- diagonals ----
@composite("diag_embed", takes_complex=True)
def diag_embed(input: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """Matrices, on the axes `dim1` and `dim2`, with the last axis of `input` as their diagonals and zeros elsewhere.

    >>> genesis.diag_embed(genesis.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    if not input.ndim:
        raise ValueError("diag_embed: wants an axis at least, got a 0-d tensor")
    extent = input.shape[-1] + max(offset, -offset)
    axes = [normalize_axis("diag_embed", d, input.ndim + 1) for d in (dim1, dim2)]
    shape = [*input.shape[:-1]]
    for axis in sorted(axes):
        shape.insert(axis, extent)
    at = diagonal_layout(contiguous_layout(tuple(shape)), offset, *axes)
    return put_value(None, input, at, tuple(shape)) if numel(shape) else reshape_value(input, tuple(shape))


@composite("diag", takes_complex=True)
def diag(input: Value, diagonal: int = 0) -> Value:
    """The matrix with the vector `input` as its diagonal, or the diagonal of a matrix."""
    if input.ndim not in (1, 2):
        raise ValueError(f"diag: wants a vector or a matrix, got shape {input.shape}")
    return diag_embed(input, diagonal) if input.ndim == 1 else diagonal_value(input, diagonal)


diagflat = formula(
    "diagflat", lambda input, offset=0: diag_embed(reshape_value(input, (numel(input.shape),)), offset),
    "The matrix with all elements of `input`, row by row, as its diagonal.", takes_complex=True,
)


@composite("trace", takes_complex=True)
def trace(input: Value) -> Value:
    """The sum of a matrix's diagonal.

    >>> genesis.trace(genesis.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    if input.ndim != 2:
        raise ValueError(f"trace: wants a matrix, got shape {input.shape}")
    return sum(diagonal_value(input))


# ---- writing into a slice of a copy ----
def _put(name: str, input: Value, src: Value, rule: Callable[..., Layout], *where: int | None) -> Value:
    at = rule(contiguous_layout(input.shape), *where)
    if src.shape != at.shape:
        raise ValueError(f"{name}: src has shape {src.shape}; want {at.shape}")
    return put_value(input, cast(src, input.dtype), at, input.shape)


@composite("select_scatter", 2, takes_complex=True)
def select_scatter(input: Value, src: Value, dim: int, index: int) -> Value:
    """`input` with `src` at position `index` along `dim`."""
    return _put("select_scatter", input, src, select_layout, dim, index)


@composite("slice_scatter", 2, takes_complex=True)
def slice_scatter(
    input: Value, src: Value, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Value:
    """`input` with `src` at `start:end:step` along `dim`."""
    return _put("slice_scatter", input, src, slice_layout, dim, start, end, step)


diagonal_scatter = formula(
    "diagonal_scatter",
    lambda input, src, offset=0, dim1=0, dim2=1: _put("diagonal_scatter", input, src, diagonal_layout, offset, dim1, dim2),
    "`input` with `src` on a diagonal, as `diagonal` takes it.", 2, takes_complex=True,
)


# ---- along an axis ----
@composite("take_along_dim", 2, takes_complex=True)
def take_along_dim(input: Value, indices: Value, dim: int | None = None) -> Value:
    """The elements at `indices` along `dim`; the two broadcast along other axes. Without `dim`, `input` is flattened.

    With `dim`, negative indices count from its end. Raises ValueError for other shapes, TypeError for indices that are not
    int64 and, when evaluated, IndexError for an index out of range.

    >>> x = genesis.tensor([[3, 1], [2, 4]])
    >>> genesis.take_along_dim(x, x.argsort(1), dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if indices.dtype is not int64:
        raise IndexTypeError(f"take_along_dim: indices are {indices.dtype.name}; want int64")
    if dim is None:
        input, indices = (reshape_value(v, (numel(v.shape),)) for v in (input, indices))
    elif input.ndim != indices.ndim:
        raise ValueError(f"take_along_dim: input has {input.ndim} axes and indices {indices.ndim}; want the same number")
    axis = normalize_axis("take_along_dim", dim or 0, input.ndim)
    at = check_index("take_along_dim", indices, input.shape[axis], wrap=dim is not None)
    rest = [tuple(1 if a == axis else e for a, e in enumerate(v.shape)) for v in (input, indices)]
    common = broadcast_shapes("take_along_dim", *rest)
    wide = [(*common[:axis], v.shape[axis], *common[axis + 1 :]) for v in (input, indices)]
    return gather_value(expand(input, wide[0]), expand(at, wide[1]), axis)


@composite("diff", (0, 3, 4), takes_complex=True)
def diff(input: Value, n: int = 1, dim: int = -1, prepend: Value | None = None, append: Value | None = None) -> Value:
    """The differences of neighbours along `dim`, taken `n` times; `prepend` and `append` are joined to `input` first.

    >>> genesis.diff(genesis.tensor([1, 4, 9])), genesis.diff(genesis.tensor([1, 4, 9]), n=2)
    (tensor([3, 5]), tensor([2]))
    """
    if n == 0 and input.ndim:
        return input
    if not input.ndim or n < 0:
        raise ValueError(f"diff: {n} times of shape {input.shape}; want 0 or more, of one axis at least")
    axis = normalize_axis("diff", dim, input.ndim)
    x = cat([v for v in (prepend, input, append) if v is not None], axis)
    for _ in range(min(n, x.shape[axis])):
        above, below = slice_value(x, axis, 1, None), slice_value(x, axis, 0, -1)
        x = above ^ below if x.dtype.category == 0 else above - below
    return x


# ---- triangles ----
tril = formula(
    "tril", lambda input, diagonal=0: _triangle(input, diagonal, lower=True),
    "The lower triangle of the last two axes, zeros above.", in_place=True, takes_complex=True,
)
triu = formula(
    "triu", lambda input, diagonal=0: _triangle(input, diagonal, lower=False),
    "The upper triangle of the last two axes, zeros below.", in_place=True, takes_complex=True,
)


def _triangle(input: Value, diagonal: int, lower: bool) -> Value:
    if input.ndim < 2:
        raise ValueError(f"tril, triu: want two axes at least, got shape {input.shape}")
    rows = reshape_value(iota(input.graph, input.shape[-2], int64), (input.shape[-2], 1))
    columns = iota(input.graph, input.shape[-1], int64)
    inside = columns - rows <= diagonal if lower else columns - rows >= diagonal
    return where(inside, input, input.graph.constant(0, input.dtype))
