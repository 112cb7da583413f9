"""Orthogonal factors of matrices: QR, eigenvalues of symmetric matrices, singular values; by LAPACK.

Gradients are formulas (J. Townsend, "Differentiating the Singular Value Decomposition", 2016; S. Walter, L. Lehmann,
"Algorithmic Differentiation of Linear Algebra Functions", 2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.arrangement import diag_embed, tril
from genesis.ops.complex_primitives import complex_value, conjugate, imag_value, real_value
from genesis.ops.contraction import adjoint, matmul
from genesis.ops.definite import triangular_value
from genesis.ops.elementwise import where
from genesis.ops.joining import cat
from genesis.ops.lapack import EIGENVALUES, SINGULAR_VALUES, failing, lapack, orthogonal
from genesis.ops.registry import Reference, cast, composite, primitive
from genesis.ops.results import QR, SVD, Eigen, Transposed
from genesis.ops.solving import factor_node, factors, matrices, packed, solve_value
from genesis.ops.source import iota
from genesis.ops.views import diagonal_value, reshape_value, slice_value


def _over_gaps(x: Value, values: Value) -> Value:
    """x_ij / (w_j - w_i); 0 on the diagonal and where both are 0, which is independent of the choice of vectors."""
    positions = iota(values.graph, values.shape[-1])
    same = _column(positions) == positions
    gaps = _row(values) - _column(values)
    return where(same, 0, x / where(same | ((gaps == 0) & (x == 0)), 1, gaps))


def _column(x: Value) -> Value:
    return reshape_value(x, (*x.shape, 1))


def _row(x: Value) -> Value:
    return reshape_value(x, (*x.shape[:-1], 1, x.shape[-1]))


# ---- QR ----
def _qr_shapes(rows: int, columns: int, complete: bool) -> list[Shape]:
    inner = rows if complete else min(rows, columns)
    return [(rows, inner), (inner, columns)]


def _qr_grad(g: Value, y: Value, a: Value) -> Value:
    m, n = a.shape[-2:]
    shapes = _qr_shapes(m, n, y.node.attrs["complete"])
    if shapes[0][1] > n:
        raise NotImplementedError("qr: mode 'complete' of more rows than columns has no gradient; take 'reduced'")
    (q, r), (gq, gr) = factors(y, shapes), factors(g, shapes)
    axis = a.ndim - 1
    wide = slice_value(a, axis, m, None) if n > m else None
    if wide is not None:  # A's columns right of the square part are Q times R's
        beyond, gr = slice_value(gr, axis, m, None), slice_value(gr, axis, 0, m)
        r = slice_value(r, axis, 0, m)
        gq = gq + matmul(wide, adjoint(beyond))
    inner = matmul(r, adjoint(gr)) - matmul(adjoint(gq), q)
    below = tril(inner, -1)
    symmetric = below + adjoint(below) + diag_embed(real_value(diagonal_value(inner, 0, -2, -1)))
    left = adjoint(triangular_value(r, adjoint(gq + matmul(q, symmetric)), True))
    return left if wide is None else cat([left, matmul(q, beyond)], axis)


primitive("qr", "host", grad=_qr_grad, contiguous=True,
          reference=lambda node, a: packed(orthogonal(a, node.attrs["complete"]), a.ndim - 2))


@composite("linalg_qr", method=False, aliases=("linalg.qr",), public=False, takes_complex=True)
def linalg_qr(A: Value, mode: str = "reduced") -> QR:
    """(Q, R): orthonormal columns and an upper triangle whose product is `A` (.., m, n).

    `mode` "reduced" has min(m, n) columns in Q, "complete" m; "r" leaves Q empty.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode is {mode!r}; want 'reduced', 'complete' or 'r'")
    x, complete = matrices("qr", A), mode == "complete"
    shapes = _qr_shapes(x.shape[-2], x.shape[-1], complete)
    q, r = (cast(f, A.dtype) for f in factors(factor_node("qr", x, shapes, complete=complete), shapes))
    return QR(slice_value(reshape_value(q, (numel(q.shape),)), 0, 0, 0) if mode == "r" else q, r)


@composite("qr", takes_complex=True)
def qr(input: Value, some: bool = True) -> QR:
    """(Q, R) as `linalg.qr`: with `some` in mode "reduced", else "complete"."""
    return linalg_qr(input, "reduced" if some else "complete")


# ---- eigenvalues ----
def _symmetric(name: str, A: Value, UPLO: str) -> Value:
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f"{name}: UPLO is {UPLO!r}; want 'L' or 'U'")
    return matrices(name, A, square=True)


def _eigh_shapes(a: Value) -> list[Shape]:
    return [a.shape[-1:], a.shape[-2:]]


def _eigh_grad(g: Value, y: Value, a: Value) -> Value:
    (w, v), (gw, gv) = factors(y, _eigh_shapes(a)), factors(g, _eigh_shapes(a))
    w, gw = real_value(w), real_value(gw)
    inner = _over_gaps(matmul(adjoint(v), gv), w) + diag_embed(gw)
    whole = matmul(matmul(v, inner), adjoint(v))
    return (whole + adjoint(whole)) * 0.5


