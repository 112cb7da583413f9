"""Cauchy's distribution, that of its size, and Student's."""

from __future__ import annotations

from math import inf, nan, pi
from math import log as ln

from genesis.distributions import constraints
from genesis.distributions.distribution import Distribution
from genesis.distributions.gamma import standard_gamma
from genesis.distributions.normal import folded_log_prob
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import AbsTransform
from genesis.distributions.utils import Operand, declared
from genesis.functions.creation import full_like
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.ir.replayable import replayable_module
from genesis.random import randn
from genesis.tensor.handle import Tensor

__all__ = ["Cauchy", "HalfCauchy", "StudentT"]


class Cauchy(Distribution):
    """Cauchy's distribution about `loc`: the quotient of two centred normal numbers, times `scale`."""

    arg_constraints = declared(loc=constraints.real, scale=constraints.positive)
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        self.loc: Tensor
        self.scale: Tensor
        self._declare(validate_args, loc=loc, scale=scale)

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -ln(pi) - self.scale.log() - (z * z).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._checked(value) - self.loc) / self.scale).atan() / pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return ln(4 * pi) + self.scale.log()

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, inf)


class HalfCauchy(TransformedDistribution):
    """The size of a number of Cauchy's distribution about 0."""

    arg_constraints = declared(scale=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy

    def __init__(self, scale: Operand, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the number with its sign."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, inf)

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        return folded_log_prob(self, self.base_dist, value)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - ln(2)


class StudentT(Distribution):
    """Student's distribution of `df` degrees of freedom, times `scale`, about `loc`."""

    arg_constraints = declared(df=constraints.positive, loc=constraints.real, scale=constraints.positive)
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Operand, loc: Operand = 0.0, scale: Operand = 1.0, validate_args: bool | None = None) -> None:
        self.df: Tensor
        self.loc: Tensor
        self.scale: Tensor
        self._declare(validate_args, df=df, loc=loc, scale=scale)

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

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        square = self.scale * self.scale * (self.df / (where(finite, self.df, 3) - 2))
        return where(finite, square, where(self.df > 1, inf, nan))


replayable_module(__name__)
