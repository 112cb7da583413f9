# Written by tools/stubs.py from the operation table: do not edit.

from builtins import bool as Bool, float as Float, int as Int
from collections.abc import Sequence
from numpy.linalg import LinAlgError as LinAlgError
from typing import NamedTuple
from genesis.ir.dtypes import DType
from genesis.tensor.handle import Operand, Tensor
from genesis.tensor.methods import (
    Cholesky, Eigen, Factored, FactoredInfo, Indefinite, IndefiniteInfo, Inverse, PLU, QR, SVD, SignAndLog, Solved,
)

class LeastSquares(NamedTuple):
    """The result of `lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

def cholesky(A: Tensor, upper: Bool = False) -> Tensor:
    """The lower triangular L with L @ L.mH = `A`, Hermitian and positive definite (.., n, n); with `upper`, its adjoint."""
def cholesky_ex(A: Tensor, *, upper: Bool = False, check_errors: Bool = False) -> Cholesky:
    """(L, info) as `cholesky`, where a matrix may fail: `info` (..), int32, is 0 for one that is positive definite."""
def cond(A: Tensor, p: Float | str | None = None) -> Tensor:
    """The condition numbers of matrices: the greatest singular value over the least, or norms `p` of `A` and its inverse."""
def cross(input: Tensor, other: Tensor, *, dim: Int = -1) -> Tensor:
    """The cross products of vectors of three elements along `dim`. Raises ValueError for other vectors."""
def det(A: Tensor) -> Tensor:
    """The determinants of matrices (.., n, n)."""
def diagonal(A: Tensor, *, offset: Int = 0, dim1: Int = -2, dim2: Int = -1) -> Tensor:
    """The diagonals of the matrices on the last two axes, as views."""
def eig(A: Tensor) -> Eigen:
    """(eigenvalues, eigenvectors), complex, of matrices (.., n, n), in no order; vectors are columns of length 1."""
def eigh(A: Tensor, UPLO: str = 'L') -> Eigen:
    """(eigenvalues, eigenvectors) of symmetric matrices (.., n, n), in ascending order; vectors are columns."""
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues, complex, of matrices (.., n, n), in no order."""
def eigvalsh(A: Tensor, UPLO: str = 'L') -> Tensor:
    """The eigenvalues of symmetric matrices (.., n, n), ascending, of which only the triangle `UPLO` is read."""
def householder_product(input: Operand, tau: Operand) -> Tensor:
    """The first n columns of H1 @ H2 @ .. @ Hk, (.., m, n), for `input` (.., m, n), m >= n, and `tau` (.., k) of `geqrf`."""
def inv(A: Tensor) -> Tensor:
    """The inverses of matrices (.., n, n). Raises LinAlgError, when it is computed, for a singular one."""
def inv_ex(A: Tensor, *, check_errors: Bool = False) -> Inverse:
    """(inverse, info) as `inv`, where a matrix may be singular: `info` is that of `lu_factor_ex`, infinities the inverse."""
def ldl_factor(A: Tensor, *, hermitian: Bool = False) -> Indefinite:
    """(LD, pivots) as `ldl_factor_ex`; raises LinAlgError, when it is computed, where a block of D is zero."""
def ldl_factor_ex(A: Tensor, *, hermitian: Bool = False, check_errors: Bool = False) -> IndefiniteInfo:
    """(LD, pivots, info) of symmetric matrices (.., n, n), or Hermitian ones, of which the lower triangle is read; no .."""
def ldl_solve(LD: Operand, pivots: Tensor, B: Operand, *, hermitian: Bool = False) -> Tensor:
    """The X with A @ X = `B` (.., n, k), for the A that `ldl_factor`, as `hermitian`, made `LD` and `pivots` of."""
def lstsq(A: Tensor, B: Tensor, rcond: Float | None = None, *, driver: str | None = None) -> LeastSquares:
    """The X (.., n, k) for which |`A` @ X - `B`| is least, the shortest of several: `A` (.., m, n), `B` (.., m, k)."""
def lu(A: Tensor, *, pivot: Bool = True) -> PLU:
    """(P, L, U) with P @ L @ U = `A` (.., m, n): a permutation, and a lower (ones on its diagonal) and an upper triangle."""
def lu_factor(A: Tensor, *, pivot: Bool = True) -> Factored:
    """(LU, pivots) as `lu_factor_ex`; raises LinAlgError, when it is computed, where the diagonal of U has a zero."""
