"""Constraints of vectors and matrices."""

from __future__ import annotations

from genesis.distributions.constraint import Constraint
from genesis.distributions.utils import Operand, all_rightmost, finfo
from genesis.functions.creation import full
from genesis.functions.selection import where
from genesis.ir.dtypes import bool_
from genesis.linalg import cholesky_ex, eigvalsh
from genesis.tensor.handle import Tensor


# ---- of vectors ----
class _OneHot(Constraint):
    is_discrete, event_dim = True, 1
    def check(self, value: Tensor) -> Tensor: return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1
    def check(self, value: Tensor) -> Tensor: return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Operand) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor: return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# ---- of matrices ----
class _LowerTriangular(Constraint):
    event_dim = 2
    def check(self, value: Tensor) -> Tensor: return all_rightmost(value.tril() == value, 2)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10  # of rows of length 1
        lengths = (value * value).sum(-1)
        return super().check(value) & ((lengths - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=bool_, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        mirrored, tolerance = value.transpose(-1, -2), 1e-6
        return all_rightmost((value - mirrored).abs() <= tolerance + 1e-5 * mirrored.abs(), 2)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        symmetric = super().check(value)
        lowest = eigvalsh(where(symmetric[..., None, None], value, 0))  # those of other matrices might not converge
        return symmetric & (lowest >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return super().check(value) & (cholesky_ex(value).info == 0)
