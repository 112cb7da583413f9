"""Products of matrices, batches of matrices and vectors, with and without an addend; of a sparse matrix with a dense one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import normalize_axis
from genesis.ops.complex_primitives import conjugate
from genesis.ops.contraction import contracted, matmul, multiplied
from genesis.ops.elementwise import zeros_like
from genesis.ops.indexing import check_index, gather_value, scatter_value
from genesis.ops.joining import cat
from genesis.ops.layout import contiguous_layout, slice_layout
from genesis.ops.reduction import sum
from genesis.ops.registry import alike, broadcast, cast, composite, expand, primitive, promoted, widened
from genesis.ops.rows import formula
from genesis.ops.views import reshape_value, view_value
from genesis.runtime.deferred import deferred

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
else:
    csr_matrix = deferred("scipy.sparse", "csr_matrix")


def _ranked(name: str, *ranks: int, **operands: Value) -> list[Value]:
    """The operands, named like the row's parameters, after checking each one's rank."""
    for rank, (argument, x) in zip(ranks, operands.items(), strict=True):
        if x.ndim != rank:
            what = "a vector" if rank == 1 else f"{rank} axes"
            raise ValueError(f"{name}: {argument} has shape {x.shape}; want {what}, or use matmul")
    return [*operands.values()]


# ---- two operands ----
mm = formula(
    "mm", lambda input, mat2: matmul(*_ranked("mm", 2, 2, input=input, mat2=mat2)),
    "The product of two matrices, (m, k) and (k, n).", 2, autocast="low", takes_complex=True,
)
mv = formula(
    "mv", lambda input, vec: matmul(*_ranked("mv", 2, 1, input=input, vec=vec)),
    "The product of a matrix (m, k) and a vector (k,).", 2, autocast="low", takes_complex=True,
)
vdot = formula(
    "vdot", lambda input, other: matmul(conjugate(input), *_ranked("vdot", 1, 1, input=input, other=other)[1:]),
    "As `dot`, with the conjugate of `input`.", 2, autocast="widest", takes_complex=True,
)


@composite("bmm", 2, autocast="low", takes_complex=True)
def bmm(input: Value, mat2: Value) -> Value:
    """The products of matrices pair by pair, (b, m, k) and (b, k, n).

    Raises ValueError for other shapes; unlike in `matmul`, extents do not broadcast.

    >>> genesis.bmm(genesis.ones(5, 2, 3), genesis.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    return _batched(input, mat2, wide=False)


def _batched(input: Value, mat2: Value, wide: bool) -> Value:
    _ranked("bmm", 3, 3, input=input, mat2=mat2)
    if input.shape[0] != mat2.shape[0]:
        raise ValueError(f"bmm: batches differ: {input.shape} and {mat2.shape}; want ({input.shape[0]}, ..) on the right")
    return multiplied(input, mat2, wide=wide)


@composite("dot", 2, autocast="widest", takes_complex=True)
def dot(input: Value, tensor: Value) -> Value:
    """The sum of the products of two vectors.

    >>> genesis.dot(genesis.tensor([1, 2]), genesis.tensor([3, 4]))
    tensor(11)
    """
    return matmul(*_ranked("dot", 1, 1, input=input, tensor=tensor))


@composite("inner", 2, takes_complex=True)
def inner(input: Value, other: Value) -> Value:
    """The sums of products along the last axes of both: (.., k) and (.., k) -> (.., ..)."""
    if not input.ndim or not other.ndim:
        return input * other
    return contracted("inner", input, other, (input.ndim - 1,), (other.ndim - 1,))


@composite("outer", 2, aliases=("ger",), takes_complex=True)
def outer(input: Value, vec2: Value) -> Value:
    """All products of the elements of two vectors, (m,) and (n,) -> (m, n).

    >>> genesis.outer(genesis.tensor([1, 2]), genesis.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    _ranked("outer", 1, 1, input=input, vec2=vec2)
    return reshape_value(input, (*input.shape, 1)) * vec2


@composite("tensordot", 2, method=False, autocast="widest", keywords={"axes": "dims"}, takes_complex=True)
def tensordot(a: Value, b: Value, dims: int | Sequence[Sequence[int]] = 2) -> Value:
    """The sums of products over the last `dims` axes of `a` and the first of `b`, or over the axes in a pair of lists.

    Raises ValueError where extents differ.

    >>> genesis.tensordot(genesis.ones(2, 3, 4), genesis.ones(4, 3, 5), dims=([1, 2], [1, 0])).shape
    (2, 5)
    """
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: {dims} axes of shapes {a.shape} and {b.shape}; want 0 to {min(a.ndim, b.ndim)}")
        return contracted("tensordot", a, b, tuple(range(a.ndim - dims, a.ndim)), tuple(range(dims)))
    left, right = (
        tuple([normalize_axis("tensordot", d, x.ndim) for d in ([named] if isinstance(named, int) else named)])
        for named, x in zip(dims, (a, b), strict=True)
    )
    for p, q in zip(left, right, strict=True):  # an extent of 1 broadcasts
        if a.shape[p] != b.shape[q]:
            a = sum(a, p, True, dtype=a.dtype) if b.shape[q] == 1 else a
            b = sum(b, q, True, dtype=b.dtype) if a.shape[p] == 1 else b
    return contracted("tensordot", a, b, left, right)


@composite("vecdot", 2, method=False, namespace="linalg", takes_complex=True)
def vecdot(x: Value, y: Value, dim: int = -1) -> Value:
    """The sums of the products of `x`, conjugated, and `y` along `dim`, after broadcasting.

    >>> genesis.linalg.vecdot(genesis.tensor([[1.0, 2.0], [3.0, 4.0]]), genesis.tensor([1.0, -1.0]))
    tensor([-1., -1.])
    """
    a, b = promoted(x, y)
    return sum(conjugate(a) * b, dim, dtype=a.dtype)


# ---- products with an addend ----
_FACTORS = ("beta", "alpha")


def _added(name: str, product: Value, dtype: DType, input: Value, beta: float, alpha: float) -> Value:
    """beta * input + alpha * product, in `dtype`, the operands' dtype; the product itself may be float32."""
    if input.dtype is not dtype:
        raise TypeError(f"{name}: input is {input.dtype.name}, the product {dtype.name}; convert one with .to(dtype)")
    if dtype.category < 3 and (isinstance(alpha, complex) or isinstance(beta, complex)):
        raise TypeError(f"{name}: alpha {alpha} and beta {beta} for {dtype.name}; want real numbers")
    if dtype.category < 2:
        if name == "addr" and not isinstance(alpha, int) & isinstance(beta, int):
            raise TypeError(f"{name}: alpha {alpha} and beta {beta} for {dtype.name}; want integers")
        alpha, beta = int(alpha), int(beta)  # truncated, as in PyTorch
    if beta == 0:  # not even its NaN matters
        input = expand(input.graph.constant(0, input.dtype), input.shape)
    wide = widened(product)
    total = (wide if alpha == 1 else wide * alpha) + (widened(input) if beta in (0, 1) else widened(input) * beta)
    if total.shape != product.shape:
        raise ValueError(f"{name}: input {input.shape} does not broadcast to the product's shape {product.shape}")
    return cast(total, dtype)


def _is_wide(x: Value) -> bool:
    """Whether sums of products have more digits than the operands: for 16-bit floats."""
    return x.dtype.category == 2


@composite("addmm", 3, autocast="low", in_place=True, takes_complex=True, numbers_between=_FACTORS, elements=_FACTORS)
def addmm(input: Value, mat1: Value, mat2: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    """beta * input + alpha * mat1 @ mat2, for matrices.

    `input` broadcasts to the product; with `beta` 0 it is not read. Raises ValueError for shapes that do not fit.

    >>> genesis.addmm(genesis.ones(2), genesis.eye(2), genesis.eye(2), alpha=3)
    tensor([[4., 1.],
            [1., 4.]])
    """
    a, b = _ranked("mm", 2, 2, input=mat1, mat2=mat2)
    product = multiplied(a, b, wide=_is_wide(mat1))
    return _added("addmm", product, mat1.dtype, input, beta, alpha)


@composite("addmv", 3, autocast="low", in_place=True, takes_complex=True, numbers_between=_FACTORS, elements=_FACTORS)
def addmv(input: Value, mat: Value, vec: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    """beta * input + alpha * mat @ vec, for a matrix and a vector."""
    a, b = _ranked("mv", 2, 1, input=mat, vec=vec)
    product = multiplied(a, b, wide=_is_wide(mat))
    return _added("addmv", product, mat.dtype, input, beta, alpha)


@composite("addr", 3, autocast="low", in_place=True, takes_complex=True, numbers_between=_FACTORS, elements=_FACTORS)
def addr(input: Value, vec1: Value, vec2: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    """beta * input + alpha * outer(vec1, vec2)."""
    input, product = promoted(input, outer(vec1, vec2))
    return _added("addr", product, product.dtype, input, beta, alpha)


@composite("baddbmm", 3, autocast="low", in_place=True, takes_complex=True, numbers_between=_FACTORS, elements=_FACTORS)
def baddbmm(input: Value, batch1: Value, batch2: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    """beta * input + alpha * bmm(batch1, batch2)."""
    return _added("baddbmm", _batched(batch1, batch2, _is_wide(batch1)), batch1.dtype, input, beta, alpha)


@composite("addbmm", 3, autocast="low", in_place=True, takes_complex=True, numbers_between=_FACTORS, elements=_FACTORS)
def addbmm(input: Value, batch1: Value, batch2: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    """beta * input + alpha * the sum of bmm(batch1, batch2) over the batch."""
    products = _batched(batch1, batch2, _is_wide(batch1))
    return _added("addbmm", sum(products, 0, dtype=products.dtype), batch1.dtype, input, beta, alpha)


# ---- other products ----
@composite("kron", 2, takes_complex=True)
def kron(input: Value, other: Value) -> Value:
    """The Kronecker product: each element of `input` is replaced by its product with all of `other`.

    >>> genesis.kron(genesis.eye(2), genesis.tensor([[1.0, 2.0]]))
    tensor([[1., 2., 0., 0.],
            [0., 0., 1., 2.]])
    """
    a, b = promoted(input, other)
    rank = max(a.ndim, b.ndim)
    shapes = [(1,) * (rank - v.ndim) + v.shape for v in (a, b)]
    left = reshape_value(a, tuple(e for extent in shapes[0] for e in (extent, 1)))
    right = reshape_value(b, tuple(e for extent in shapes[1] for e in (1, extent)))
    return reshape_value(left * right, tuple(m * n for m, n in zip(*shapes, strict=True)))


@composite("cross", 2, autocast="widest", takes_complex=True)
def cross(input: Value, other: Value, dim: int | None = None) -> Value:
    """The cross products of vectors of three elements along `dim` (the first axis with three, if None).

    >>> genesis.cross(genesis.tensor([1.0, 0.0, 0.0]), genesis.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    a, b = broadcast("cross", *alike("cross", input, other))
    axis = a.shape.index(3) if dim is None and 3 in a.shape else normalize_axis("cross", -1 if dim is None else dim, a.ndim)
    if not a.ndim or a.shape[axis] != 3:
        raise ValueError(f"cross: shapes {input.shape} and {other.shape} along dim {dim}; want 3 elements there")

    def rolled(x: Value, first: int) -> Value:
        """`x` rotated so that element `first` comes first."""
        at = contiguous_layout(x.shape)
        return cat([view_value(x, slice_layout(at, axis, *part), "slice") for part in ((first, None), (0, first))], axis)

    return rolled(a, 1) * rolled(b, 2) - rolled(a, 2) * rolled(b, 1)


# ---- a sparse matrix in CSR form times a dense one: a primitive whose kernel goes row by row ----
def _reference(
    node: Node, pointers: np.ndarray, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, dense: np.ndarray
) -> np.ndarray:
    def product(pointers: np.ndarray, columns: np.ndarray, values: np.ndarray, dense: np.ndarray) -> np.ndarray:
        return csr_matrix((values, columns, pointers), (len(pointers) - 1, len(dense))) @ dense  # type: ignore[no-any-return]

    if dense.ndim == 2:
        return product(pointers, columns, values, dense)
    return np.stack([product(*parts) for parts in zip(pointers, columns, values, dense, strict=True)])  # under vmap


def _grad(
    g: Value, y: Value, pointers: Value, rows: Value, columns: Value, values: Value, dense: Value
) -> tuple[Value | None, ...]:
    """By the dense factor: the transpose's product with `g`. By the values: rows of `g` dot rows of the dense factor."""
    shape = (columns.shape[0], dense.shape[1])
    rows = check_index("matmul", rows, y.shape[0], wrap=False)  # the product itself uses only the pointers
    taken = gather_value(g, _spread(rows, shape[1]), 0)
    to_values = sum(taken * gather_value(dense, _spread(columns, shape[1]), 0), 1)
    to_dense = scatter_value(zeros_like(dense), _spread(columns, shape[1]), taken * _spread(values, shape[1]), 0, "add")
    return None, None, None, to_values, to_dense


def _spread(x: Value, width: int) -> Value:
    return expand(reshape_value(x, (*x.shape, 1)), (*x.shape, width))


primitive("csr_matmul", "host", grad=_grad, reference=_reference)


@composite("csr_matmul", (), method=False, public=False)
def csr_matmul(pointers: Value, rows: Value, columns: Value, values: Value, dense: Value) -> Value:
    """The CSR matrix (`values`, `rows` and `columns` (n,); row i starts at `pointers[i]`) times `dense`."""
    extent = pointers.shape[0] - 1
    columns = check_index("matmul", columns, dense.shape[0], wrap=False)
    return values.graph.add("csr_matmul", (pointers, rows, columns, values, dense), (extent, dense.shape[1]), dense.dtype)
