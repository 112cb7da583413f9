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
from genesis.distributions.kl import register_kl
from genesis.distributions.normal import Normal
from genesis.distributions.uniform import Gumbel, Laplace, Uniform
from genesis.distributions.utils import euler_constant
from genesis.functions.creation import full_like
from genesis.functions.selection import where
from genesis.ir.replayable import replayable_module
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


for _pair in _NEVER:
    register_kl(*_pair)(_infinite)


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


def _to_uniform(p: Distribution, q: Uniform, low: Tensor, high: Tensor) -> Tensor:
    """By the ends of p."""
    return where((q.low <= low) & (high <= q.high), -p.entropy() + (q.high - q.low).log(), inf)


for _kind in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Uniform):
    register_kl(_kind, Normal)(_to_normal)
for _kind in (Beta, ContinuousBernoulli, Gamma):
    register_kl(_kind, Exponential)(_to_exponential)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Laplace, q: Normal) -> Tensor:
    return _to_normal(p, q)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    return where(p.alpha > 2, _to_normal(p, q), inf)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    return where(p.alpha > 1, _to_exponential(p, q), inf)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


# ---- to gamma distributions ----
@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    return _to_gamma(p, q, p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma())


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _to_gamma(p, q, -p.rate.log() - euler_constant)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    return where(p.alpha > 1, _to_gamma(p, q, p.scale.log() + 1 / p.alpha), inf)


# ---- to Gumbel's ----
@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    scaled = p.rate * q.scale
    return _to_gumbel(p, q, scaled / (scaled + 1))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    return _to_gumbel(p, q, (1 + 1 / (p.rate * q.scale)) ** -p.concentration)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    return _to_gumbel(p, q, (0.5 * (p.scale / q.scale).square() - p.loc / q.scale).exp())


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    width = (p.high - p.low) / q.scale
    return _to_gumbel(p, q, (-p.low / q.scale).exp() * -(-width).expm1() / width)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    z = (p.loc - q.loc) / p.scale
    distance = p.scale * ((2 / pi) ** 0.5 * (-0.5 * z * z).exp() + z * (z * 0.5**0.5).erf())
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


# ---- of what has ends ----
@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return _to_continuous_bernoulli(p, q)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    return _to_uniform(p, q, full_like(p.mean, 0.0), full_like(p.mean, 1.0))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    return _to_uniform(p, q, full_like(p.mean, 0.0), full_like(p.mean, 1.0))


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    mean_log = (p.high.xlogy(p.high) - p.low.xlogy(p.low)) / width - 1
    low, high = 1 - p.high, 1 - p.low
    mean_log1m = (high.xlogy(high) - low.xlogy(low)) / width - 1
    return where((p.high > 1) | (p.low < 0), inf, _to_beta(p, q, mean_log, mean_log1m))


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return where((p.high > 1) | (p.low < 0), inf, _to_continuous_bernoulli(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return where(p.low < 0, inf, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    mean_log = (p.high.xlogy(p.high) - p.low.xlogy(p.low)) / (p.high - p.low) - 1
    return where(p.low < 0, inf, _to_gamma(p, q, mean_log))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    mean_log = (p.high.xlogy(p.high) - p.low.xlogy(p.low)) / (p.high - p.low) - 1
    result = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * mean_log
    return where(p.low < q.scale, inf, result)


replayable_module(__name__)
