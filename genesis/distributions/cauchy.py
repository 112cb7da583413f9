"""Cauchy's distribution, the half-Cauchy and Student's."""

from __future__ import annotations

from math import inf, nan, pi
from math import log as ln

from genesis.distributions import constraints
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.distribution import Distribution
from genesis.distributions.folded import Folded
from genesis.distributions.gamma import standard_gamma
from genesis.distributions.utils import formula
from genesis.functions.creation import full_like
from genesis.functions.methods.table import functions_of
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.random import randn
from genesis.tensor.handle import Tensor

__all__ = ["Cauchy", "HalfCauchy", "StudentT"]

digamma_error, log_beta = functions_of("digamma_error", "log_beta")


class Cauchy(Distribution):
    """Cauchy's distribution about `loc`: the quotient of two centred normal numbers, times `scale`."""

    loc: Parameter = parameter(constraints.real)
    scale: Parameter = parameter(constraints.positive)
    support = constraints.real
    has_rsample = True

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """Numbers about 0 of size 1, scaled and moved."""
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -ln(pi) - self.scale.log() - (z * z).log1p()

    def cdf(self, value: Tensor) -> Tensor: return self.scale.atan2(self.loc - self._checked(value)) / pi
    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * tangent(value - 0.5, where(value < 0.5, value, 1 - value))
    def entropy(self) -> Tensor: return ln(4 * pi) + self.scale.log()
    mean = formula(lambda d: full_like(d.loc, nan))
    mode = formula(lambda d: d.loc)
    variance = formula(lambda d: full_like(d.loc, inf))


def tangent(share: Tensor, rest: Tensor) -> Tensor:
    """tan(pi share), of shares of which `rest` is the distance of the size from 1/2; it has digits near infinity."""
    small = share.abs() < 0.25
    far = share.sign() / (pi * where(small, 0.25, rest + 0.0)).tan()  # a probability of -0.0 is one of 0.0
    return where(small, (pi * where(small, share, 0)).tan(), far)


class HalfCauchy(Folded):
    """The absolute value of a Cauchy number about 0."""

    whole = Cauchy
    mean = variance = formula(lambda d: full_like(d.scale, inf))
    def cdf(self, value: Tensor) -> Tensor: return (self._checked(value) / self.scale).atan() * (2 / pi)

    def icdf(self, prob: Tensor) -> Tensor:
        return self.scale * tangent(prob / 2, (1 - prob) / 2)


class StudentT(Distribution):
    """Student's distribution of `df` degrees of freedom, times `scale`, about `loc`."""

    df: Parameter = parameter(constraints.positive)
    loc: Parameter = parameter(constraints.real, default=0.0)
    scale: Parameter = parameter(constraints.positive, default=1.0)
    support = constraints.real
    has_rsample = True

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """A normal number over the root of a mean of squares."""
        shape = self._extended_shape(sample_shape)
        numbers = randn(shape, dtype=self.df.dtype, device=self.df.device)
        squares = standard_gamma(self.df / 2, shape) * 2 / self.df
        return self.loc + self.scale * numbers * squares.rsqrt()

    def _log_size(self) -> Tensor:
        return 0.5 * self.df.log() + log_beta(0.5 * self.df, 0.5)

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (z * z / self.df).log1p() - self._log_size() - self.scale.log()

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        rise = (1 / self.df).log1p() + digamma_error(half) - digamma_error(more)  # of digamma
        return self.scale.log() + more * rise + self._log_size()

    mean = formula(lambda d: where(d.df > 1, d.loc, nan))
    mode = formula(lambda d: d.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        square = self.scale * self.scale * (self.df / (where(finite, self.df, 3) - 2))
        return where(finite, square, where(self.df > 1, inf, nan))
