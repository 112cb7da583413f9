"""The beta distribution and Dirichlet's."""

from __future__ import annotations

from math import log as ln
from math import pi

from genesis.distributions import constraints
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.exp_family import ExponentialFamily
from genesis.distributions.utils import derived, formula
from genesis.functions.methods.table import functions_of
from genesis.functions.random_draws import drawn_by_host
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor

__all__ = ["Beta", "Dirichlet"]

digamma_error, log_beta, log_beta_density, log_dirichlet_density, one_hot, stack, stirling_error = functions_of(
    "digamma_error", "log_beta", "log_beta_density", "log_dirichlet_density", "one_hot", "stack", "stirling_error")


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

    def _log_beta(self) -> Tensor:
        return log_beta(self.concentration1, self.concentration0)

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
