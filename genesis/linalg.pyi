# Written by tools/stubs.py from the operation table: do not edit.

from builtins import bool as Bool, float as Float, int as Int
from collections.abc import Sequence
from numpy.linalg import LinAlgError as LinAlgError
from typing import NamedTuple
from genesis.ir.dtypes import DType
from genesis.ops import (
    cholesky as cholesky, cholesky_ex as cholesky_ex, det as det, eigh as eigh, eigvalsh as eigvalsh, inv as inv,
    inv_ex as inv_ex, ldl_factor as ldl_factor, ldl_factor_ex as ldl_factor_ex, ldl_solve as ldl_solve, lu_factor as lu_factor,
    lu_factor_ex as lu_factor_ex, matmul as matmul, matrix_exp as matrix_exp, matrix_norm as matrix_norm, orgqr, pinv as pinv,
    solve as solve, solve_ex as solve_ex, solve_triangular as solve_triangular, svdvals as svdvals, vecdot as vecdot,
    vector_norm as vector_norm,
)
from genesis.tensor.handle import Operand, Tensor
from genesis.tensor.methods import Eigen, PLU, QR, SVD, SignAndLog

class LeastSquares(NamedTuple):
    """The result of `lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

def cond(A: Tensor, p: Float | str | None = None) -> Tensor:
    """The condition numbers of matrices: the greatest singular value over the least, or norms `p` of `A` and its inverse."""
def cross(input: Tensor, other: Tensor, *, dim: Int = -1) -> Tensor:
    """The cross products of vectors of three elements along `dim`. Raises ValueError for other vectors."""
def diagonal(A: Tensor, *, offset: Int = 0, dim1: Int = -2, dim2: Int = -1) -> Tensor:
    """The diagonals of the matrices on the last two axes, as views."""
def eig(A: Tensor) -> Eigen:
    """(eigenvalues, eigenvectors), complex, of matrices (.., n, n), in no order; vectors are columns of length 1."""
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues, complex, of matrices (.., n, n), in no order."""
householder_product = orgqr
def lstsq(A: Tensor, B: Tensor, rcond: Float | None = None, *, driver: str | None = None) -> LeastSquares:
    """The X (.., n, k) that minimizes |`A` @ X - `B`|, the shortest if there are several: `A` (.., m, n), `B` (.., m, k)."""
def lu(A: Tensor, *, pivot: Bool = True) -> PLU:
    """(P, L, U) with P @ L @ U = `A` (.., m, n): a permutation, and a lower (ones on its diagonal) and an upper triangle."""
def lu_solve(LU: Operand, pivots: Tensor, B: Operand, *, left: Bool = True, adjoint: Bool = False) -> Tensor:
    """The X with A @ X = `B` (.., n, k), for the A (.., n, n) that `lu_factor` factored into `LU` and `pivots`."""
def matrix_power(A: Tensor, n: Int) -> Tensor:
    """The product of `n` times the matrices `A` (.., m, m), by squaring; of their inverses, for a negative `n`."""
def matrix_rank(
    A: Tensor, tol: Tensor | Float | None = None, hermitian: Bool = False, *, atol: Tensor | Float | None = None,
    rtol: Tensor | Float | None = None,
) -> Tensor:
    """The number of singular values above max(`atol`, `rtol` times the greatest). Both are numbers, or one per matrix."""
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices from left to right; the first and the last may be vectors."""
def norm(
    A: Tensor, ord: Float | str | None = None, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of vectors or matrices: without `ord`, the 2-norm over `dim` (all axes, if None)."""
def qr(A: Tensor, mode: str = 'reduced') -> QR:
    """(Q, R): orthonormal columns and an upper triangle whose product is `A` (.., m, n)."""
def slogdet(A: Tensor) -> SignAndLog:
    """(sign, logabsdet), as `genesis.slogdet`'s: of the determinants of matrices (.., n, n)."""
def svd(A: Tensor, full_matrices: Bool = True, *, driver: str | None = None) -> SVD:
    """(U, S, Vh) of matrices (.., m, n): `A` is U @ diag(S) @ Vh, S descending. Without `full_matrices`, min(m, n) .."""
def tensorinv(A: Tensor, ind: Int = 2) -> Tensor:
    """The inverse of `A` under `tensordot`; its first `ind` axes have as many elements as the others."""
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[Int] | None = None) -> Tensor:
    """The X for which tensordot(`A`, X, X.ndim) is `B`; the axes `dims` of `A` are moved to its end first."""
def vander(x: Tensor, *, N: Int | None = None) -> Tensor:
    """The powers 0 to `N` - 1 (the number of elements, if None) of the elements, along a new last axis."""
