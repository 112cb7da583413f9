"""Linear systems, inverses and determinants, by LAPACK; their gradients use the same.

The primitives are host operations; their attribute `dim` is the number of leading axes. A decomposition is one node: its
factors are packed along the last axis and read as views. Small ints among them (pivots, positions) are exact in any floating
dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import factorial
from typing import Any

import numpy as np

from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, broadcast_shapes, numel
from genesis.ops.complex_primitives import complex_value, conjugate, imag_value, real_value
from genesis.ops.contraction import adjoint, matmul, swapped
from genesis.ops.conversion import stop_gradient
from genesis.ops.elementwise import log, where
from genesis.ops.joining import cat
from genesis.ops.lapack import SINGULAR, failing, lapack
from genesis.ops.reduction import amax, sum as summed
from genesis.ops.registry import alike, cast, composite, expand, primitive, widened
from genesis.ops.results import SignAndLog
from genesis.ops.rows import formula
from genesis.ops.source import iota
from genesis.ops.views import reshape_value, slice_value
from genesis.runtime.deferred import import_whole


# ---- what decompositions share ----
def matrices(name: str, x: Value, square: bool = False) -> Value:
    """`x`, matrices on its last two axes, in a dtype that LAPACK supports."""
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ValueError(f"{name}: shape {x.shape}; want {'(.., n, n)' if square else '(.., m, n)'}")
    if x.dtype.category < 2:
        raise TypeError(f"{name}: wants a floating tensor, got {x.dtype.name}; convert with .to(genesis.float32)")
    return widened(x)


def identity(like: Value) -> Value:
    """The identity with as many columns as the matrices `like`, in their dtype."""
    positions = iota(like.graph, like.shape[-1])
    return cast(reshape_value(positions, (like.shape[-1], 1)) == positions, like.dtype)


def packed(parts: Sequence[np.ndarray], lead: int) -> np.ndarray:
    """The factors packed along one axis, after `lead` leading axes."""
    return np.concatenate([f.reshape(*f.shape[:lead], numel(f.shape[lead:])) for f in parts], axis=-1)


def factor_node(name: str, x: Value, shapes: Sequence[Shape], **attrs: Any) -> Value:
    """The node of a decomposition of the matrices `x` into factors of these shapes."""
    lead = x.shape[:-2]
    total = sum(map(numel, shapes))
    return x.graph.add(name, (x,), (*lead, total), x.dtype, {"dim": len(lead), **attrs})


def factors(node: Value, shapes: Sequence[Shape]) -> list[Value]:
    """Views of the packed factors, given their shapes."""
    lead = node.shape[:-1]
    ends = [*accumulate(map(numel, shapes), initial=0)]
    return [
        reshape_value(slice_value(node, len(lead), start, end), (*lead, *shape))
        for start, end, shape in zip(ends, ends[1:], shapes, strict=False)
    ]


def _node(name: str, x: Value, shape: tuple[int, ...] | None = None, *others: Value) -> Value:
    return x.graph.add(name, (x, *others), x.shape if shape is None else shape, x.dtype, {"dim": x.ndim - 2})


# ---- equations ----
def solve_value(a: Value, b: Value) -> Value:
    """a^-1 b for matrices with equal leading extents."""
    return a.graph.add("solve", (a, b), b.shape, b.dtype, {"dim": a.ndim - 2})


def _solve_grad(g: Value, x: Value, a: Value, b: Value) -> tuple[Value, Value]:
    to_b = solve_value(swapped(a), g)
    return -matmul(to_b, swapped(x)), to_b


primitive("solve", "host", grad=_solve_grad, reference=lambda node, a, b: lapack("solve", a, b)[0], contiguous=True,
          fault=failing(SINGULAR))


@composite("solve", 2, method=False, namespace="linalg", takes_complex=True)
def solve(A: Value, B: Value, *, left: bool = True) -> Value:
    """The X with `A` @ X = `B`: `A` (.., n, n), `B` (.., n, k) or vectors (.., n); without `left`, X @ `A` = `B`.

    Raises LinAlgError, when evaluated, for a singular matrix.

    >>> genesis.linalg.solve(genesis.tensor([[2.0, 0.0], [0.0, 4.0]]), genesis.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    first, second = alike("solve", A, B)
    a, b = matrices("solve", first, square=True), widened(second)
    if b.ndim == 1 or b.shape == a.shape[:-1]:
        if not left:
            raise ValueError(f"solve: left=False wants matrices on the right, got shape {B.shape}")
        found = _solved(a, reshape_value(b, (*b.shape, 1)))
        return cast(reshape_value(found, found.shape[:-1]), first.dtype)
    if not left:
        return cast(swapped(_solved(swapped(a), swapped(b))), first.dtype)
    return cast(_solved(a, b), first.dtype)


def _solved(a: Value, b: Value) -> Value:
    return solve_value(*aligned("solve", a, b))


def aligned(name: str, a: Value, b: Value) -> tuple[Value, Value]:
    """Square matrices and their right-hand sides with leading axes broadcast."""
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ValueError(f"{name}: shapes {a.shape} and {b.shape}; want (.., n, n) and (.., n, k)")
    lead = broadcast_shapes(name, a.shape[:-2], b.shape[:-2])
    return expand(a, (*lead, *a.shape[-2:])), expand(b, (*lead, *b.shape[-2:]))


# ---- inverses ----
primitive(
    "inv", "host", grad=lambda g, y, a: -matmul(matmul(swapped(y), g), swapped(y)),
    reference=lambda node, a: lapack("inv", a)[0], contiguous=True, fault=failing(SINGULAR),
)


@composite("inv", namespace="linalg", aliases=("inverse",), takes_complex=True)
def inv(A: Value) -> Value:
    """The inverses of matrices (.., n, n). Raises LinAlgError, when evaluated, for a singular one.

    >>> genesis.linalg.inv(genesis.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return cast(_node("inv", matrices("inv", A, square=True)), A.dtype)


def _pinv_grad(g: Value, p: Value, a: Value, *bounds: Value) -> tuple[Value | None, ...]:
    """G. Golub, V. Pereyra, "The Differentiation of Pseudo-Inverses" (SIAM J. Numer. Anal. 10, 1973)."""
    pt, gt, pp = adjoint(p), adjoint(g), matmul(p, adjoint(p))
    outside = matmul(gt, pp)
    inside = matmul(matmul(pt, p), gt)
    to_a = outside - matmul(a, matmul(p, outside)) + inside - matmul(inside, matmul(p, a)) - matmul(matmul(pt, g), pt)
    return to_a, *[None for _ in bounds]


def _pinv_reference(node: Node, a: np.ndarray, atol: np.ndarray, rtol: np.ndarray) -> np.ndarray:
    u, s, vh = np.linalg.svd(a, full_matrices=False, hermitian=node.attrs["hermitian"])
    bound = np.maximum(atol[..., None], rtol[..., None] * s.max(-1, keepdims=True, initial=0))
    inverse = np.divide(1, s, out=np.zeros_like(s), where=~(s <= bound))  # NaN counts
    return np.matmul(vh.conj().swapaxes(-1, -2) * inverse[..., None, :], u.conj().swapaxes(-1, -2))


def _pinv_formula(node: Node, a: Value, atol: Value, rtol: Value) -> Value:
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    k = min(m, n)
    if node.attrs["hermitian"]:
        shapes: list[Shape] = [(n,), (n, n)]
        signed, v = factors(factor_node("eigh", a, shapes, UPLO="L"), shapes)
        u, s = v, abs(signed)
    else:
        shapes = [(m, k), (k,), (k, n)]
        u, s, vh = factors(factor_node("svd", a, shapes, full=False), shapes)
        signed, v = s, swapped(vh)
    most = amax(s, (s.ndim - 1,), True)
    atol, rtol = (reshape_value(x, (*lead, 1)) for x in (atol, rtol))
    counts = ~((s <= atol) | (s <= rtol * most))  # NaN counts
    inverse = where(counts, 1 / where(counts, signed, 1), 0)
    return matmul(v * reshape_value(inverse, (*lead, 1, k)), swapped(u))


primitive("pinv", "host", grad=_pinv_grad, reference=_pinv_reference, formula=_pinv_formula)


def _tolerances(x: Value, atol: Value | float | None, rtol: Value | float | None) -> list[Value]:
    """(atol, rtol), one for each of the matrices `x`. With a positive `atol`, `rtol` is 0 unless given."""
    share = max(x.shape[-2:]) * float(np.finfo(x.dtype.numpy).eps)
    given: list[Value] = []
    for bound in (atol, rtol):
        number = bound if isinstance(bound, Value) else x.graph.constant(float(bound or 0.0), x.dtype.real)
        if broadcast_shapes("pinv", number.shape, x.shape[:-2]) != x.shape[:-2]:
            raise ValueError(f"pinv: a tolerance has shape {number.shape}; want a number, or one for each of {x.shape[:-2]}")
        given.append(cast(number, x.dtype.real))
    if rtol is None:
        given[1] = where(given[0] > 0, 0, share)
    return [expand(bound, x.shape[:-2]) for bound in given]


@composite("pinv", (0, 1, 2), namespace="linalg", aliases=("pinverse",), keywords={"rcond": "rtol"}, takes_complex=True)
def pinv(A: Value, *, atol: Value | float | None = None, rtol: Value | float | None = None, hermitian: bool = False) -> Value:
    """The pseudo-inverses of matrices (.., m, n) (Moore, 1920; Penrose, 1955).

    Singular values up to max(`atol`, `rtol` times the greatest) count as zeros. Both are numbers, or one per matrix; `rtol`
    defaults to max(m, n) times the dtype's eps, or 0 with a positive `atol`. With `hermitian`, only the lower triangle of a
    symmetric matrix is read.
    """
    x = matrices("pinv", A, square=hermitian)
    attrs = {"dim": x.ndim - 2, "hermitian": hermitian}
    given = (x, *_tolerances(x, atol, rtol))
    return cast(x.graph.add("pinv", given, (*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype, attrs), A.dtype)


# ---- determinants ----
def _norm(a: np.ndarray) -> np.ndarray:
    """The 1-norms of matrices."""
    return np.asarray(np.abs(a).sum(-2).max(-1, initial=0))


def _cofactors_reference(node: Node, a: np.ndarray) -> np.ndarray:
    """The determinant times the transposed inverse; by singular values if any matrix is close to a singular one."""
    n = a.shape[-1]
    try:
        inverse, d = lapack("inv", a)[0], lapack("det", a)[0][..., None, None]
        limits, size = np.finfo(a.dtype), np.abs(d)
        is_accurate = (_norm(a) * _norm(inverse) < 0.01 / limits.eps).all()
        if is_accurate and np.isfinite(size).all() and (size > limits.tiny).all():
            return d * inverse.swapaxes(-1, -2)
        if is_accurate:  # its determinant is beyond the dtype, its cofactors need not be
            sign, log = np.linalg.slogdet(a.astype(np.result_type(a, np.float64)))
            half, by_row = np.exp(log / 2)[..., None, None], inverse.swapaxes(-1, -2)
            return sign[..., None, None] * np.where(by_row == 0, 0, by_row * half * half)
    except np.linalg.LinAlgError:
        pass
    u, s, vh = np.linalg.svd(a)
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * (u.conj() * others[..., None, :]) @ vh.conj()


def _cofactors_grad(g: Value, c: Value, a: Value) -> Value:
    b = swapped(_node("inv", a))
    return summed(g * b, (-2, -1), True) * c - matmul(matmul(c, swapped(g)), b)


def _slogdet_grad(g: Value, y: Value, a: Value) -> Value:
    """d log det = tr(A^-1 dA): its real part changes the logarithm, its imaginary part rotates a complex sign."""
    to_sign, to_log = (slice_value(g, g.ndim - 1, i, i + 1) for i in (0, 1))
    if a.dtype.is_complex:
        turn = -imag_value(conjugate(to_sign) * slice_value(y, g.ndim - 1, 0, 1))
        to_log = complex_value(real_value(to_log), turn)
    return reshape_value(to_log, (*g.shape[:-1], 1, 1)) * adjoint(_node("inv", a))


primitive("cofactors", "host", grad=_cofactors_grad, reference=_cofactors_reference)
primitive("det", "host", grad=lambda g, y, a: reshape_value(g, (*g.shape, 1, 1)) * _node("cofactors", a),
          reference=lambda node, a: lapack("det", a)[0], contiguous=True)
primitive("slogdet", "host", grad=_slogdet_grad, reference=lambda node, a: np.stack(lapack("slogdet", a), -1), contiguous=True)


@composite("det", namespace="linalg", takes_complex=True)
def det(A: Value) -> Value:
    """The determinants of matrices (.., n, n).

    >>> genesis.det(genesis.tensor([[4.0, 2.0], [1.0, 3.0]]))
    tensor(10.)
    """
    x = matrices("det", A, square=True)
    return cast(_node("det", x, x.shape[:-2]), A.dtype)


@composite("slogdet", takes_complex=True)
def slogdet(A: Value) -> SignAndLog:
    """(sign, logabsdet) of the determinants of matrices (.., n, n), which themselves may overflow."""
    x = matrices("slogdet", A, square=True)
    lead = x.shape[:-2]
    both = _node("slogdet", x, (*lead, 2))
    sign, size = (reshape_value(slice_value(both, len(lead), i, i + 1), lead) for i in (0, 1))
    return SignAndLog(cast(sign, A.dtype), cast(real_value(size), A.dtype.real))


@composite("linalg_slogdet", method=False, aliases=("linalg.slogdet",), public=False, takes_complex=True)
def linalg_slogdet(A: Value) -> SignAndLog:
    """(sign, logabsdet), as `genesis.slogdet`'s: of the determinants of matrices (.., n, n)."""
    return slogdet(A)  # type: ignore[no-any-return]


@composite("logdet", takes_complex=True)
def logdet(input: Value) -> Value:
    """The logarithms of the determinants of matrices (.., n, n): NaN where negative, unless they are complex."""
    sign, size = slogdet(input)
    return size + log(sign) if sign.dtype.is_complex else where(sign < 0, float("nan"), size)


# ---- the exponential ----
@np.errstate(all="ignore")
def _exponential(node: Node, a: np.ndarray) -> np.ndarray:
    """Taylor's polynomial where the norm asks for few halvings, of float32 more in float64; elsewhere SciPy's exponential.

    A norm may be far greater than those of powers suggest: then halving by it loses digits (A. Al-Mohy, N. Higham, 2009).
    """
    near, far = (2, 2**16) if np.finfo(a.dtype).bits == 32 else (8, 8)  # norms below which Taylor's are exact, and in float64
    size, wide, y = _norm(a), np.result_type(a, np.float64), np.empty_like(a)
    for chosen, dtype, function in (
        (size < near, a.dtype, _squared_taylor), ((size >= near) & (size < far), wide, _squared_taylor),
        (~(size < far), wide, lambda matrices: import_whole("scipy.linalg").expm(matrices)),
    ):
        if chosen.any():
            y[chosen] = function(a[chosen].astype(dtype))
    return y


def _squared_taylor(a: np.ndarray) -> np.ndarray:
    """Taylor's polynomial of each matrix, halved until its norm is below 1, and squared as often (Higham, 2008, 10.3).

    Terms beyond degree 12 then add less than 1e-9, beyond 20 less than 1e-19. It is a polynomial in A^4 whose coefficients are
    polynomials of degree 3 (M. Paterson, L. Stockmeyer, 1973).
    """
    halvings = np.maximum(np.frexp(_norm(a))[1], 0)
    first = np.ldexp(1.0, -halvings)[..., None, None].astype(a.real.dtype) * a
    second = first @ first
    powers = [np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape), first, second, second @ first]
    fourth, degree = second @ second, 12 if np.finfo(a.dtype).bits == 32 else 20
    total = powers[0] * a.dtype.type(1 / factorial(degree))
    for start in range(degree - 4, -1, -4):
        total = fourth @ total if start < degree - 4 else fourth * total[..., :1, :1]
        for power, matrix in enumerate(powers, start):
            total += matrix * a.dtype.type(1 / factorial(power))
    for done in range(halvings.max(initial=0)):
        further = halvings > done
        total[further] = total[further] @ total[further]
    return total


def _exponential_grad(g: Value, y: Value, a: Value) -> Value:
    """The upper right block of the exponential of [[A.T, g], [0, A.T]] (N. Higham, "Functions of Matrices", 2008, 3.6).

    It is linear in g, whose norm is scaled to 1/8 or less: a larger g would cause more squarings and lose digits.
    """
    n, axis = a.shape[-1], a.ndim - 2
    t = swapped(a)
    size = stop_gradient(amax(abs(g), (axis, axis + 1), True)) if n else g
    size = where(size == 0, 1, size)
    none = expand(g.graph.constant(0, g.dtype), g.shape)
    whole = _node("matrix_exp", cat([cat([t, g / size / (8 * n)], axis + 1), cat([none, t], axis + 1)], axis))
    return slice_value(slice_value(whole, axis, 0, n), axis + 1, n, None) * (8 * n) * size


primitive("matrix_exp", "host", grad=_exponential_grad, reference=_exponential)


matrix_exp = formula(
    "matrix_exp", lambda A: cast(_node("matrix_exp", matrices("matrix_exp", A, square=True)), A.dtype),
    "The exponentials of matrices (.., n, n): the sum of A^k / k!.", namespace="linalg", takes_complex=True,
)