primitive("eigh", "host", grad=_eigh_grad, contiguous=True, fault=failing(EIGENVALUES), reference=lambda node, a: packed(
    lapack("eigh_up" if node.attrs["UPLO"] == "U" else "eigh_lo", a), a.ndim - 2))


@composite("eigh", method=False, namespace="linalg", takes_complex=True)
def eigh(A: Value, UPLO: str = "L") -> Eigen:
    """(eigenvalues, eigenvectors) of symmetric matrices (.., n, n), in ascending order; vectors are columns.

    Only the triangle `UPLO`, "L" or "U", is read. The gradient by the vectors requires distinct eigenvalues.

    >>> genesis.linalg.eigh(genesis.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])
    """
    x = _symmetric("eigh", A, UPLO)
    shapes = _eigh_shapes(x)
    values, vectors = factors(factor_node("eigh", x, shapes, UPLO=UPLO.upper()), shapes)
    return Eigen(cast(real_value(values), A.dtype.real), cast(vectors, A.dtype))


def _values(name: str, x: Value, count: int, like: Value, **attrs: Any) -> Value:
    """A decomposition's values without its vectors: half of LAPACK's time."""
    values = x.graph.add(name, (x,), (*x.shape[:-2], count), x.dtype, {"dim": x.ndim - 2, **attrs})
    return cast(real_value(values), like.dtype.real)


@composite("eigvalsh", method=False, namespace="linalg", takes_complex=True)
def eigvalsh(A: Value, UPLO: str = "L") -> Value:
    """The eigenvalues of symmetric matrices (.., n, n), ascending, of which only the triangle `UPLO` is read."""
    x = _symmetric("eigvalsh", A, UPLO)
    return _values("eigvalsh", x, x.shape[-1], A, UPLO=UPLO.upper())


def _eigvalsh_grad(g: Value, y: Value, a: Value) -> Value:
    shapes = _eigh_shapes(a)
    v = factors(factor_node("eigh", a, shapes, UPLO=y.node.attrs["UPLO"]), shapes)[1]
    return matmul(v * _row(g), adjoint(v))


def _eigenvalues(whole: Value) -> Value:
    (a,) = whole.node.inputs
    return factors(whole, _eigh_shapes(whole.graph.value(a)))[0]


primitive("eigvalsh", "host", grad=_eigvalsh_grad, part_of=("eigh", _eigenvalues), contiguous=True, fault=failing(EIGENVALUES),
          reference=lambda node, a: lapack("eigvalsh_up" if node.attrs["UPLO"] == "U" else "eigvalsh_lo", a)[0])


def _eig_grad(g: Value, y: Value, a: Value) -> Value:
    """C. Boeddeker et al., "On the Computation of Complex-valued Gradients with Application to Statistically Optimum
    Beamforming" (2017), 4.77; vectors have length 1."""
    n = a.shape[-1]
    (w, v), (gw, gv) = factors(y, [(n,), (n, n)]), factors(g, [(n,), (n, n)])
    by_v = matmul(adjoint(v), gv)
    lengths = matmul(adjoint(v), v) * _row(real_value(diagonal_value(by_v, 0, -2, -1)))
    inner = _over_gaps(by_v - lengths, conjugate(w)) + diag_embed(gw)
    return solve_value(adjoint(v), matmul(inner, adjoint(v)))


def _general(name: str) -> Reference:
    def reference(node: Node, a: np.ndarray) -> np.ndarray:
        if not np.isfinite(a).all():  # LAPACK may search forever
            raise np.linalg.LinAlgError(f"{name}: the input is to be finite")
        wide = a if a.dtype.kind == "f" else a.astype(np.complex128)  # NumPy has no loop of complex64
        return packed(lapack(name, wide), a.ndim - 2)

    return reference


def _general_node(name: str, x: Value, total: int) -> Value:
    return x.graph.add(name, (x,), (*x.shape[:-2], total), x.dtype.complex, {"dim": x.ndim - 2})


primitive("eig", "host", grad=_eig_grad, reference=_general("eig"))


@composite("eig", method=False, namespace="linalg", public=False, takes_complex=True)
def eig(A: Value) -> Eigen:
    """(eigenvalues, eigenvectors), complex, of matrices (.., n, n), in no order; vectors are columns of length 1.

    The gradient requires distinct eigenvalues and a function that does not depend on the vectors' phases.

    >>> genesis.linalg.eig(genesis.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.imag.abs()
    tensor([1., 1.])
    """
    x = matrices("eig", A, square=True)
    shapes = _eigh_shapes(x)
    node = _general_node("eig", x, sum(map(numel, shapes)))
    return Eigen(*[cast(f, A.dtype.complex) for f in factors(node, shapes)])


def _eigvals_grad(g: Value, y: Value, a: Value) -> Value:
    shapes = _eigh_shapes(a)
    v = adjoint(factors(_general_node("eig", a, sum(map(numel, shapes))), shapes)[1])
    return solve_value(v, _column(g) * v)