def lu_factor_ex(A: Tensor, *, pivot: Bool = True, check_errors: Bool = False) -> FactoredInfo:
    """(LU, pivots, info) of matrices (.., m, n): both factors in one matrix, min(m, n) pivots, int32, counted from 1."""
def lu_solve(LU: Operand, pivots: Tensor, B: Operand, *, left: Bool = True, adjoint: Bool = False) -> Tensor:
    """The X with A @ X = `B` (.., n, k), for the A (.., n, n) that `lu_factor` made `LU` and `pivots` of."""
def matmul(input: Operand, other: Operand) -> Tensor:
    """The matrix product: vectors and matrices as NumPy's `@`, leading axes broadcast."""
def matrix_exp(A: Tensor) -> Tensor:
    """The exponentials of matrices (.., n, n): the sum of A^k / k!."""
def matrix_norm(
    A: Tensor, ord: Float | str = 'fro', dim: Sequence[Int] = (-2, -1), keepdim: Bool = False, *, dtype: DType | None = None,
) -> Tensor:
    """The norms of the matrices on two axes: "fro", or the extreme sum of |x| over columns (1, -1) or rows (inf, -inf)."""
def matrix_power(A: Tensor, n: Int) -> Tensor:
    """The product of `n` times the matrices `A` (.., m, m), by squaring; of their inverses, for a negative `n`."""
def matrix_rank(
    A: Tensor, tol: Tensor | Float | None = None, *, atol: Tensor | Float | None = None, rtol: Tensor | Float | None = None,
    hermitian: Bool = False,
) -> Tensor:
    """How many singular values exceed max(`atol`, `rtol` times the greatest), either a number or one for each matrix."""
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices from left to right; the first and the last may be vectors."""
def norm(
    A: Tensor, ord: Float | str | None = None, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of vectors or matrices: without `ord`, the 2-norm over `dim` (all axes, if None)."""
def pinv(A: Operand, *, atol: Operand | None = None, rtol: Operand | None = None, hermitian: Bool = False) -> Tensor:
    """The pseudo-inverses of matrices (.., m, n) (Moore, 1920; Penrose, 1955)."""
def qr(A: Tensor, mode: str = 'reduced') -> QR:
    """(Q, R): orthonormal columns and an upper triangle whose product is `A` (.., m, n)."""
def slogdet(A: Tensor) -> SignAndLog:
    """(sign, logabsdet), as `genesis.slogdet`'s: of the determinants of matrices (.., n, n)."""
def solve(A: Operand, B: Operand, *, left: Bool = True) -> Tensor:
    """The X with `A` @ X = `B`: `A` (.., n, n), `B` (.., n, k) or vectors (.., n); without `left`, X @ `A` = `B`."""
def solve_ex(A: Operand, B: Operand, *, left: Bool = True, check_errors: Bool = False) -> Solved:
    """(result, info) as `solve`, where a matrix may be singular: `info` is that of `lu_factor_ex`, infinities the result."""
def solve_triangular(A: Operand, B: Operand, *, upper: Bool, left: Bool = True, unitriangular: Bool = False) -> Tensor:
    """The X with T @ X = `B` for the upper or the lower triangle T of `A` (with ones on its diagonal, if `unitriangular`)."""
def svd(A: Tensor, full_matrices: Bool = True, *, driver: str | None = None) -> SVD:
    """(U, S, Vh) of matrices (.., m, n): `A` is U @ diag(S) @ Vh, S descending. Without `full_matrices`, min(m, n) .."""
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of matrices (.., m, n), descending, whatever `driver` says."""
def tensorinv(A: Tensor, ind: Int = 2) -> Tensor:
    """The inverse of what `tensordot` does with `A`, whose first `ind` axes hold as many elements as the others."""
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[Int] | None = None) -> Tensor:
    """The X for which tensordot(`A`, X, X.ndim) is `B`; the axes `dims` of `A` are moved to its end first."""
def vander(x: Tensor, *, N: Int | None = None) -> Tensor:
    """The powers 0 to `N` - 1 (the number of elements, if None) of the elements, along a new last axis."""
def vecdot(x: Operand, y: Operand, dim: Int = -1) -> Tensor:
    """The sums of the products of `x`, conjugated, and `y` along `dim`, after broadcasting."""
def vector_norm(
    x: Tensor, ord: Float = 2, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None,
) -> Tensor:
    """sum(|x|^ord)^(1/ord) over `dim` (all axes, if None), whatever the shape."""
