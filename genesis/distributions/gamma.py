"""Gamma distributions, of inverses, of quotients of two, and of shares: the beta distribution and Dirichlet's."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log as ln, nan, pi

from genesis.distributions import constraints
from genesis.distributions.composed import TransformedDistribution
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.transforms import PowerTransform
from genesis.distributions.utils import Operand, above, derived, formula
from genesis.functions.methods.table import functions_of
from genesis.functions.random_draws import drawn_by_host
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor

digamma_error, igamma, one_hot, stack, stirling_error = functions_of(
    "digamma_error", "igamma", "one_hot", "stack", "stirling_error")
log_beta, log_beta_density, log_dirichlet_density, log_gamma_density = functions_of(
    "log_beta", "log_beta_density", "log_dirichlet_density", "log_gamma_density")


def standard_gamma(concentration: Tensor, shape: Sequence[int]) -> Tensor:
    """Gamma numbers of rate 1, with gradients by the concentration."""
    return drawn_by_host("standard_gamma", shape, concentration)


class Gamma(ExponentialFamily):
    """The gamma distribution: the density is x^(concentration - 1) e^(-rate x), normalized.

    >>> genesis.distributions.Gamma(2.0, 1.0).cdf(genesis.tensor(1.0))
    tensor(0.2642)
    """

    concentration: Parameter = parameter(constraints.positive)
    rate: Parameter = parameter(constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """Standard gamma numbers over the rate; the gradient by the concentration is that at a fixed probability."""
        return standard_gamma(self.concentration, self._extended_shape(sample_shape)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return log_gamma_density(self.concentration, self.rate * self._checked(value)) + self.rate.log()

    def cdf(self, value: Tensor) -> Tensor: return igamma(self.concentration, self.rate * self._checked(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return 0.5 * (2 * pi * a).log() - self.rate.log() + stirling_error(a) + (a - 1) * digamma_error(a)

    mean = formula(lambda d: d.concentration / d.rate)
    mode = formula(lambda d: ((d.concentration - 1) / d.rate).clamp(min=0))
    variance = formula(lambda d: d.concentration / (d.rate * d.rate))
    _natural_params = formula(lambda d: (d.concentration - 1, -d.rate))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return (x + 1).lgamma() - (x + 1) * (-y).log()


class Chi2(Gamma):
    """The distribution of a sum of `df` squares of standard normal numbers."""

    df: Parameter = parameter(constraints.positive, of=lambda d: d.concentration * 2)

    def __init__(self, df: Operand, validate_args: bool | None = None) -> None:
        super().__init__(df / 2 if isinstance(df, Tensor) else float(df) / 2, 0.5, validate_args=validate_args)


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x, of gamma numbers x."""

    concentration: Parameter = parameter(constraints.positive, of="base_dist")
    rate: Parameter = parameter(constraints.positive, of="base_dist")
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Operand, rate: Operand, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args)

    mean = formula(lambda d: above(d.concentration, 1, lambda a: d.rate / (a - 1), inf))
    mode = formula(lambda d: d.rate / (d.concentration + 1))
    variance = formula(lambda d: above(d.concentration, 2, lambda a: (d.rate / (a - 1)).square() / (a - 2), inf))

    def entropy(self) -> Tensor:
        a = self.concentration
        return 0.5 * ln(2 * pi) - 1.5 * a.log() + self.rate.log() + stirling_error(a) + (a + 1) * digamma_error(a)


class FisherSnedecor(Distribution):
    """The distribution of the quotient of two means of squares, of `df1` and `df2` standard normal numbers."""

    df1: Parameter = parameter(constraints.positive)
    df2: Parameter = parameter(constraints.positive)
    support = constraints.positive
    has_rsample = True

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """The quotient of two gamma numbers over their means."""
        shape = self._extended_shape(sample_shape)
        top, below = [standard_gamma(df / 2, shape) / df for df in (self.df1, self.df2)]
        return (top / below).clamp(min=_TINY)

    def log_prob(self, value: Tensor) -> Tensor:
        ratio = self.df1 / self.df2
        odds = ratio * self._checked(value)
        rest = -odds.log1p()  # of a beta number, which is odds / (1 + odds)
        return log_beta_density(self.df1 / 2, self.df2 / 2, odds.log() + rest, rest) + ratio.log() + 2 * rest

    mean = formula(lambda d: above(d.df2, 2, lambda m: m / (m - 2), nan))
    mode = formula(lambda d: where(d.df1 > 2, (d.df1 - 2) / d.df1 * d.df2 / (d.df2 + 2), nan))

    variance = formula(lambda d: above(
        d.df2, 4, lambda m: 2 * m.square() * (d.df1 + m - 2) / (d.df1 * (m - 2).square() * (m - 4)), nan))


_TINY = 2.0**-126


class Dirichlet(ExponentialFamily):
    """Dirichlet's distribution of points of a simplex, of the concentrations along the last axis.

    >>> genesis.distributions.Dirichlet(genesis.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    concentration: Parameter = parameter(constraints.independent(constraints.positive, 1))
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("Dirichlet: concentration must have one axis at least, got a 0-d tensor")
        self._declare(validate_args, concentration=concentration)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """Shares of gamma numbers, with the gradients of their marginal beta distributions at fixed probabilities."""
        return drawn_by_host("dirichlet", self._extended_shape(sample_shape), self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        a, value = self.concentration, self._checked(value)
        return log_dirichlet_density(a, value.log()) + a.sum(-1) * (value.sum(-1) - 1)  # whose gradient is that of any shares

    def entropy(self) -> Tensor:
        a = self.concentration
        total, count = a.sum(-1), a.shape[-1]
        each = 0.5 * (2 * pi * a).log() + stirling_error(a) + (a - 1) * digamma_error(a)
        whole = (0.5 - count) * total.log() - 0.5 * ln(2 * pi) - stirling_error(total) + (count - total) * digamma_error(total)
        return each.sum(-1) + whole

    mean = formula(lambda d: d.concentration / d.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0)
        total = above.sum(-1, True)
        corner = one_hot(above.argmax(-1), above.shape[-1]).to(above.dtype)
        return where((self.concentration < 1).all(-1, True), corner, above / total)

    @property
    def variance(self) -> Tensor:
        total, a = self.concentration.sum(-1, True), self.concentration
        return a * (total - a) / (total.square() * (total + 1))

    _natural_params = formula(lambda d: (d.concentration,))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """The beta distribution: the density is x^(concentration1 - 1) (1 - x)^(concentration0 - 1), normalized."""

    concentration1: Parameter = parameter(constraints.positive)
    concentration0: Parameter = parameter(constraints.positive)
    support = constraints.unit_interval
    has_rsample = True

    @derived
    def _dirichlet(self) -> Dirichlet:
        return Dirichlet(stack([self.concentration1, self.concentration0], -1), validate_args=False)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """Beta numbers; the gradients are those at a fixed probability."""
        shape = self._extended_shape(sample_shape)
        return drawn_by_host("standard_beta", shape, self.concentration1, self.concentration0)

    def _log_beta(self) -> Tensor: return log_beta(self.concentration1, self.concentration0)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return log_beta_density(self.concentration1, self.concentration0, value.log(), (-value).log1p())

    def entropy(self) -> Tensor: return self._dirichlet.entropy()
    mean = formula(lambda d: d.concentration1 / (d.concentration1 + d.concentration0))
    mode = formula(lambda d: d._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return a * b / ((a + b).square() * (a + b + 1))

    _natural_params = formula(lambda d: (d.concentration1, d.concentration0))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
