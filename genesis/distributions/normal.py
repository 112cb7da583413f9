"""The normal distribution, the log-normal and the half-normal."""

from __future__ import annotations

from math import log as ln
from math import pi

from genesis.distributions import constraints
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.exp_family import ExponentialFamily
from genesis.distributions.folded import Folded
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import ExpTransform
from genesis.distributions.utils import Operand, formula
from genesis.functions.methods.table import functions_of
from genesis.ir.annotations import Extents
from genesis.random import randn
from genesis.tensor.handle import Tensor

__all__ = ["HalfNormal", "LogNormal", "Normal"]

ndtr, ndtri = functions_of("ndtr", "ndtri")


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

    @property
    def variance(self) -> Tensor:
        square = self.base_dist.variance
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc  # type: ignore[no-any-return]


class HalfNormal(Folded):
    """The absolute value of a normal number with mean 0 and standard deviation `scale`."""

    whole = Normal
    mean = formula(lambda d: d.scale * (2 / pi) ** 0.5)
    variance = formula(lambda d: d.scale * d.scale * (1 - 2 / pi))
    def cdf(self, value: Tensor) -> Tensor: return (self._checked(value) / (self.scale * 2**0.5)).erf()

    def icdf(self, prob: Tensor) -> Tensor:
        return self.scale * prob.erfinv() * 2**0.5
