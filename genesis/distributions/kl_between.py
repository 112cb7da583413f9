"""Divergences of distributions of two families.

Each is E_p log p(x) - E_p log q(x): minus the entropy of p, less what follows from a few moments of p. Where p leaves the
support of q it is infinite.
"""

from __future__ import annotations

from math import inf, pi
from math import log as ln

from genesis.distributions.bernoulli import Bernoulli, ContinuousBernoulli, softplus
from genesis.distributions.beta import Beta
from genesis.distributions.counts import Binomial, Poisson
from genesis.distributions.distribution import Distribution
from genesis.distributions.exponential import Exponential, Pareto
from genesis.distributions.gamma import Gamma
from genesis.distributions.kl import Divergence, register_rows
from genesis.distributions.normal import Normal
from genesis.distributions.uniform import Gumbel, Laplace, Uniform
from genesis.distributions.utils import euler_constant
from genesis.functions.creation import full_like
from genesis.functions.selection import where
from genesis.tensor.handle import Tensor

# ---- what cannot be: p reaches where q has no density ----
_ANYWHERE: list[type[Distribution]] = [Normal, Laplace, Gumbel]
_NEVER: list[tuple[type[Distribution], type[Distribution]]] = [
    *[(p, q) for p in _ANYWHERE for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)],
    *[(p, q) for p in (Exponential, Gamma, Pareto) for q in (Beta, ContinuousBernoulli, Uniform)],
    (Exponential, Pareto), (Gamma, Pareto), (Beta, Pareto), (ContinuousBernoulli, Pareto),
    (Poisson, Bernoulli), (Poisson, Binomial),
]


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    return full_like(p.mean + q.mean, inf)


# ---- what q asks of p ----
def _to_normal(p: Distribution, q: Normal) -> Tensor:
    """By mean and variance of p."""
    square = p.variance + (p.mean - q.loc).square()
    return -p.entropy() + q.scale.log() + 0.5 * ln(2 * pi) + 0.5 * square / q.scale.square()


def _to_exponential(p: Distribution, q: Exponential) -> Tensor:
    """By the mean of p."""
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _to_gamma(p: Distribution, q: Gamma, mean_log: Tensor) -> Tensor:
    """By the means of x and of log x."""
    a = q.concentration
    return -p.entropy() - a * q.rate.log() + a.lgamma() - (a - 1) * mean_log + q.rate * p.mean


def _to_beta(p: Distribution, q: Beta, mean_log: Tensor, mean_log1m: Tensor) -> Tensor:
    """By the means of log x and log(1 - x)."""
    return -p.entropy() + q._log_beta() - (q.concentration1 - 1) * mean_log - (q.concentration0 - 1) * mean_log1m


def _to_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    """By the mean of p."""
    return -p.entropy() - p.mean * q.logits - q._log_norm() + softplus(q.logits)


def _to_gumbel(p: Distribution, q: Gumbel, mean_exp: Tensor) -> Tensor:
    """By the means of x and of exp(-x / scale)."""
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * mean_exp


def _to_uniform(p: Distribution, q: Uniform) -> Tensor:
    """Of p between 0 and 1."""
    return where((q.low <= 0) & (q.high >= 1), -p.entropy() + (q.high - q.low).log(), inf)


def _uniform_mean_log(low: Tensor, high: Tensor, width: Tensor) -> Tensor:
    """The mean of log x, of x uniform from `low` to `high`."""
    return (high.xlogy(high) - low.xlogy(low)) / width - 1


def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    z = (p.loc - q.loc) / p.scale
    distance = p.scale * ((2 / pi) ** 0.5 * (-0.5 * z * z).exp() + z * (z * 0.5**0.5).erf())
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    scaled = p.rate * q.scale
    return _to_gumbel(p, q, scaled / (scaled + 1))


def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    width = (p.high - p.low) / q.scale
    return _to_gumbel(p, q, (-p.low / q.scale).exp() * -(-width).expm1() / width)


def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    mean_log, mean_log1m = _uniform_mean_log(p.low, p.high, width), _uniform_mean_log(1 - p.high, 1 - p.low, width)
    return where((p.high > 1) | (p.low < 0), inf, _to_beta(p, q, mean_log, mean_log1m))


def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return where(p.low < 0, inf, _to_gamma(p, q, _uniform_mean_log(p.low, p.high, p.high - p.low)))


def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    mean_log = _uniform_mean_log(p.low, p.high, p.high - p.low)
    result = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * mean_log
    return where(p.low < q.scale, inf, result)


_DIVERGENCES: dict[tuple[type[Distribution], type[Distribution]], Divergence] = {
    **dict.fromkeys(_NEVER, _infinite),
    **{(kind, Normal): _to_normal for kind in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform)},
    (Pareto, Normal): lambda p, q: where(p.alpha > 2, _to_normal(p, q), inf),
    **{(kind, Exponential): _to_exponential for kind in (Beta, ContinuousBernoulli, Gamma)},
    (Pareto, Exponential): lambda p, q: where(p.alpha > 1, _to_exponential(p, q), inf),
    (Uniform, Exponential): lambda p, q: where(p.low < 0, inf, _to_exponential(p, q)),
    (Bernoulli, Poisson): lambda p, q: -p.entropy() - (p.probs * q.rate.log() - q.rate),
    (Beta, Gamma): lambda p, q: _to_gamma(p, q, p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()),
    (Exponential, Gamma): lambda p, q: _to_gamma(p, q, -p.rate.log() - euler_constant),
    (Pareto, Gamma): lambda p, q: where(p.alpha > 1, _to_gamma(p, q, p.scale.log() + 1 / p.alpha), inf),
    (Uniform, Gamma): _uniform_gamma,
    (Exponential, Gumbel): _exponential_gumbel,
    (Gamma, Gumbel): lambda p, q: _to_gumbel(p, q, (1 + 1 / (p.rate * q.scale)) ** -p.concentration),
    (Normal, Gumbel): lambda p, q: _to_gumbel(p, q, (0.5 * (p.scale / q.scale).square() - p.loc / q.scale).exp()),
    (Uniform, Gumbel): _uniform_gumbel,
    (Normal, Laplace): _normal_laplace,
    (Uniform, Beta): _uniform_beta,
    (Beta, ContinuousBernoulli): _to_continuous_bernoulli,
    (Uniform, ContinuousBernoulli): lambda p, q: where((p.high > 1) | (p.low < 0), inf, _to_continuous_bernoulli(p, q)),
    **{(kind, Uniform): _to_uniform for kind in (Beta, ContinuousBernoulli)},
    (Uniform, Pareto): _uniform_pareto,
}
register_rows(_DIVERGENCES)
