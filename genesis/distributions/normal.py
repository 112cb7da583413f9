"""The normal distribution, that of its exponential and that of its size."""

from __future__ import annotations

from math import log as ln
from math import pi

from genesis.distributions import constraints
from genesis.distributions.distribution import Distribution
from genesis.distributions.exp_family import ExponentialFamily
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import AbsTransform, ExpTransform
from genesis.distributions.utils import Operand, declared
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.ir.replayable import replayable_module
from genesis.random import randn
from genesis.tensor.handle import Tensor

__all__ = ["HalfNormal", "LogNormal", "Normal"]


class Normal(ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    >>> normal = genesis.distributions.Normal(0.0, 2.0)
    >>> normal.log_prob(genesis.tensor([0.0, 2.0])), normal.icdf(genesis.tensor(0.975))
    (tensor([-1.6121, -2.1121]), tensor(3.9199))
    """

    arg_constraints = declared(loc=constraints.real, scale=constraints.positive)
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        self.loc: Tensor
        self.scale: Tensor
        self._declare(validate_args, loc=loc, scale=scale)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """loc + scale * z, of standard normal z."""
        shape = self._extended_shape(sample_shape)
        return self.loc + randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -0.5 * z * z - self.scale.log() - 0.5 * ln(2 * pi)

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + ((self._checked(value) - self.loc) / (self.scale * 2**0.5)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * 2**0.5

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * ln(2 * pi) + self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.variance, -0.5 / self.variance

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x * x / y + 0.5 * (-pi / y).log()


class LogNormal(TransformedDistribution):
    """The exponential of a normal number with mean `loc` and standard deviation `scale`."""

    arg_constraints = declared(loc=constraints.real, scale=constraints.positive)
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.base_dist.variance / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.base_dist.variance).exp()

    @property
    def variance(self) -> Tensor:
        square = self.base_dist.variance
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(TransformedDistribution):
    """The size of a normal number with mean 0 and standard deviation `scale`."""

    arg_constraints = declared(scale=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Normal

    def __init__(self, scale: Operand, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the number with its sign."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return self.scale * (2 / pi) ** 0.5

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * (1 - 2 / pi)

    def log_prob(self, value: Tensor) -> Tensor:
        return folded_log_prob(self, self.base_dist, value)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - ln(2)


def folded_log_prob(distribution: Distribution, base: Distribution, value: Tensor) -> Tensor:
    """The log density of the size of a number of the symmetric distribution `base`."""
    density = base.log_prob(distribution._checked(value)) + ln(2)
    return where(value >= 0, density, float("-inf"))


replayable_module(__name__)
