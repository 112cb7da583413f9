"""Cauchy's distribution, that of its size, and Student's."""

from __future__ import annotations

from math import inf, nan, pi
from math import log as ln

from genesis.distributions import constraints
from genesis.distributions.declaration import Parameter, formula, parameter
from genesis.distributions.distribution import Distribution
from genesis.distributions.folded import Folded
from genesis.distributions.gamma import standard_gamma
from genesis.functions.creation import full_like
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.ir.replayable import replayable_module
from genesis.random import randn
from genesis.tensor.handle import Tensor

__all__ = ["Cauchy", "HalfCauchy", "StudentT"]


class Cauchy(Distribution):
    """Cauchy's distribution about `loc`: the quotient of two centred normal numbers, times `scale`."""

    loc: Parameter = parameter(constraints.real)
    scale: Parameter = parameter(constraints.positive)
    support = constraints.real
    has_rsample = True

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -ln(pi) - self.scale.log() - (z * z).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._checked(value) - self.loc) / self.scale).atan() / pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return ln(4 * pi) + self.scale.log()

    mean = formula(lambda d: full_like(d.loc, nan))
    mode = formula(lambda d: d.loc)
    variance = formula(lambda d: full_like(d.loc, inf))


class HalfCauchy(Folded):
    """The size of a number of Cauchy's distribution about 0."""

    whole = Cauchy
    mean = variance = formula(lambda d: full_like(d.scale, inf))


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
        squares = standard_gamma(self.df / 2, shape) * 2 / self.df
        return self.loc + self.scale * randn(shape, dtype=self.df.dtype, device=self.df.device) * squares.rsqrt()

    def _log_size(self) -> Tensor:
        return 0.5 * self.df.log() + 0.5 * ln(pi) + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1)).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (z * z / self.df).log1p() - self._log_size() - self.scale.log()

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        return self.scale.log() + half * (half.digamma() - (0.5 * self.df).digamma()) + self._log_size()

    mean = formula(lambda d: where(d.df > 1, d.loc, nan))
    mode = formula(lambda d: d.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        square = self.scale * self.scale * (self.df / (where(finite, self.df, 3) - 2))
        return where(finite, square, where(self.df > 1, inf, nan))


replayable_module(__name__)
