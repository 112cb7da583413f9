"""Matrix products with sparse factors.

With a dense factor, rows of that are gathered, scaled and added up; so are gradients, whose roles are exchanged.
"""

from __future__ import annotations

from genesis.functions.comparison import result_type
from genesis.functions.from_data import as_tensor
from genesis.functions.methods.conversion import values_of
from genesis.functions.methods.table import functions_of
from genesis.functions.ranges import arange
from genesis.functions.selection import unique
from genesis.ir.dtypes import float32, float64
from genesis.ir.errors import ArgumentError
from genesis.ir.named_layouts import sparse_coo, sparse_csr
from genesis.ops.registry import OPERATIONS
from genesis.sparse.elementwise import add, rule
from genesis.sparse.shaping import met, transpose
from genesis.sparse.sparse_tensor import (
    SparseTensor, by_element, coalesced, flat_positions, in_layout, pointers_of, sparse, stack, summed,
)
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, method

(cat,) = functions_of("cat")


@rule("matmul", "mm", "mv", "bmm")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product; sparse only where both factors are."""
    if isinstance(input, SparseTensor) and isinstance(other, SparseTensor):
        return _of_sparse(input, other)
    if other.ndim == 1:
        return matmul(input, other.unsqueeze(1)).squeeze(-1)
    if input.ndim == 1:
        return matmul(input.unsqueeze(0), other).squeeze(0)
    if isinstance(input, SparseTensor):
        return _with_dense(input, other)
    assert isinstance(other, SparseTensor)
    lead = input.shape[:-1] if other.ndim == 2 else None
    rows = input.reshape(-1, input.shape[-1]) if lead is not None else input
    found = _with_dense(transpose(other, -2, -1), rows.mT).mT
    return found if lead is None else found.reshape(*lead, other.shape[-1])


def _check(x: SparseTensor, y: Tensor) -> None:
    if len(x.extents) != x.ndim or x.ndim not in (2, 3) or y.ndim != x.ndim or (
        x.shape[-1] != y.shape[-2] or x.shape[:-2] != y.shape[:-2]
    ):
        raise ArgumentError(f"matmul: {x.described()} with {tuple(y.shape)}; want (n, m) and (m, k), or several of both")


def _with_dense(x: SparseTensor, y: Tensor) -> Tensor:
    """(n, m) @ (m, k), or several of them."""
    _check(x, y)
    dtype = result_type(x._elements, y)
    *batch, n, k = *x.shape[:-1], y.shape[-1]
    rows, columns = flat_positions(x._positions[:-1], x.extents[:-1]), x._positions[-1]
    if not batch and dtype in (float32, float64) and x.is_cpu and (x._is_coalesced or x._kind is sparse_csr):
        pointers = pointers_of(rows, n) if x._pointers is None else x._pointers
        parts = pointers, rows, columns, x._elements.to(dtype), y.to(dtype)
        return call(OPERATIONS["csr_matmul"], parts)  # type: ignore[no-any-return]
    if batch:
        columns = x._positions[0] * x.shape[-1] + columns
    taken = y.to(dtype).reshape(-1, k)[columns] * x._elements.to(dtype).unsqueeze(1)
    found = summed(taken.new_zeros(n * batch[0] if batch else n, k), rows, taken)
    return found.reshape(*batch, n, k) if batch else found


def reduced_product(x: Tensor, y: Tensor, reduce: str) -> Tensor:
    """The means or extremes of the products of a sparse matrix' elements with rows of a dense one."""
    x = by_element(x)
    if reduce not in ("mean", "amax", "amin") or not isinstance(x, SparseTensor) or isinstance(y, SparseTensor):
        raise ArgumentError(f"mm: reduce is {reduce!r}; want 'sum', 'mean', 'amax' or 'amin', of a sparse and a dense matrix")
    _check(x, y)
    x = coalesced(x)
    rows, columns = x._positions
    taken = y[columns] * x._elements.unsqueeze(1)
    base = taken.new_zeros(x.shape[0], y.shape[1])
    arguments = (base, 0, rows.unsqueeze(1).expand(taken.shape), taken, reduce)
    return call(OPERATIONS["scatter_reduce"], arguments, {"include_self": False})  # type: ignore[no-any-return]


