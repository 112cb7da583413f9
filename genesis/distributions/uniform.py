"""The uniform distribution, Laplace's and Gumbel's."""

from __future__ import annotations

from math import pi

from genesis.distributions import constraints
from genesis.distributions.distribution import Distribution
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import AffineTransform, ExpTransform
from genesis.distributions.utils import Operand, broadcast_all, declared, euler_constant, finfo
from genesis.functions.creation import full_like
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.ir.replayable import replayable_module
from genesis.random import rand
from genesis.tensor.handle import Tensor

__all__ = ["Gumbel", "Laplace", "Uniform"]


class Uniform(Distribution):
    """Evenly distributed in [low, high).

    >>> genesis.distributions.Uniform(0.0, 4.0).cdf(genesis.tensor(1.0))
    tensor(0.2500)
    """

    arg_constraints = declared(
        low=constraints.dependent(is_discrete=False, event_dim=0),
        high=constraints.dependent(is_discrete=False, event_dim=0),
    )
    has_rsample = True

    def __init__(self, low: Operand, high: Operand, validate_args: bool | None = None) -> None:
        self.low: Tensor
        self.high: Tensor
        self._declare(validate_args, low=low, high=high)
        self._require(lambda: self.low < self.high, "low must be less than high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """low + u (high - low)."""
        shape = self._extended_shape(sample_shape)
        return self.low + rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        inside = (self.low <= value) & (value < self.high)
        return where(inside, -(self.high - self.low).log(), float("-inf"))

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return full_like(self.high, float("nan"))

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12


class Laplace(Distribution):
    """Laplace's distribution: exponential to both sides of `loc`."""

    arg_constraints = declared(loc=constraints.real, scale=constraints.positive)
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        self.loc: Tensor
        self.scale: Tensor
        self._declare(validate_args, loc=loc, scale=scale)

    def log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - (self._checked(value) - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        centred = value - 0.5
        return self.loc - self.scale * centred.sign() * (-2 * centred.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale * 2**0.5

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()


class Gumbel(TransformedDistribution):
    """Gumbel's distribution, of maxima: loc - scale * log(-log(u)), of uniform u."""

    arg_constraints = declared(loc=constraints.real, scale=constraints.positive)
    support = constraints.real

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        self.loc: Tensor
        self.scale: Tensor
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        base = Uniform(full_like(self.loc, limits.tiny), full_like(self.loc, 1 - limits.eps), validate_args=False)
        falling = AffineTransform(0, -1.0)
        parts = [ExpTransform().inv, falling, ExpTransform().inv, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, parts, validate_args)

    def expand(self, batch_shape: Extents, _instance: object = None) -> Gumbel:
        new = self._get_checked_instance(Gumbel, _instance)
        loc, scale = self.loc.expand(tuple(batch_shape)), self.scale.expand(tuple(batch_shape))  # type: ignore[arg-type]
        Gumbel.__init__(new, loc, scale, validate_args=False)
        new._validate_args = self._validate_args
        return new  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self.loc - self._checked(value)) / self.scale
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-((self.loc - self._checked(value)) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return pi / 6**0.5 * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()


replayable_module(__name__)
