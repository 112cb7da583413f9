"""The exponential distribution, and its transforms by powers and exponentials: Weibull's, Pareto's and Kumaraswamy's."""

from __future__ import annotations

from math import inf, log as ln, nan

from genesis.distributions import constraints
from genesis.distributions.composed import Composed
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.location_scale import Uniform
from genesis.distributions.transforms import AffineTransform, ExpTransform, PowerTransform, Transform
from genesis.distributions.utils import above, euler_constant, formula
from genesis.functions.creation import full_like, zeros_like
from genesis.functions.methods.table import functions_of
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor

(log_beta,) = functions_of("log_beta")


class Exponential(ExponentialFamily):
    """The exponential distribution, of mean 1 / rate.

    >>> genesis.distributions.Exponential(2.0).entropy()
    tensor(0.3069)
    """

    rate: Parameter = parameter(constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """Numbers of rate 1, over the rate."""
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor: return self.rate.log() - self.rate * self._checked(value)
    def cdf(self, value: Tensor) -> Tensor: return -(-self.rate * self._checked(value)).expm1()
    def icdf(self, value: Tensor) -> Tensor: return -(-value).log1p() / self.rate
    def entropy(self) -> Tensor: return 1 - self.rate.log()
    mean = stddev = formula(lambda d: 1 / d.rate)
    mode = formula(lambda d: zeros_like(d.rate))
    variance = formula(lambda d: d.mean.square())
    _natural_params = formula(lambda d: (-d.rate,))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -(-x).log()


class Pareto(Composed):
    """Pareto's distribution: scale * exp(e), of e exponential of rate alpha."""

    scale: Parameter = parameter(constraints.positive)
    alpha: Parameter = parameter(constraints.positive)

    def _parts(self) -> tuple[Distribution, list[Transform]]:
        return Exponential(self.alpha, validate_args=False), [ExpTransform(), AffineTransform(0, self.scale)]

    support = constraints.dependent_property(lambda d: constraints.greater_than_eq(d.scale), is_discrete=False, event_dim=0)
    def entropy(self) -> Tensor: return (self.scale / self.alpha).log() + 1 + 1 / self.alpha

    mean = formula(lambda d: above(d.alpha, 1, lambda a: a * d.scale / (a - 1), inf))
    mode = formula(lambda d: d.scale)
    variance = formula(lambda d: above(d.alpha, 2, lambda a: d.scale.square() * a / ((a - 1).square() * (a - 2)), inf))


class Weibull(Composed):
    """Weibull's distribution: scale * e^(1 / concentration), of exponential e."""

    scale: Parameter = parameter(constraints.positive)
    concentration: Parameter = parameter(constraints.positive)
    support = constraints.positive

    def _parts(self) -> tuple[Distribution, list[Transform]]:
        base = Exponential(full_like(self.scale, 1.0), validate_args=False)
        return base, [PowerTransform(1 / self.concentration), AffineTransform(0, self.scale)]

    def entropy(self) -> Tensor:
        inverse = 1 / self.concentration
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1

    def _moment(self, power: int) -> Tensor: return (1 + power / self.concentration).lgamma().exp()

    mean = formula(lambda d: d.scale * d._moment(1))

    mode = formula(lambda d: d.scale * above(d.concentration, 1, lambda k: ((k - 1) / k) ** (1 / k), 0))
    variance = formula(lambda d: d.scale.square() * (d._moment(2) - d._moment(1).square()))


class Kumaraswamy(Composed):
    """Kumaraswamy's distribution: (1 - u^(1 / concentration0))^(1 / concentration1), of uniform u."""

    concentration1: Parameter = parameter(constraints.positive)
    concentration0: Parameter = parameter(constraints.positive)
    support = constraints.unit_interval
    has_rsample = True

    def _parts(self) -> tuple[Distribution, list[Transform]]:
        ones = full_like(self.concentration0, 1.0)
        parts = [PowerTransform(1 / self.concentration0), AffineTransform(1.0, -1.0), PowerTransform(1 / self.concentration1)]
        return Uniform(ones * 0, ones, validate_args=False), [*parts]

    def _log_rest(self, value: Tensor) -> Tensor:
        """log(1 - x^a), by the form that is accurate for x."""
        power = self.concentration1 * value.log()
        return where(power < -ln(2), (-power.exp()).log1p(), (-power.expm1()).log())

    def log_prob(self, value: Tensor) -> Tensor:
        value, a, b = self._checked(value), self.concentration1, self.concentration0
        return (a * b).log() + (a - 1).xlogy(value) + where(b == 1, 0, (b - 1) * self._log_rest(value))

    def cdf(self, value: Tensor) -> Tensor: return -(self.concentration0 * self._log_rest(self._checked(value))).expm1()
    def icdf(self, value: Tensor) -> Tensor:
        return ((-((-value).log1p() / self.concentration0).expm1()).log() / self.concentration1).exp()

    def _moment(self, power: int) -> Tensor:
        return self.concentration0 * log_beta(1 + power / self.concentration1, self.concentration0).exp()

    mean = formula(lambda d: d._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        known = (a >= 1) & (b >= 1) & ((a > 1) | (b > 1))
        size = ((a - 1).clamp(min=0) / where(known, a * b - 1, 1)) ** (1 / a)
        return where(known, size, nan)

    variance = formula(lambda d: d._moment(2) - d._moment(1).square())

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()


class GeneralizedPareto(Distribution):
    """The distribution of excesses over a threshold `loc`, with this `scale` and this shape, its `concentration`."""

    loc: Parameter = parameter(constraints.real)
    scale: Parameter = parameter(constraints.positive)
    concentration: Parameter = parameter(constraints.real)
    has_rsample = True

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        bounded = self.concentration < 0
        end = self.loc - self.scale / where(bounded, self.concentration, -1)
        return constraints.interval(self.loc, where(bounded, end, inf))

    def _parts(self) -> tuple[Tensor, Tensor]:
        """Whether the concentration is practically 0, and a nonzero one to divide by."""
        straight = self.concentration.abs() < 1e-6 if self.loc.dtype.itemsize < 8 else self.concentration == 0
        return straight, where(straight, 1, self.concentration)

    def _log_survival(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        straight, k = self._parts()
        return where(straight, -z, -(k * z).log1p() / k)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        z = (value - self.loc) / self.scale
        straight, k = self._parts()
        density = where(straight, -z, -(1 + 1 / k) * (k * z).log1p())
        return where(z >= 0, density - self.scale.log(), -inf)

    def cdf(self, value: Tensor) -> Tensor: return -self._log_survival(self._checked(value)).clamp(max=0).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        straight, k = self._parts()
        left = (-value).log1p()
        return self.loc + self.scale * where(straight, -left, (-k * left).expm1() / k)

    def entropy(self) -> Tensor: return self.scale.log() + self.concentration + 1

    mean = formula(lambda d: above(-d.concentration, -1, lambda k: d.loc + d.scale / (1 + k), inf))
    mode = formula(lambda d: d.loc)
    variance = formula(lambda d: above(
        -d.concentration, -0.5, lambda k: d.scale.square() / ((1 + k).square() * (1 + 2 * k)), inf))
