"""Distributions with matrices: multivariate normal ones, Wishart's, and Cholesky factors of correlations."""

from __future__ import annotations

from math import log as ln, nan, pi

from genesis.distributions import constraints
from genesis.distributions.declaration import Alternative, Parameter, parameter
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.gamma import Beta, standard_gamma
from genesis.distributions.utils import Operand, above, as_tensors, derived, finfo, formula
from genesis.functions.methods.table import functions_of
from genesis.functions.random_draws import stream
from genesis.functions.ranges import arange, eye, tril_indices
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.linalg import cholesky, solve_triangular
from genesis.random import randn
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode

cholesky_inverse, mvlgamma, pad = functions_of("cholesky_inverse", "mvlgamma", "pad")


def log_diagonal(lower: Tensor) -> Tensor:
    """Half the logarithm of the determinant of L L^T."""
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def solved(lower: Tensor, right: Tensor) -> Tensor:
    """L^-1 right, of matrices that broadcast."""
    return solve_triangular(lower, right, upper=False)


def size_in(lower: Tensor, difference: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x, of vectors x along the last axis."""
    return solved(lower, difference.unsqueeze(-1)).squeeze(-1).square().sum(-1)


def trace_in(lower: Tensor, factor: Tensor) -> Tensor:
    """The trace of (L L^T)^-1 F F^T."""
    return solved(lower, factor).square().sum((-2, -1))


class WithCovariance(Distribution):
    """Distributions that are given by a covariance, its inverse or its Cholesky factor; the others follow."""

    def _given_matrix(self, *matrices: Tensor | None) -> Tensor:
        """The first matrix that is given; one that is no matrix is refused."""
        matrix = next((m for m in matrices if m is not None), None)
        if matrix is not None and matrix.ndim > 1:
            return matrix
        got = "none" if matrix is None else f"one of shape {tuple(matrix.shape)}"
        raise ValueError(
            f"{type(self).__name__}: a matrix covariance_matrix, precision_matrix or scale_tril must be given, got {got}")

    def _factorize(self, matrix: Tensor) -> None:
        """Compute the Cholesky factor once, of the matrix that was given before it was broadcast."""
        if "covariance_matrix" in vars(self):
            matrix = cholesky(matrix)
        elif "precision_matrix" in vars(self):  # by the factor of the matrix turned upside down
            turned = cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT
            matrix = solved(turned, eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device))
        self._unbroadcasted_scale_tril = matrix

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


class NormalVectors(WithCovariance):
    """Vectors of normal numbers, of a covariance C.

    A class has its `_log_determinant()`, `_size(x)` x^T C^-1 x of vectors, `_factors()` F, (.., n, m), of which C is the sum
    of F F^T, and `_trace(F)` of C^-1 F F^T.
    """

    def _log_determinant(self) -> Tensor: raise NotImplementedError
    def _size(self, difference: Tensor) -> Tensor: raise NotImplementedError
    def _factors(self) -> list[Tensor]: raise NotImplementedError
    def _trace(self, factor: Tensor) -> Tensor: raise NotImplementedError
    support = constraints.real_vector
    has_rsample = True
    mean = mode = formula(lambda d: d.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        size = self._size(self._checked(value) - self.mean)
        return -0.5 * (self._event_shape[0] * ln(2 * pi) + self._log_determinant() + size)

    def entropy(self) -> Tensor:
        return (0.5 * (self._event_shape[0] * (1 + ln(2 * pi)) + self._log_determinant())).expand(self._batch_shape)


class MultivariateNormal(NormalVectors):
    """Vectors of normal numbers with mean `loc` and the given covariance, or its inverse, or its Cholesky factor.

    >>> normal = genesis.distributions.MultivariateNormal(genesis.zeros(2), genesis.eye(2))
    >>> normal.log_prob(genesis.zeros(2))
    tensor(-1.8379)
    """

    loc: Parameter = parameter(constraints.real_vector)
    covariance_matrix: Alternative = parameter(constraints.positive_definite, default=None)
    precision_matrix: Alternative = parameter(constraints.positive_definite, default=None)
    scale_tril: Alternative = parameter(constraints.lower_cholesky, default=None)

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

    def _log_determinant(self) -> Tensor: return 2 * log_diagonal(self._unbroadcasted_scale_tril)
    def _size(self, difference: Tensor) -> Tensor: return size_in(self._unbroadcasted_scale_tril, difference)
    def _factors(self) -> list[Tensor]: return [self._unbroadcasted_scale_tril]
    def _trace(self, factor: Tensor) -> Tensor: return trace_in(self._unbroadcasted_scale_tril, factor)
    variance = formula(lambda d: d._unbroadcasted_scale_tril.square().sum(-1).expand(d._batch_shape + d._event_shape))


class LowRankMultivariateNormal(NormalVectors):
    """Vectors of normal numbers with the covariance W W^T + D, of few factors W, (n, k), and a diagonal D.

    Determinants and inverses are those of the k x k matrix I + W^T D^-1 W, the capacitance (M. Woodbury, 1950).
    """

    loc: Parameter = parameter(constraints.real_vector)
    cov_factor: Parameter = parameter(constraints.independent(constraints.real, 2))
    cov_diag: Parameter = parameter(constraints.independent(constraints.positive, 1))

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        given = loc.shape, cov_factor.shape, cov_diag.shape
        if not loc.ndim or cov_factor.ndim < 2 or not loc.shape[-1:] == cov_factor.shape[-2:-1] == cov_diag.shape[-1:]:
            raise ValueError("LowRankMultivariateNormal: loc, cov_factor and cov_diag have shapes {}, {} and {}; want (.., n), "
                             "(.., n, k), (.., n)".format(*map(tuple, given)))
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

    def _log_determinant(self) -> Tensor:
        return 2 * log_diagonal(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def _size(self, difference: Tensor) -> Tensor:
        scaled = difference / self._unbroadcasted_cov_diag
        inner = (self._unbroadcasted_cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        return (difference * scaled).sum(-1) - size_in(self._capacitance_tril, inner)

    def _factors(self) -> list[Tensor]:
        return [self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag.sqrt().diag_embed()]

    def _trace(self, factor: Tensor) -> Tensor:
        scaled = factor / self._unbroadcasted_cov_diag.unsqueeze(-1)
        inner = self._unbroadcasted_cov_factor.mT @ scaled
        return (factor * scaled).sum((-2, -1)) - trace_in(self._capacitance_tril, inner)

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

    variance = formula(lambda d: (d._unbroadcasted_cov_factor.square().sum(-1) + d._unbroadcasted_cov_diag).expand(
        d._batch_shape + d._event_shape))


_TRIES = 10  # PyTorch's


class Wishart(WithCovariance, ExponentialFamily):
    """The distribution of sums of x x^T, of `df` normal vectors x with mean 0 and the given covariance."""

    df: Parameter = parameter(constraints.greater_than(0))
    covariance_matrix: Alternative = parameter(constraints.positive_definite, default=None)
    precision_matrix: Alternative = parameter(constraints.positive_definite, default=None)
    scale_tril: Alternative = parameter(constraints.lower_cholesky, default=None)
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, df: Operand, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:
        matrix = self._given_matrix(covariance_matrix, precision_matrix, scale_tril)
        n = matrix.shape[-1]
        self._declare(validate_args, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
                      scale_tril=scale_tril, df=df)
        self._require(lambda: self.df > n - 1, f"df must exceed {n - 1} of {n} x {n} matrices")
        self._factorize(matrix)

    def rsample(self, sample_shape: Extents = (), max_try_correction: int | None = None) -> Tensor:
        """(L A)(L A)^T of triangles A: roots of chi-squared numbers on the diagonal, normal ones below (M. Bartlett, 1933)."""
        lead = self._extended_shape(sample_shape)[: -2 - len(self._batch_shape)]
        sample = self._by_triangles(lead)
        if stream(sample.device) is None:
            return sample
        # PyTorch draws those anew that are positive definite, once, and the others of these until they are.
        anew = self._is_proper(sample)
        for _ in range(_TRIES if max_try_correction is None else max_try_correction):
            if not anew.any():
                break
            again = self._by_triangles((int(anew.sum()),))
            sample[anew] = again
            anew = anew.masked_scatter(anew, ~self._is_proper(again))
        return sample

    def _is_proper(self, sample: Tensor) -> Tensor:
        """The mask of samples with a positive definite matrix in their batch."""
        with grad_mode(False):
            proper = self.support.check(sample)
            return proper.flatten(proper.ndim - len(self._batch_shape)).any(-1) if self._batch_shape else proper

    def _by_triangles(self, lead: tuple[int, ...]) -> Tensor:
        n, df = self._event_shape[0], self.df
        freedom = df.unsqueeze(-1) - arange(n, dtype=df.dtype, device=df.device)
        roots = (2 * standard_gamma(freedom / 2, (*lead, *self._batch_shape, n))).sqrt()
        triangle = roots.clamp(min=finfo(roots.dtype).eps).diag_embed()
        rows, columns = tril_indices(n, n, -1)
        triangle[..., rows, columns] = randn(
            (*lead, *self._batch_shape, n * (n - 1) // 2), dtype=roots.dtype, device=roots.device)
        half = self._unbroadcasted_scale_tril @ triangle
        return half @ half.mT

    def log_prob(self, value: Tensor) -> Tensor:
        value, n, df, lower = self._checked(value), self._event_shape[0], self.df, self._unbroadcasted_scale_tril
        factor = cholesky(value)
        trace, log_value = trace_in(lower, factor), 2 * log_diagonal(factor)
        return (-df * (n / 2 * ln(2) + log_diagonal(lower)) - mvlgamma(df / 2, n) + (df - n - 1) / 2 * log_value - trace / 2)

    def entropy(self) -> Tensor:
        n, df = self._event_shape[0], self.df
        steps = arange(n, dtype=df.dtype, device=df.device)
        digammas = ((df.unsqueeze(-1) - steps) / 2).digamma().sum(-1)
        size = (n + 1) * (n / 2 * ln(2) + log_diagonal(self._unbroadcasted_scale_tril))
        return size + mvlgamma(df / 2, n) - (df - n - 1) / 2 * digammas + df * n / 2

    mean = formula(lambda d: d.df[..., None, None] * d.covariance_matrix)
    mode = formula(
        lambda d: above(d.df - d._event_shape[0] - 1, 0, lambda factor: factor, nan)[..., None, None] * d.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (covariance.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    _natural_params = formula(lambda d: (-0.5 * d.precision_matrix, 0.5 * (d.df - d._event_shape[0] - 1)))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        n = self._event_shape[0]
        half = y + (n + 1) / 2
        return half * (-(-2 * x).slogdet()[1] + n * ln(2)) + mvlgamma(half, n)


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices R, `dim` x `dim`, of density det(R)^(concentration - 1).

    Rows are drawn by the onion method (D. Lewandowski, D. Kurowicka, H. Joe, 2009).
    """

    concentration: Parameter = parameter(constraints.positive)
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Operand = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim is {dim}; want 2 or more")
        (self.concentration,) = as_tensors(concentration)
        self.dim = dim
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    @property
    def _beta(self) -> Beta:
        """The squared lengths of rows before the diagonal; the first, which has none, is drawn as PyTorch draws it."""
        like, n = self.concentration, self.dim
        row = arange(n - 1, dtype=like.dtype, device=like.device)
        row = pad(row, (1, 0), value=0.0)
        first, second = (row + 1) / 2, like.unsqueeze(-1) + 0.5 * (n - 2 - row)
        return Beta(first.expand(second.shape), second, validate_args=False)

    def _drawn(self, sample_shape: Extents) -> Tensor:
        shape, like = self._extended_shape(sample_shape), self.concentration
        squares = self._beta.sample(shape[: -2 - len(self._batch_shape)]).unsqueeze(-1)
        below = randn(shape, dtype=like.dtype, device=like.device).tril(-1)
        lengths = below.square().sum(-1, True).sqrt()
        rows = squares.sqrt() * (below / where(lengths == 0, 1, lengths))
        return rows + (1 - rows.square().sum(-1)).clamp(min=finfo(rows.dtype).tiny).sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        value, n, eta = self._checked(value), self.dim, self.concentration
        row = arange(2, n + 1, dtype=eta.dtype, device=eta.device)
        order = 2 * (eta - 1).unsqueeze(-1) + n - row
        density = (order * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        alpha = eta + 0.5 * (n - 1)
        levels = mvlgamma(alpha - 0.5, n - 1) - (n - 1) * alpha.lgamma()
        return density - levels - 0.5 * (n - 1) * ln(pi)
