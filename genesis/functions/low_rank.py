"""A few singular vectors or eigenvectors of large matrices, using only products with the matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from genesis.functions.comparison import finfo
from genesis.functions.counting import without_gradient
from genesis.functions.methods.table import functions_of
from genesis.functions.overrides import function
from genesis.functions.random_draws import drawn
from genesis.ir.errors import ArgumentError
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode

_svd, _qr, _eigh, _cat, _triangular = functions_of("linalg_svd", "linalg_qr", "eigh", "cat", "solve_triangular")


class LowRank(NamedTuple):
    """The result of `svd_lowrank` and `pca_lowrank`."""

    U: Tensor
    S: Tensor
    V: Tensor


@function()
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> LowRank:
    """(U, S, V) of rank `q`, with U @ diag(S) @ V.T near `A` (.., m, n), or near `A` - `M`.

    By products with random vectors and `niter` rounds that refine them (N. Halko, P. Martinsson, J. Tropp, "Finding Structure
    with Randomness", 2009, algorithms 4.4 and 5.1); close singular values need more rounds, or a `q` above
    the numerical rank. `genesis.manual_seed` determines the vectors.

    >>> x = genesis.ones(4, 3)
    >>> U, S, V = genesis.svd_lowrank(x, q=1)
    >>> genesis.allclose(U @ S.diag() @ V.T, x, atol=1e-5)
    True
    """
    q = min(A.shape[-2:]) if q is None else q
    if not 0 <= q <= min(A.shape[-2:]):
        raise ArgumentError(f"svd_lowrank: q is {q}; want 0 to {min(A.shape[-2:])}, the smaller side of {A.shape}")
    A = A if M is None else A - M
    if A.shape[-2] < A.shape[-1]:
        V, S, U = _of_tall(A.mT, q, niter)
    else:
        U, S, V = _of_tall(A, q, niter)
    return LowRank(U, S, V)


def _of_tall(A: Tensor, q: int, niter: int | None) -> tuple[Tensor, Tensor, Tensor]:
    Q = _qr(A @ drawn("normal", (A.shape[-1], q), A.dtype, 0.0, 1.0, device=A.device)).Q
    for _ in range(2 if niter is None else niter):
        Q = _qr(A @ _qr(A.mT @ Q).Q).Q
    U, S, Vh = _svd(Q.mT @ A, False)
    return Q @ U, S, Vh.mT


@function()
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> LowRank:
    """`svd_lowrank` of `A` (.., m, n), minus its mean over the m rows with `center`. `q` defaults to min(6, m, n).

    >>> genesis.pca_lowrank(genesis.tensor([[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]]), q=1).V.abs()
    tensor([[0.4472],
            [0.8944]])
    """
    q = min(6, *A.shape[-2:]) if q is None else q
    if niter < 0:
        raise ArgumentError(f"pca_lowrank: niter is {niter}; want 0 or more")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


@function()
def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
    iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
    method: str | None = None, tracker: Callable[..., None] | None = None, ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None, ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """(E, X): `k` eigenvalues, the largest first (or the smallest, without `largest`), and eigenvectors of `A` X = E `B` X.

    `A` (.., m, m) is symmetric, `B` symmetric and positive definite. Locally optimal block conjugate gradients (A. Knyazev,
    "Toward the Optimal Preconditioned Eigensolver", 2001), in an orthonormal basis; `X` (.., m, n) is the start, random
    vectors if None; `iK` is a preconditioner, near the inverse of `A`. It stops after `niter` rounds, or once the residuals are
    below `tol` times the size of A. Its differentiation raises NotDifferentiableError. `tracker`, `method` and the `ortho`
    settings are PyTorch's and have no effect.

    >>> generator = genesis.manual_seed(0)
    >>> E, X = genesis.lobpcg(genesis.diag(genesis.arange(1.0, 21.0)), k=1)
    >>> E
    tensor([20.0000])
    """
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    width = (k if n is None else n) if X is None else X.shape[-1]
    if A.ndim < 2 or A.shape[-2] != m or not 1 <= k <= width or m < 3 * width:
        raise ArgumentError(f"lobpcg: A is {A.shape}, k {k} and n {width}; want (.., m, m), 1 <= k <= n and m >= 3 n")
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    sign = -1 if largest is None or largest else 1
    with grad_mode(False):
        start = drawn("normal", (*A.shape[:-1], width), A.dtype, 0.0, 1.0, device=A.device) if X is None else X
        X, direction, scale = _orthonormal(start, B), None, A.norm()
        for _ in range(1000 if niter is None or niter < 0 else niter):
            E, X, AX = _ritz(A, X, sign, width)
            residual = AX - (X if B is None else B @ X) * E.unsqueeze(-2)
            if bool((residual[..., :k].norm(dim=-2) <= tol * scale).all()):
                break
            refined = residual if iK is None else iK @ residual
            basis = _orthonormal(_cat([X, refined, *([] if direction is None else [direction])], -1), B)
            before = X
            _, X, _ = _ritz(A, basis, sign, width)
            direction = X - before @ (before.mT @ (X if B is None else B @ X))
        E, X, _ = _ritz(A, X, sign, width)
    return without_gradient("lobpcg", [E[..., :k], X[..., :k]], A)  # type: ignore[no-any-return]


def _orthonormal(X: Tensor, B: Tensor | None) -> Tensor:
    """A basis of the columns' span, orthonormal in the inner product of `B`."""
    Q = _qr(X).Q
    if B is None:
        return Q
    L = (Q.mT @ (B @ Q)).cholesky()
    return _triangular(L, Q.mT, upper=False).mT


def _ritz(A: Tensor, X: Tensor, sign: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """The first `width` eigenvalues within the span of the columns of `X`, their vectors, and A times these."""
    AX = A @ X
    E, C = _eigh((X.mT @ AX) * sign)
    return E[..., :width] * sign, X @ C[..., :width], AX @ C[..., :width]
