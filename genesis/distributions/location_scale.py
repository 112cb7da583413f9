"""Distributions given by a location and a scale: uniform, Laplace's, Gumbel's, normal, Cauchy's, Student's; and angles."""

from __future__ import annotations

from math import inf, log as ln, nan, pi
from typing import Any, ClassVar

from genesis.distributions import constraints
from genesis.distributions.composed import Composed, TransformedDistribution
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.gamma import standard_gamma
from genesis.distributions.transforms import AbsTransform, AffineTransform, ExpTransform, StickBreakingTransform, Transform
from genesis.distributions.utils import Operand, above, euler_constant, finfo, formula
from genesis.functions.creation import full_like, zeros_like
from genesis.functions.methods.table import functions_of
from genesis.functions.random_draws import drawn_by_host
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.random import rand, randn
from genesis.tensor.handle import Tensor

digamma_error, i0e, i1e, log_beta, ndtr, ndtri = functions_of("digamma_error", "i0e", "i1e", "log_beta", "ndtr", "ndtri")


class Folded(TransformedDistribution):
    """The absolute value of a number of the distribution `whole`, which is symmetric about 0."""

    scale: Parameter = parameter(constraints.positive, of="base_dist")
    support = constraints.nonnegative
    has_rsample = True
    whole: ClassVar[Any]
    mode = formula(lambda d: zeros_like(d.scale))

    def __init__(self, scale: Operand, validate_args: bool | None = None) -> None:
        super().__init__(self.whole(0, scale, validate_args=False), AbsTransform(), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        density = self.base_dist.log_prob(self._checked(value)) + ln(2)
        return where(value >= 0, density, float("-inf"))

    def entropy(self) -> Tensor: return self.base_dist.entropy() - ln(2)  # type: ignore[no-any-return]


class Uniform(Distribution):
    """Evenly distributed in [low, high).

    >>> genesis.distributions.Uniform(0.0, 4.0).cdf(genesis.tensor(1.0))
    tensor(0.2500)
    """

    low: Parameter = parameter(constraints.dependent(is_discrete=False, event_dim=0))
    high: Parameter = parameter(constraints.dependent(is_discrete=False, event_dim=0))
    has_rsample = True

    def __post_init__(self) -> None:
        self._require(lambda: self.low < self.high, "low must be less than high")

    support = constraints.dependent_property(lambda d: constraints.interval(d.low, d.high), is_discrete=False, event_dim=0)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """low + u (high - low)."""
        shape = self._extended_shape(sample_shape)
        return self.low + rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor: return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)
    def icdf(self, value: Tensor) -> Tensor: return value * (self.high - self.low) + self.low
    def entropy(self) -> Tensor: return (self.high - self.low).log()
    mean = formula(lambda d: (d.high + d.low) / 2)
    mode = formula(lambda d: d.high * nan)
    stddev = formula(lambda d: (d.high - d.low) / 12**0.5)
    variance = formula(lambda d: (d.high - d.low).square() / 12)


class Laplace(Distribution):
    """Laplace's distribution: exponential to both sides of `loc`."""

    loc: Parameter = parameter(constraints.real)
    scale: Parameter = parameter(constraints.positive)
    support = constraints.real
    has_rsample = True
    def log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - (self._checked(value) - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return where(z < 0, 0.5 * z.clamp(max=0).exp(), 1 - 0.5 * (-z.clamp(min=0)).exp())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * where(value < 0.5, (2 * value).log(), -(2 - 2 * value).log())
    def entropy(self) -> Tensor: return 1 + (2 * self.scale).log()
    mean = mode = formula(lambda d: d.loc)
    stddev = formula(lambda d: d.scale * 2**0.5)
    variance = formula(lambda d: 2 * d.scale.square())


class Gumbel(Composed):
    """Gumbel's distribution, of maxima: loc - scale * log(-log(u)), of uniform u."""

    loc: Parameter = parameter(constraints.real)
    scale: Parameter = parameter(constraints.positive)
    support = constraints.real

    def _parts(self) -> tuple[Distribution, list[Transform]]:
        limits = finfo(self.loc.dtype)
        base = Uniform(full_like(self.loc, limits.tiny), full_like(self.loc, 1 - limits.eps), validate_args=False)
        return base, [ExpTransform().inv, AffineTransform(0, -1.0), ExpTransform().inv, AffineTransform(self.loc, -self.scale)]

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self.loc - self._checked(value)) / self.scale
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor: return (-((self.loc - self._checked(value)) / self.scale).exp()).exp()
    def icdf(self, value: Tensor) -> Tensor: return self.loc - self.scale * (-value.log()).log()
    def entropy(self) -> Tensor: return self.scale.log() + (1 + euler_constant)
    mean = formula(lambda d: d.loc + d.scale * euler_constant)
    mode = formula(lambda d: d.loc)
    stddev = formula(lambda d: pi / 6**0.5 * d.scale)
    variance = formula(lambda d: d.stddev.square())