def _of_sparse(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """(n, m) @ (m, k): each element of x meets those of a row of y."""
    _check(x, y)
    if x.ndim != 2 or len(y.extents) != 2:
        raise ArgumentError(f"matmul: {x.described()} with {y.described()}; want two matrices")
    a, b = in_layout(x, sparse_coo), coalesced(in_layout(y, sparse_coo))
    of_a, of_b = met(values_of(a._positions[1]), values_of(b._positions[0]), y.shape[0])
    at_a, at_b = as_tensor(of_a, device=x.device), as_tensor(of_b, device=x.device)
    positions = stack([a._positions[0][at_a], b._positions[1][at_b]])
    made = sparse(positions, a._elements[at_a] * b._elements[at_b], (x.shape[0], y.shape[1]))
    return in_layout(coalesced(made), x._kind)


@rule("addmm", "baddbmm", "addmv")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta` * input + `alpha` * mat1 @ mat2."""
    product = matmul(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    if isinstance(input, SparseTensor) or isinstance(product, SparseTensor):
        return add(input if beta == 1 else input * beta, product)
    return product + (input if beta == 1 else input * beta)


@rule("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias."""
    product = matmul(input, transpose(weight, 0, 1) if isinstance(weight, SparseTensor) else weight.T)
    return product if bias is None else product + bias


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> SparseTensor:
    """`beta` * input + `alpha` * mat1 @ mat2 at the positions of the sparse matrix `input` alone, elsewhere zero.

    Raises ValueError for an `input` that is not sparse, and for shapes that do not fit.

    >>> x = genesis.eye(2).to_sparse_csr()
    >>> genesis.sparse.sampled_addmm(x, genesis.ones(2, 3), genesis.ones(3, 2)).to_dense()
    tensor([[4., 0.],
            [0., 4.]])
    """
    want = (*mat1.shape[:-1], mat2.shape[-1])
    if not isinstance(input, SparseTensor) or input.shape != want or len(want) != 2 or mat1.shape[1] != mat2.shape[0]:
        met = f"input {tuple(input.shape)}, mat1 {mat1.shape} and mat2 {mat2.shape}"
        raise ArgumentError(f"sampled_addmm: {met}; want a sparse (n, m), (n, k) and (k, m)")
    x = coalesced(by_element(input))
    rows, columns = x._positions
    found = (mat1[rows] * mat2.mT[columns]).sum(1)
    return x.with_elements((x._elements if beta == 1 else x._elements * beta) + (found if alpha == 1 else found * alpha))


def _rows_of_product(mat1: Tensor, mat2: Tensor) -> tuple[Tensor, Tensor]:
    """The rows in which a sparse matrix has elements, in order, and those of its product with a dense one: also zeros."""
    x = by_element(mat1)
    if not isinstance(x, SparseTensor) or isinstance(mat2, SparseTensor):
        raise ArgumentError(f"mm: {tuple(mat1.shape)} and {tuple(mat2.shape)}; want a sparse and a dense matrix")
    rows: Tensor = unique(x._positions[0])  # type: ignore[assignment]
    return rows, (mat1 @ mat2)[rows]


def smm(input: Tensor, mat: Tensor) -> SparseTensor:
    """The product of a sparse and a dense matrix, as a sparse one with all of a row in which `input` has elements.

    >>> genesis.eye(2).to_sparse().smm(genesis.ones(2, 1)).to_dense()
    tensor([[1.],
            [1.]])
    """
    rows, elements = _rows_of_product(input, mat)
    columns = arange(mat.shape[1], device=mat.device)
    positions = stack([rows.unsqueeze(1).expand(elements.shape).reshape(-1), columns.repeat(len(rows))])
    return sparse(positions, elements.reshape(-1), (input.shape[0], mat.shape[1]))


def hspmm(mat1: Tensor, mat2: Tensor) -> SparseTensor:
    """The product of a sparse and a dense matrix, as a sparse tensor of the rows in which `mat1` has elements."""
    rows, elements = _rows_of_product(mat1, mat2)
    return sparse(rows.unsqueeze(0), elements, (mat1.shape[0], mat2.shape[1]))


def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> SparseTensor:
    """`beta` * input + `alpha` * mat1 @ mat2, of a sparse `input` and a sparse `mat1`: all elements of both."""
    product = smm(mat1, mat2)
    if not isinstance(input, SparseTensor) or input.shape != product.shape:
        raise ArgumentError(f"sspaddmm: input {tuple(input.shape)}; want a sparse one of shape {tuple(product.shape)}")
    first = in_layout(by_element(input), sparse_coo)
    positions = cat([first._positions, product._positions], 1)
    return sparse(positions, cat([first._elements * beta, product._elements * alpha]), product.shape)


method(smm)
method(sspaddmm)
