"""Linear algebra: the functions of the main namespace, and the extension `linalg`."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Literal

from genesis import linalg as _linalg, ops as _ops
from genesis.array_api.elementwise import together as _together, unary as _unary
from genesis.array_api.manipulation import matrix_transpose
from genesis.array_api.statistical import sum as _sum
from genesis.ir.dtypes import DType as _DType
from genesis.tensor.handle import Tensor as _Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot",
    "vector_norm",
]
__dir__ = __all__.copy


# ---- products ----
def matmul(x1: _Tensor, x2: _Tensor, /) -> _Tensor:
    """The matrix product; vectors lose their axis, leading axes broadcast."""
    return _ops.matmul(*_together(x1, x2))


def tensordot(x1: _Tensor, x2: _Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> _Tensor:
    """The sums of products over axes: so many of the last and the first, or those of two lists."""
    return _ops.tensordot(*_together(x1, x2), axes)


def vecdot(x1: _Tensor, x2: _Tensor, /, *, axis: int = -1) -> _Tensor:
    """The sums of products along `axis`, after broadcasting of the others."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: extents {x1.shape[axis]} and {x2.shape[axis]} along axis {axis} differ")
    first, second = _together(x1, x2)
    return _ops.vecdot(first, second, axis)


def outer(x1: _Tensor, x2: _Tensor, /) -> _Tensor:
    """The products of all pairs of elements of two vectors."""
    first, second = _together(x1, x2)
    return _ops.outer(first, second)


def cross(x1: _Tensor, x2: _Tensor, /, *, axis: int = -1) -> _Tensor:
    """The cross products of vectors of three elements along `axis`, after broadcasting of the other axes."""
    if not x1.shape[axis] == x2.shape[axis] == 3:
        raise ValueError(f"cross: shapes {x1.shape} and {x2.shape}; want 3 elements along axis {axis} of both")
    return _linalg.cross(*_ops.broadcast_tensors(*_together(x1, x2)), dim=axis)


def matrix_power(x: _Tensor, n: int, /) -> _Tensor:
    """The product of so many times the matrices."""
    return _linalg.matrix_power(x, n)


# ---- parts of matrices, and numbers of them ----
def diagonal(x: _Tensor, /, *, offset: int = 0) -> _Tensor:
    """The diagonals of the matrices on the last two axes."""
    return _linalg.diagonal(x, offset=offset)


def trace(x: _Tensor, /, *, offset: int = 0, dtype: _DType | None = None) -> _Tensor:
    """The sums of the diagonals."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


det, inv, eigvalsh, svdvals = (_unary(name, home=_linalg, module=__name__) for name in ("det", "inv", "eigvalsh", "svdvals"))


def slogdet(x: _Tensor, /) -> tuple[_Tensor, _Tensor]:
    """(sign, logabsdet): the signs of the determinants, and the logarithms of their absolute values."""
    return _linalg.slogdet(x)


def matrix_norm(x: _Tensor, /, *, keepdims: builtins.bool = False, ord: float | str | None = "fro") -> _Tensor:
    """The norms of the matrices on the last two axes."""
    if ord in (2, -2, "nuc"):
        values = svdvals(x)
        norm = _ops.sum(values, -1) if ord == "nuc" else (_ops.amax if ord == 2 else _ops.amin)(values, -1)
        return norm.unsqueeze(-1).unsqueeze(-1) if keepdims else norm
    return _linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_rank(x: _Tensor, /, *, rtol: float | _Tensor | None = None) -> _Tensor:
    """The number of singular values above `rtol` times the greatest; `rtol` is max(m, n) eps by default."""
    if isinstance(rtol, _Tensor):
        values = svdvals(x)
        return _ops.sum(values > values.amax(-1, True) * rtol.unsqueeze(-1), -1)
    return _linalg.matrix_rank(x, rtol=rtol)


def vector_norm(
    x: _Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: builtins.bool = False, ord: float = 2
) -> _Tensor:
    """The norms of vectors over axes, all by default."""
    if axis == ():
        return _ops.ne(x, 0).to(x.dtype) if ord == 0 else _ops.abs(x)
    if ord in (math.inf, -math.inf):
        axes = tuple(range(x.ndim)) if axis is None else axis
        return (_ops.amax if ord > 0 else _ops.amin)(_ops.abs(x), axes, keepdims)
    return _linalg.vector_norm(x, ord, axis, keepdims)


# ---- equations and factors ----
def pinv(x: _Tensor, /, *, rtol: float | _Tensor | None = None) -> _Tensor:
    """The pseudo-inverses; singular values below `rtol` times the greatest count as zero."""
    if isinstance(rtol, _Tensor) and rtol.ndim:
        u, s, vh = svd(x, full_matrices=False)
        kept = s > s.amax(-1, True) * rtol.unsqueeze(-1)
        return vh.mT @ (_ops.where(kept, s, 1.0).reciprocal() * kept).unsqueeze(-1).mul(u.mT)
    return _linalg.pinv(x, rtol=float(rtol) if isinstance(rtol, _Tensor) else rtol)


def solve(x1: _Tensor, x2: _Tensor, /) -> _Tensor:
    """The X with `x1` @ X = `x2`; only a 1-d `x2` is a vector."""
    first, second = _together(x1, x2)
    if second.ndim == 1:
        return _linalg.solve(first, second.unsqueeze(-1)).squeeze(-1)
    if second.ndim == first.ndim - 1:  # the row would take it for vectors
        second = second.unsqueeze(0)
    return _linalg.solve(first, second)


def cholesky(x: _Tensor, /, *, upper: builtins.bool = False) -> _Tensor:
    """The triangle whose product with its transpose is the matrix."""
    return _linalg.cholesky(x, upper=upper)


def qr(x: _Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> tuple[_Tensor, _Tensor]:
    """(Q, R): orthonormal columns and an upper triangle whose product is the matrix."""
    return _linalg.qr(x, mode)


def eigh(x: _Tensor, /) -> tuple[_Tensor, _Tensor]:
    """(eigenvalues, eigenvectors) of symmetric matrices."""
    return _linalg.eigh(x)


def svd(x: _Tensor, /, *, full_matrices: builtins.bool = True) -> tuple[_Tensor, _Tensor, _Tensor]:
    """(U, S, Vh): the singular vectors and values."""
    return _linalg.svd(x, full_matrices)
