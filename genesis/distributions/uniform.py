"""The uniform distribution, Laplace's and Gumbel's."""

from __future__ import annotations

from math import nan, pi

from genesis.distributions import constraints
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.distribution import Distribution
from genesis.distributions.transformed_distribution import Composed
from genesis.distributions.transforms import AffineTransform, ExpTransform, Transform
from genesis.distributions.utils import euler_constant, finfo, formula
from genesis.functions.creation import full_like
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.random import rand
from genesis.tensor.handle import Tensor

__all__ = ["Gumbel", "Laplace", "Uniform"]


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
