"""Divergences of two distributions of one family."""

from __future__ import annotations

from math import inf, nan

from genesis.distributions.bernoulli import Bernoulli, ContinuousBernoulli, Geometric, softplus
from genesis.distributions.beta import Beta, Dirichlet
from genesis.distributions.categorical import Categorical, OneHotCategorical
from genesis.distributions.cauchy import Cauchy
from genesis.distributions.counts import Binomial, Poisson
from genesis.distributions.distribution import Distribution
from genesis.distributions.exp_family import ExponentialFamily
from genesis.distributions.exponential import Exponential, Pareto
from genesis.distributions.gamma import Gamma
from genesis.distributions.independent import Independent
from genesis.distributions.kl import Divergence, kl_divergence, register_kl, register_rows
from genesis.distributions.multivariate_normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    log_diagonal,
    size_in,
    solved,
)
from genesis.distributions.normal import HalfNormal, Normal
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.uniform import Gumbel, Laplace, Uniform
from genesis.distributions.utils import euler_constant, sum_rightmost
from genesis.functions.methods.table import functions_of
from genesis.functions.selection import where
from genesis.tensor.handle import Tensor
from genesis.tracing.recording_hooks import reads_forbidden

deviance, gamma_divergence = functions_of("deviance", "gamma_divergence")


# ---- of numbers ----
@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    one = where(p.probs == 0, 0, where(q.probs == 0, inf, one))
    return one + where(p.probs == 1, 0, where(q.probs == 1, inf, zero))


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    return gamma_divergence(a, c, a) + gamma_divergence(b, d, b) - gamma_divergence(a + b, c + d, a + b)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    fewer = p.total_count < q.total_count
    if not reads_forbidden() and bool(fewer.any()):
        raise NotImplementedError("kl_divergence: of a Binomial of fewer trials than the other there is no closed form")
    each = p.probs * (p.logits - q.logits) + softplus(q.logits) - softplus(p.logits)
    return where(p.total_count > q.total_count, inf, where(fewer, nan, p.total_count * each))


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return p.mean * (p.logits - q.logits) + p._log_norm() - softplus(p.logits) - q._log_norm() + softplus(q.logits)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() + euler_constant * (ratio - 1) - shift + (shift + (1 + ratio).lgamma()).exp() - 1


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    distance = (p.loc - q.loc).abs()
    return (q.scale / p.scale).log() - 1 + distance / q.scale + p.scale / q.scale * (-distance / p.scale).exp()


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, inf, result)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    inside = (q.low <= p.low) & (p.high <= q.high)
    return where(inside, ((q.high - q.low) / (p.high - p.low)).log(), inf)


# ---- of vectors ----
@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = where(p.probs == 0, 0, where(q.probs == 0, inf, terms))
    return terms.sum(-1)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total, other = a.sum(-1), b.sum(-1)
    return gamma_divergence(a, b, a).sum(-1) - gamma_divergence(total, other, total)


def _of_factors(lower_p: Tensor, factors: Tensor) -> Tensor:
    """The trace of Q^-1 F F^T, of Q with the Cholesky factor `lower_p`."""
    return solved(lower_p, factors).square().sum((-2, -1))


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _want_equal_events(p, q)
    mine, other = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    levels = 2 * (log_diagonal(other) - log_diagonal(mine))
    size = size_in(other, q.loc - p.loc)
    return 0.5 * (levels + _of_factors(other, mine) + size - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_and_any(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _want_equal_events(p, q)
    lower = q._unbroadcasted_scale_tril
    trace = _of_factors(lower, p._unbroadcasted_cov_factor) + _of_factors(lower, p._unbroadcasted_cov_diag.sqrt().diag_embed())
    levels = 2 * log_diagonal(lower) - p.log_determinant()
    return 0.5 * (levels + trace + size_in(lower, q.loc - p.loc) - p.event_shape[0])


def _trace_in(q: LowRankMultivariateNormal, factors: Tensor) -> Tensor:
    """The trace of Q^-1 F F^T, of F (.., n, m), by the capacitance of Q."""
    scaled = factors / q._unbroadcasted_cov_diag.unsqueeze(-1)
    inner = q._unbroadcasted_cov_factor.mT @ scaled
    return (factors * scaled).sum((-2, -1)) - _of_factors(q._capacitance_tril, inner)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _any_and_low_rank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _want_equal_events(p, q)
    lower = p._unbroadcasted_scale_tril
    levels = q.log_determinant() - 2 * log_diagonal(lower)
    return 0.5 * (levels + _trace_in(q, lower) + q.size(q.loc - p.loc) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _want_equal_events(p, q)
    trace = _trace_in(q, p._unbroadcasted_cov_factor) + _trace_in(q, p._unbroadcasted_cov_diag.sqrt().diag_embed())
    levels = q.log_determinant() - p.log_determinant()
    return 0.5 * (levels + trace + q.size(q.loc - p.loc) - p.event_shape[0])


def _want_equal_events(
    p: MultivariateNormal | LowRankMultivariateNormal, q: MultivariateNormal | LowRankMultivariateNormal
) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: events of shapes {tuple(p.event_shape)} and {tuple(q.event_shape)}; want equal ones")


# ---- of distributions made of others ----
@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizers."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: none is registered for {type(p).__name__} and {type(q).__name__}, two exponential families"
        )
    level, natural, means = p._bregman()
    others = q._natural_params
    result = q._log_normalizer(*others) - level
    for mine, other, mean in zip(natural, others, means, strict=True):
        result = result - sum_rightmost((other - mine) * mean, mine.ndim - level.ndim)
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: of transformed distributions wants equal transforms and event shapes")
    more = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), more)  # type: ignore[no-any-return]


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: of Independent distributions wants equal reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)  # type: ignore[no-any-return]


_OF_ONE_LINE: dict[type[Distribution], Divergence] = {
    Cauchy: lambda p, q: (((p.scale + q.scale).square() + (p.loc - q.loc).square()) / (4 * p.scale * q.scale)).log(),
    Exponential: lambda p, q: deviance(1.0, q.rate / p.rate),
    Gamma: lambda p, q: gamma_divergence(p.concentration, q.concentration, p.mean * q.rate),
    Geometric: lambda p, q: -p.entropy() - (-q.probs).log1p() * (1 / p.probs - 1) - q.probs.log(),
    HalfNormal: lambda p, q: _normal(p.base_dist, q.base_dist),
    Poisson: lambda p, q: deviance(p.rate, q.rate),
    OneHotCategorical: lambda p, q: _categorical(p._categorical, q._categorical),
}
register_rows({(kind, kind): divergence for kind, divergence in _OF_ONE_LINE.items()})
