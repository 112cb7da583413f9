"""Counts: of successes, of events, of failures."""

from __future__ import annotations

from math import inf

from genesis.distributions import constraints
from genesis.distributions.bernoulli import softplus
from genesis.distributions.declaration import Alternative, Parameter, parameter
from genesis.distributions.distribution import ProbsOrLogits
from genesis.distributions.exp_family import ExponentialFamily
from genesis.distributions.gamma import standard_gamma
from genesis.distributions.utils import formula
from genesis.functions.methods.table import functions_of
from genesis.functions.random_draws import drawn_by_host
from genesis.functions.ranges import arange
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording

__all__ = ["Binomial", "NegativeBinomial", "Poisson"]

log_beta_density, log_gamma_density = functions_of("log_beta_density", "log_gamma_density")


class Binomial(ProbsOrLogits):
    """The successes among `total_count` trials of probability `probs` or log odds `logits`."""

    total_count: Parameter = parameter(constraints.nonnegative_integer, default=1)
    probs: Alternative = parameter(constraints.unit_interval, default=None)
    logits: Alternative = parameter(constraints.real, default=None)
    has_enumerate_support = True

    def __post_init__(self) -> None:
        self.total_count = self.total_count.to(self._param.dtype)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    def sample(self, sample_shape: Extents = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with recording(False) as again, again:
            return drawn_by_host("binomial", shape, self.total_count, self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        value, n, logits = self._checked(value), self.total_count, self.logits
        return log_beta_density(value + 1, n - value + 1, -softplus(-logits), -softplus(logits)) - (n + 1).log()

    def entropy(self) -> Tensor:
        most = self._common_count("entropy")
        terms = self.log_prob(self._enumerated(arange(most + 1, dtype=self._param.dtype), False))
        return -(terms.exp() * terms).sum(0)

    def _common_count(self, what: str) -> int:
        most = int(self.total_count.max().item())
        if not int(self.total_count.min().item()) == most:
            raise NotImplementedError(f"Binomial: {what} wants one total_count for all, got several")
        return most

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = self._common_count("enumerate_support")
        return self._enumerated(arange(most + 1, dtype=self._param.dtype, device=self._param.device), expand)

    mean = formula(lambda d: d.total_count * d.probs)
    mode = formula(lambda d: ((d.total_count + 1) * d.probs).floor().minimum(d.total_count))
    variance = formula(lambda d: d.total_count * d.probs * (1 - d.probs))


class NegativeBinomial(ProbsOrLogits):
    """The successes, of probability `probs` or log odds `logits`, before `total_count` failures."""

    total_count: Parameter = parameter(constraints.greater_than_eq(0))
    probs: Alternative = parameter(constraints.half_open_interval(0.0, 1.0), default=None)
    logits: Alternative = parameter(constraints.real, default=None)
    support = constraints.nonnegative_integer

    def __post_init__(self) -> None:
        self.total_count = self.total_count.to(self._param.dtype)

    def sample(self, sample_shape: Extents = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with recording(False) as again, again:
            return drawn_by_host("poisson", shape, standard_gamma(self.total_count, shape) * self.logits.exp())

    def log_prob(self, value: Tensor) -> Tensor:
        value, logits, none = self._checked(value), self.logits, self.total_count == 0
        n = where(none, 1, self.total_count)
        success, failure = -softplus(-logits), -softplus(logits)
        density = log_beta_density(value + 1, n, success, failure) + failure - (n + value).log()
        return where(none, where(value == 0, 0, -inf), density)

    mean = formula(lambda d: d.total_count * d.logits.exp())
    mode = formula(lambda d: ((d.total_count - 1) * d.logits.exp()).floor().clamp(min=0))
    variance = formula(lambda d: d.mean / (-d.logits).sigmoid())


class Poisson(ExponentialFamily):
    """The number of events of this rate.

    >>> genesis.distributions.Poisson(2.0).log_prob(genesis.tensor([0.0, 1.0])).exp()
    tensor([0.1353, 0.2707])
    """

    rate: Parameter = parameter(constraints.nonnegative)
    support = constraints.nonnegative_integer

    def sample(self, sample_shape: Extents = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with recording(False) as again, again:
            return drawn_by_host("poisson", shape, self.rate)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return where(value < 0, -inf, log_gamma_density(value + 1, self.rate))

    mean = formula(lambda d: d.rate)
    mode = formula(lambda d: d.rate.floor())
    variance = formula(lambda d: d.rate)
    _natural_params = formula(lambda d: (d.rate.log(),))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()
