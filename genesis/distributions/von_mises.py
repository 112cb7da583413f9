"""Von Mises' distribution, the normal one of a circle."""

from __future__ import annotations

from math import log as ln
from math import pi

from genesis.distributions import constraints
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.distribution import Distribution
from genesis.distributions.utils import formula
from genesis.functions.methods.table import functions_of
from genesis.functions.random_draws import drawn_by_host
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor

__all__ = ["VonMises"]

i0e, i1e = functions_of("i0e", "i1e")


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
