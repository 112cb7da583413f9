"""Transforms of vectors and matrices: simplices, triangles, correlations."""

from __future__ import annotations

from collections.abc import Sequence
from math import log as ln

from genesis.distributions import constraints
from genesis.distributions.transform import Transform
from genesis.distributions.utils import finfo, formula, inside, tril_matrix_to_vec, vec_to_tril_matrix
from genesis.functions.methods.table import functions_of
from genesis.functions.ranges import arange, eye
from genesis.ir.shapes import numel
from genesis.linalg import cholesky
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size

pad, softplus = functions_of("pad", "softplus")


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last axis; not bijective: the inverse is log(y)."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    _compared = ()
    def _call(self, x: Tensor) -> Tensor: return x.softmax(-1)
    def _inverse(self, y: Tensor) -> Tensor: return y.log()
    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]: return _with_vector(self, shape)
    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Vectors of n numbers to points of the simplex of n + 1: each number breaks its share off what is left.

    A number is the log odds of its share, shifted so that zeros break equal parts.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True
    _compared = ()

    def _call(self, x: Tensor) -> Tensor:
        share = inside((x - _left(x).log()).sigmoid())
        rest = (-share).log1p().cumsum(-1).exp()
        return pad(share, (0, 1), value=1.0) * pad(rest, (1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        first = y[..., :-1]
        rest = (1 - first.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return first.log() - rest.log() + _left(first).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shifted = x - _left(x).log()
        return (-shifted - softplus(-shifted) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size((*_with_vector(self, shape)[:-1], shape[-1] + 1))
    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size((*_with_vector(self, shape)[:-1], shape[-1] - 1))


def _left(x: Tensor) -> Tensor:
    """n, n-1, .., 1."""
    return arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)


class LowerCholeskyTransform(Transform):
    """Square matrices to triangular ones with a positive diagonal: the exponential of the diagonal, and what lies below."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    _compared = ()
    def _call(self, x: Tensor) -> Tensor: return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()
    def _inverse(self, y: Tensor) -> Tensor: return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive definite ones: L L^T of the `LowerCholeskyTransform`."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    _compared = ()

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()._call(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor: return LowerCholeskyTransform()._inverse(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of n (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix, n x n.

    tanh of the numbers are partial correlations z; entry (i, j) is z_ij times the root of what z_i0 .. z_i(j-1) leave of the
    row's length 1 (D. Lewandowski, D. Kurowicka, H. Joe, 2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True
    _compared = ()

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), diag=-1)
        left = (1 - partial * partial).sqrt().cumprod(-1)
        partial = partial + eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return partial * pad(left[..., :-1], (1, 0), value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = (1 - (y * y).cumsum(-1)).tril(-1)
        shifted = pad(left[..., :-1], (1, 0), value=1.0)
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(shifted, diag=-1).sqrt()
        return (partial.log1p() - (-partial).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: object = None) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        rows = tril_matrix_to_vec(left, diag=-2)
        of_rows = 0.5 * (rows.clamp(min=finfo(y.dtype).tiny)).log().sum(-1)
        return of_rows - 2 * (x + softplus(-2 * x) - ln(2)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        length = _with_vector(self, shape)[-1]
        n = round((0.25 + 2 * length) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != length:
            raise ValueError(f"CorrCholeskyTransform: {length} numbers are not a triangle below the diagonal")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 2 or shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: wants square matrices, got shape {tuple(shape)}")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class ReshapeTransform(Transform):
    """Events of the shape `in_shape` as events of `out_shape`, of equally many elements."""

    bijective = True
    _compared = "in_shape", "out_shape"

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if numel(self.in_shape) != numel(self.out_shape):
            raise ValueError(f"ReshapeTransform: {tuple(in_shape)} and {tuple(out_shape)} have other numbers of elements")
        super().__init__(cache_size=cache_size)

    domain = formula(lambda t: constraints.independent(constraints.real, len(t.in_shape)))
    codomain = formula(lambda t: constraints.independent(constraints.real, len(t.out_shape)))
    def _call(self, x: Tensor) -> Tensor: return x.reshape(*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape)
    def _inverse(self, y: Tensor) -> Tensor: return y.reshape(*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape)
    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor: return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])
    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]: return _replaced(shape, self.in_shape, self.out_shape)
    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]: return _replaced(shape, self.out_shape, self.in_shape)


def _replaced(shape: Sequence[int], old: Size, new: Size) -> Size:
    cut = len(shape) - len(old)
    if cut < 0 or tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"ReshapeTransform: events have the shape {tuple(old)}, got {tuple(shape)}")
    return Size((*shape[:cut], *new))


def _with_vector(transform: Transform, shape: Sequence[int]) -> Sequence[int]:
    if not shape:
        raise ValueError(f"{transform!r}: wants vectors, got a 0-d value")
    return shape