primitive("eigvals", "host", grad=_eigvals_grad, part_of=("eig", _eigenvalues), reference=_general("eigvals"))


@composite("eigvals", method=False, namespace="linalg", public=False, takes_complex=True)
def eigvals(A: Value) -> Value:
    """The eigenvalues, complex, of matrices (.., n, n), in no order."""
    x = matrices("eigvals", A, square=True)
    return cast(_general_node("eigvals", x, x.shape[-1]), A.dtype.complex)


# ---- singular values ----
def _svd_shapes(m: int, n: int, full: bool) -> list[Shape]:
    k = min(m, n)
    return [(m, m if full else k), (k,), (n if full else k, n)]


def _svd_grad(g: Value, y: Value, a: Value) -> Value:
    m, n = a.shape[-2:]
    k, shapes, axis = min(m, n), _svd_shapes(m, n, y.node.attrs["full"]), a.ndim - 1
    (u, s, vh), (gu, gs, gvh) = factors(y, shapes), factors(g, shapes)
    u, gu = (slice_value(x, axis, 0, k) for x in (u, gu))
    vh, gvh = (slice_value(x, axis - 1, 0, k) for x in (vh, gvh))
    s, gs = real_value(s), real_value(gs)
    across, along = _column(s), _row(s)
    by_u, by_v = matmul(adjoint(u), gu), matmul(vh, adjoint(gvh))
    inner = _over_gaps(by_u - adjoint(by_u), s * s) * along + across * _over_gaps(by_v - adjoint(by_v), s * s)
    inner = inner + diag_embed(gs)
    if a.dtype.is_complex:  # the phases of a pair of vectors rotate together
        turn = imag_value(diagonal_value(by_u, 0, -2, -1))
        phase = turn / where(turn == 0, 1, s)
        inner = inner + diag_embed(complex_value(phase * 0, phase))
    whole = matmul(matmul(u, inner), vh)
    if m > k:
        whole = whole + matmul((gu - matmul(u, by_u)) / along, vh)
    if n > k:
        whole = whole + matmul(u, (gvh - matmul(adjoint(by_v), vh)) / across)
    return whole


primitive("svd", "host", grad=_svd_grad, contiguous=True, fault=failing(SINGULAR_VALUES), reference=lambda node, a: packed(
    lapack("svd_f" if node.attrs["full"] else "svd_s", a), a.ndim - 2))


def svd_value(A: Value, full: bool) -> list[Value]:
    """U, S and Vh."""
    x = matrices("svd", A)
    shapes = _svd_shapes(x.shape[-2], x.shape[-1], full)
    u, s, vh = factors(factor_node("svd", x, shapes, full=full), shapes)
    return [cast(u, A.dtype), cast(real_value(s), A.dtype.real), cast(vh, A.dtype)]


@composite("linalg_svd", method=False, aliases=("linalg.svd",), public=False, takes_complex=True)
def linalg_svd(A: Value, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """(U, S, Vh) of matrices (.., m, n): `A` is U @ diag(S) @ Vh, S descending. Without `full_matrices`, min(m, n) vectors.
    `driver` is ignored.

    The gradient by the vectors requires distinct singular values.
    """
    return SVD(*svd_value(A, full_matrices))


@composite("svd", takes_complex=True)
def svd(input: Value, some: bool = True, compute_uv: bool = True) -> Transposed:
    """(U, S, V) of matrices (.., m, n): `input` is U @ diag(S) @ V.mH, S descending; with `some`, min(m, n) vectors."""
    u, s, vh = svd_value(input, not some)
    return Transposed(u, s, adjoint(vh)) if compute_uv else Transposed(u * 0, s, adjoint(vh) * 0)


@composite("svdvals", method=False, namespace="linalg", takes_complex=True)
def svdvals(A: Value, *, driver: str | None = None) -> Value:
    """The singular values of matrices (.., m, n), descending; `driver` is ignored.

    >>> genesis.linalg.svdvals(genesis.tensor([[3.0, 0.0], [0.0, -4.0]]))
    tensor([4., 3.])
    """
    x = matrices("svdvals", A)
    return _values("svdvals", x, min(x.shape[-2:]), A, full=False)


def _svdvals_grad(g: Value, y: Value, a: Value) -> Value:
    m, n = a.shape[-2:]
    shapes = _svd_shapes(m, n, full=False)
    u, _, vh = factors(factor_node("svd", a, shapes, full=False), shapes)
    return matmul(u * _row(g), vh)


def _singular_values(whole: Value) -> Value:
    (a,) = whole.node.inputs
    m, n = whole.graph.nodes[a].shape[-2:]
    return factors(whole, _svd_shapes(m, n, full=False))[1]


primitive("svdvals", "host", grad=_svdvals_grad, part_of=("svd", _singular_values), contiguous=True,
          fault=failing(SINGULAR_VALUES), reference=lambda node, a: lapack("svd", a)[0])
