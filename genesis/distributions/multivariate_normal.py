"""Multivariate normal distributions, of any covariance, and of few factors and a diagonal."""

from __future__ import annotations

from math import log as ln
from math import pi

from genesis.distributions import constraints
from genesis.distributions.declaration import Alternative, Parameter, parameter
from genesis.distributions.distribution import Distribution
from genesis.distributions.utils import derived, formula
from genesis.functions.methods.table import functions_of
from genesis.functions.ranges import eye
from genesis.ir.annotations import Extents
from genesis.linalg import cholesky, solve_triangular
from genesis.random import randn
from genesis.tensor.handle import Tensor

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]

(cholesky_inverse,) = functions_of("cholesky_inverse")


def log_diagonal(lower: Tensor) -> Tensor:
    """Half the logarithm of the determinant of L L^T."""
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def solved(lower: Tensor, right: Tensor) -> Tensor:
    """L^-1 right, of matrices that broadcast."""
    return solve_triangular(lower, right, upper=False)


def size_in(lower: Tensor, difference: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x, of vectors x along the last axis."""
    return solved(lower, difference.unsqueeze(-1)).squeeze(-1).square().sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse, by that of the matrix turned upside down."""
    turned = cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    return solved(turned, eye(precision.shape[-1], dtype=precision.dtype, device=precision.device))


class WithCovariance(Distribution):
    """Distributions that are given by a covariance, its inverse or its Cholesky factor; the others follow."""

    def _given_matrix(self, *matrices: Tensor | None) -> Tensor:
        """The first matrix that is given; one that is no matrix is refused."""
        matrix = next((m for m in matrices if m is not None), None)
        if matrix is None or matrix.ndim < 2:
            got = "none" if matrix is None else f"one of shape {tuple(matrix.shape)}"
            raise ValueError(
                f"{type(self).__name__}: a matrix covariance_matrix, precision_matrix or scale_tril must be given, got {got}")
        return matrix

    def _factorize(self, matrix: Tensor) -> None:
        """Compute the Cholesky factor once, of the matrix that was given before it was broadcast."""
        given = vars(self)
        if "scale_tril" in given:
            self._unbroadcasted_scale_tril = matrix
            return
        self._unbroadcasted_scale_tril = cholesky(matrix) if "covariance_matrix" in given else precision_to_scale_tril(matrix)

    @derived
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        lower = self._unbroadcasted_scale_tril
        return lower.expand(*self._batch_shape, *lower.shape[-2:])

    @derived
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        lower = self.scale_tril
        return lower @ lower.mT

    @derived
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return cholesky_inverse(self.scale_tril)


class MultivariateNormal(WithCovariance):
    """Vectors of normal numbers with mean `loc` and the given covariance, or its inverse, or its Cholesky factor.

    >>> normal = genesis.distributions.MultivariateNormal(genesis.zeros(2), genesis.eye(2))
    >>> normal.log_prob(genesis.zeros(2))
    tensor(-1.8379)
    """

    loc: Parameter = parameter(constraints.real_vector)
    covariance_matrix: Alternative = parameter(constraints.positive_definite, default=None)
    precision_matrix: Alternative = parameter(constraints.positive_definite, default=None)
    scale_tril: Alternative = parameter(constraints.lower_cholesky, default=None)
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("MultivariateNormal: loc must have one axis at least, got a 0-d tensor")
        matrix = self._given_matrix(covariance_matrix, precision_matrix, scale_tril)
        if loc.shape[-1] != matrix.shape[-1]:
            loc = loc.expand(*loc.shape[:-1], matrix.shape[-1])
        self._declare(validate_args, loc=loc, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
                      scale_tril=scale_tril)
        self._factorize(matrix)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """loc + L z, of standard normal z."""
        shape = self._extended_shape(sample_shape)
        z = randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        lower = self._unbroadcasted_scale_tril
        size = size_in(lower, self._checked(value) - self.loc)
        return -0.5 * (self._event_shape[0] * ln(2 * pi) + size) - log_diagonal(lower)

    def entropy(self) -> Tensor:
        level = 0.5 * self._event_shape[0] * (1 + ln(2 * pi)) + log_diagonal(self._unbroadcasted_scale_tril)
        return level.expand(self._batch_shape)

    mean = mode = formula(lambda d: d.loc)
    variance = formula(lambda d: d._unbroadcasted_scale_tril.square().sum(-1).expand(d._batch_shape + d._event_shape))


class LowRankMultivariateNormal(WithCovariance):
    """Vectors of normal numbers with the covariance W W^T + D, of few factors W, (n, k), and a diagonal D.

    Determinants and inverses are those of the k x k matrix I + W^T D^-1 W, the capacitance (M. Woodbury, 1950).
    """

    loc: Parameter = parameter(constraints.real_vector)
    cov_factor: Parameter = parameter(constraints.independent(constraints.real, 2))
    cov_diag: Parameter = parameter(constraints.independent(constraints.positive, 1))
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_diag.ndim < 1:
            raise ValueError("LowRankMultivariateNormal: wants loc (.., n), cov_factor (.., n, k) and cov_diag (.., n)")
        n = loc.shape[-1]
        if cov_factor.shape[-2] != n or cov_diag.shape[-1] != n:
            raise ValueError(
                f"LowRankMultivariateNormal: loc has {n} entries, cov_factor {cov_factor.shape[-2]} rows and cov_diag "
                f"{cov_diag.shape[-1]} entries; want equally many"
            )
        self._declare(validate_args, loc=loc, cov_factor=cov_factor, cov_diag=cov_diag)
        scaled = cov_factor / cov_diag.unsqueeze(-1)
        identity = eye(cov_factor.shape[-1], dtype=loc.dtype, device=loc.device)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = cholesky(cov_factor.mT @ scaled + identity)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """loc + W z + D^(1/2) e, of standard normal z and e."""
        shape, like = self._extended_shape(sample_shape), self.loc
        z = randn((*shape[:-1], self.cov_factor.shape[-1]), dtype=like.dtype, device=like.device)
        e = randn(shape, dtype=like.dtype, device=like.device)
        factors = (self._unbroadcasted_cov_factor @ z.unsqueeze(-1)).squeeze(-1)
        return self.loc + factors + self._unbroadcasted_cov_diag.sqrt() * e

    def log_determinant(self) -> Tensor:
        """The logarithm of the covariance's determinant."""
        return 2 * log_diagonal(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def size(self, difference: Tensor) -> Tensor:
        """x^T C^-1 x of vectors x."""
        scaled = difference / self._unbroadcasted_cov_diag
        inner = (self._unbroadcasted_cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        return (difference * scaled).sum(-1) - size_in(self._capacitance_tril, inner)

    def log_prob(self, value: Tensor) -> Tensor:
        size = self.size(self._checked(value) - self.loc)
        return -0.5 * (self._event_shape[0] * ln(2 * pi) + self.log_determinant() + size)

    def entropy(self) -> Tensor:
        return (0.5 * (self._event_shape[0] * (1 + ln(2 * pi)) + self.log_determinant())).expand(self._batch_shape)

    @derived
    def covariance_matrix(self) -> Tensor:
        """W W^T + D."""
        matrix = self._unbroadcasted_cov_factor @ self._unbroadcasted_cov_factor.mT + self._unbroadcasted_cov_diag.diag_embed()
        return matrix.expand(*self._batch_shape, *matrix.shape[-2:])

    @derived
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return cholesky(self.covariance_matrix)

    @derived
    def precision_matrix(self) -> Tensor:
        """D^-1 - D^-1 W (I + W^T D^-1 W)^-1 W^T D^-1."""
        diagonal = self._unbroadcasted_cov_diag
        half = solved(self._capacitance_tril, self._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2))
        matrix = diagonal.reciprocal().diag_embed() - half.mT @ half
        return matrix.expand(*self._batch_shape, *matrix.shape[-2:])

    mean = mode = formula(lambda d: d.loc)

    @property
    def variance(self) -> Tensor:
        numbers = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return numbers.expand(self._batch_shape + self._event_shape)