class Normal(ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    >>> normal = genesis.distributions.Normal(0.0, 2.0)
    >>> normal.log_prob(genesis.tensor([0.0, 2.0])), normal.icdf(genesis.tensor(0.975))
    (tensor([-1.6121, -2.1121]), tensor(3.9199))
    """

    loc: Parameter = parameter(constraints.real)
    scale: Parameter = parameter(constraints.positive)
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """loc + scale * z, of standard normal z."""
        shape = self._extended_shape(sample_shape)
        return self.loc + randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -0.5 * z * z - self.scale.log() - 0.5 * ln(2 * pi)

    def cdf(self, value: Tensor) -> Tensor: return ndtr((self._checked(value) - self.loc) / self.scale)
    def icdf(self, value: Tensor) -> Tensor: return self.loc + self.scale * ndtri(value)
    def entropy(self) -> Tensor: return 0.5 + 0.5 * ln(2 * pi) + self.scale.log()
    mean = mode = formula(lambda d: d.loc)
    stddev = formula(lambda d: d.scale)
    variance = formula(lambda d: d.scale * d.scale)
    _natural_params = formula(lambda d: (d.loc / d.variance, -0.5 / d.variance))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x * x / y + 0.5 * (-pi / y).log()


class LogNormal(TransformedDistribution):
    """The exponential of a normal number with mean `loc` and standard deviation `scale`."""

    loc: Parameter = parameter(constraints.real, of="base_dist")
    scale: Parameter = parameter(constraints.positive, of="base_dist")
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    mean = formula(lambda d: (d.loc + d.base_dist.variance / 2).exp())
    mode = formula(lambda d: (d.loc - d.base_dist.variance).exp())

    variance = formula(lambda d: d.base_dist.variance.expm1() * (2 * d.loc + d.base_dist.variance).exp())
    def entropy(self) -> Tensor: return self.base_dist.entropy() + self.loc  # type: ignore[no-any-return]


class HalfNormal(Folded):
    """The absolute value of a normal number with mean 0 and standard deviation `scale`."""

    whole = Normal
    mean = formula(lambda d: d.scale * (2 / pi) ** 0.5)
    variance = formula(lambda d: d.scale * d.scale * (1 - 2 / pi))
    def cdf(self, value: Tensor) -> Tensor: return (self._checked(value) / (self.scale * 2**0.5)).erf()
    def icdf(self, prob: Tensor) -> Tensor: return self.scale * prob.erfinv() * 2**0.5


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: normal vectors with mean `loc` and deviations `scale`, by the `StickBreakingTransform`."""

    loc: Parameter = parameter(constraints.real, of="_normal")
    scale: Parameter = parameter(constraints.positive, of="_normal")
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def _normal(self) -> Normal:
        return self.base_dist.base_dist  # type: ignore[no-any-return]


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
    def icdf(self, prob: Tensor) -> Tensor: return self.scale * tangent(prob / 2, (1 - prob) / 2)


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

    def _log_size(self) -> Tensor: return 0.5 * self.df.log() + log_beta(0.5 * self.df, 0.5)

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (z * z / self.df).log1p() - self._log_size() - self.scale.log()

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        rise = (1 / self.df).log1p() + digamma_error(half) - digamma_error(more)  # of digamma
        return self.scale.log() + more * rise + self._log_size()

    mean = formula(lambda d: where(d.df > 1, d.loc, nan))
    mode = formula(lambda d: d.loc)

    variance = formula(lambda d: above(d.df, 2, lambda df: d.scale * d.scale * (df / (df - 2)), where(d.df > 1, inf, nan)))


class VonMises(Distribution):
    """Angles about `loc`, of density exp(concentration cos(x - loc)), normalized.

    Samples have gradients, by implicit differentiation, which PyTorch's have not.
    """

    loc: Parameter = parameter(constraints.real)
    concentration: Parameter = parameter(constraints.positive)
    support = constraints.real
    has_rsample = True

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """Angles in [-pi, pi)."""
        angle = drawn_by_host("von_mises", self._extended_shape(sample_shape), self.concentration)
        return (angle + self.loc + pi) % (2 * pi) - pi

    def log_prob(self, value: Tensor) -> Tensor:
        k = self.concentration
        half = ((self._checked(value) - self.loc) / 2).sin()
        return -2 * k * half * half - ln(2 * pi) - i0e(k).log()

    mean = mode = formula(lambda d: d.loc)

    @property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)
