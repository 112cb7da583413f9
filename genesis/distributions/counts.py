"""Single trials, and counts: of successes, of events, of failures."""

from __future__ import annotations

from math import inf, log as ln, nan

from genesis.distributions import constraints
from genesis.distributions.declaration import Alternative, Parameter, parameter
from genesis.distributions.distribution import ExponentialFamily, ProbsOrLogits
from genesis.distributions.gamma import standard_gamma
from genesis.distributions.utils import Operand, clamp_probs, formula, uniform_inside
from genesis.functions.creation import zeros_like
from genesis.functions.methods.table import functions_of
from genesis.functions.random_draws import drawn_by_host
from genesis.functions.ranges import arange
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.random import rand
from genesis.tensor.handle import Tensor

log_beta_density, log_gamma_density, logit, softplus = functions_of(
    "log_beta_density", "log_gamma_density", "logit", "softplus")


def odds_log_prob(logits: Tensor, value: Tensor) -> Tensor:
    """value * log(p) + (1 - value) * log(1 - p), of log odds."""
    return value * logits - softplus(logits)


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with probability `probs`, or with the log odds `logits`; else 0.

    >>> genesis.distributions.Bernoulli(probs=genesis.tensor([0.25, 0.5])).log_prob(genesis.tensor([1.0, 0.0])).exp()
    tensor([0.2500, 0.5000])
    """

    probs: Alternative = parameter(constraints.unit_interval, default=None)
    logits: Alternative = parameter(constraints.real, default=None)
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def _drawn(self, sample_shape: Extents) -> Tensor:
        shape, p = self._extended_shape(sample_shape), self.probs
        return (rand(shape, dtype=p.dtype, device=p.device) < p).to(p.dtype)

    def log_prob(self, value: Tensor) -> Tensor: return odds_log_prob(self.logits, self._checked(value))
    def entropy(self) -> Tensor: return softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    mean = formula(lambda d: d.probs)

    mode = formula(lambda d: where(d.probs == 0.5, nan, (d.probs >= 0.5).to(d.probs.dtype)))
    variance = formula(lambda d: d.probs * (1 - d.probs))
    _natural_params = formula(lambda d: (logit(d.probs),))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return softplus(x)


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers in [0, 1] of density c(p) p^x (1 - p)^(1 - x) (G. Loaiza-Ganem, J. Cunningham, 2019).

    Where p lies within `lims`, series about 1/2 replace expressions that are 0 / 0 there.
    """

    probs: Alternative = parameter(constraints.unit_interval, default=None)
    logits: Alternative = parameter(constraints.real, default=None)
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Operand | None = None, logits: Operand | None = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        self._declare(validate_args, probs=probs, logits=logits)
        if "probs" in vars(self):
            self.probs = clamp_probs(self.probs)

    def _near(self) -> tuple[Tensor, Tensor, Tensor]:
        """Whether p is near 1/2, p or a number apart from it, and p - 1/2."""
        p = clamp_probs(self.probs)
        near = (p > self._lims[0]) & (p < self._lims[1])
        return near, where(near, self._lims[0], p), where(near, p, 0.5) - 0.5

    def _log_norm(self) -> Tensor:
        """log c(p), c = 2 atanh(1 - 2p) / (1 - 2p), which is 2 at 1/2."""
        near, p, x = self._near()
        far = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        return where(near, ln(2) + (4 / 3 + 104 / 45 * x * x) * x * x, far)

    def log_prob(self, value: Tensor) -> Tensor: return odds_log_prob(self.logits, self._checked(value)) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked(value).clamp(0, 1)
        near, p, _ = self._near()
        far = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        return where(near, value, far)

    def icdf(self, value: Tensor) -> Tensor:
        near, p, _ = self._near()
        far = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return where(near, value, far)

    def entropy(self) -> Tensor: return -self.logits * self.mean + softplus(self.logits) - self._log_norm()

    @property
    def mean(self) -> Tensor:
        near, p, x = self._near()
        far = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        return where(near, 0.5 + (1 / 3 + 16 / 45 * x * x) * x, far)

    @property
    def variance(self) -> Tensor:
        near, p, x = self._near()
        far = p * (p - 1) / (1 - 2 * p).square() + 1 / ((-p).log1p() - p.log()).square()
        square = x * x
        return where(near, 1 / 12 - (1 / 15 - 128 / 945 * square) * square, far)

    _natural_params = formula(lambda d: (d.logits,))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        near = x.abs() < 4 * max(self._lims[1] - 0.5, 0.5 - self._lims[0])
        far = where(near, 1, x)
        return where(near, x / 2 + x * x / 24, (far.exp() - 1).abs().log() - far.abs().log())


class Geometric(ProbsOrLogits):
    """The number of failures before the first success, of trials of probability `probs` or log odds `logits`."""

    probs: Alternative = parameter(constraints.unit_interval, default=None)
    logits: Alternative = parameter(constraints.real, default=None)
    support = constraints.nonnegative_integer

    def __post_init__(self) -> None:
        if "probs" in vars(self):
            self._require(lambda: self.probs > 0, "probs must be positive")

    def _drawn(self, sample_shape: Extents) -> Tensor:
        p = self.probs
        u = uniform_inside(self._extended_shape(sample_shape), p.dtype, p.device)
        return (u.log() / (-p).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return value * where((self.probs == 1) & (value == 0), 0, (-self.probs).log1p()) + self.probs.log()

    def entropy(self) -> Tensor: return (softplus(self.logits) - self.probs * self.logits) / self.probs
    mean = formula(lambda d: 1 / d.probs - 1)
    mode = formula(lambda d: zeros_like(d.probs))
    variance = formula(lambda d: (1 / d.probs - 1) / d.probs)


class Binomial(ProbsOrLogits):
    """The successes among `total_count` trials of probability `probs` or log odds `logits`."""

    total_count: Parameter = parameter(constraints.nonnegative_integer, default=1)
    probs: Alternative = parameter(constraints.unit_interval, default=None)
    logits: Alternative = parameter(constraints.real, default=None)
    has_enumerate_support = True

    def __post_init__(self) -> None:
        self.total_count = self.total_count.to(self._param.dtype)

    support = constraints.dependent_property(
        lambda d: constraints.integer_interval(0, d.total_count), is_discrete=True, event_dim=0)

    def _drawn(self, sample_shape: Extents) -> Tensor:
        return drawn_by_host("binomial", self._extended_shape(sample_shape), self.total_count, self.probs)

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

    def _drawn(self, sample_shape: Extents) -> Tensor:
        shape = self._extended_shape(sample_shape)
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

    def _drawn(self, sample_shape: Extents) -> Tensor:
        return drawn_by_host("poisson", self._extended_shape(sample_shape), self.rate)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return where(value < 0, -inf, log_gamma_density(value + 1, self.rate))

    mean = formula(lambda d: d.rate)
    mode = formula(lambda d: d.rate.floor())
    variance = formula(lambda d: d.rate)
    _natural_params = formula(lambda d: (d.rate.log(),))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()
