"""Distributions of matrices: of covariances, Wishart's, and of correlations, that of Lewandowski, Kurowicka and Joe."""

from __future__ import annotations

from math import log as ln

from genesis.distributions import constraints
from genesis.distributions.beta import Beta
from genesis.distributions.declaration import Alternative, Parameter, parameter
from genesis.distributions.distribution import Distribution
from genesis.distributions.exp_family import ExponentialFamily
from genesis.distributions.gamma import standard_gamma
from genesis.distributions.multivariate_normal import (
    WithCovariance,
    log_diagonal,
    solved,
)
from genesis.distributions.utils import Operand, as_tensors, finfo, formula
from genesis.functions.methods.table import functions_of
from genesis.functions.random_draws import stream
from genesis.functions.ranges import arange, tril_indices
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.linalg import cholesky
from genesis.random import randn
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording

__all__ = ["LKJCholesky", "Wishart"]

mvlgamma, pad = functions_of("mvlgamma", "pad")

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
        with recording(False) as unrecorded, unrecorded:
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
        trace = solved(lower, cholesky(value)).square().sum((-2, -1))
        log_value = 2 * log_diagonal(cholesky(value))
        return (-df * (n / 2 * ln(2) + log_diagonal(lower)) - mvlgamma(df / 2, n) + (df - n - 1) / 2 * log_value - trace / 2)

    def entropy(self) -> Tensor:
        n, df = self._event_shape[0], self.df
        steps = arange(n, dtype=df.dtype, device=df.device)
        digammas = ((df.unsqueeze(-1) - steps) / 2).digamma().sum(-1)
        size = (n + 1) * (n / 2 * ln(2) + log_diagonal(self._unbroadcasted_scale_tril))
        return size + mvlgamma(df / 2, n) - (df - n - 1) / 2 * digammas + df * n / 2

    mean = formula(lambda d: d.df[..., None, None] * d.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[0] - 1
        return where(factor > 0, factor, float("nan"))[..., None, None] * self.covariance_matrix

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

    def sample(self, sample_shape: Extents = ()) -> Tensor:
        shape, like = self._extended_shape(sample_shape), self.concentration
        with recording(False) as again, again:
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
        return density - levels - 0.5 * (n - 1) * ln(3.141592653589793)
