"""The Kullback-Leibler divergence: a function of two distributions, registered for pairs of classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import reduce
from math import inf, log as ln, nan, pi
from operator import add
from typing import Any

from genesis.distributions.categorical import Categorical, OneHotCategorical
from genesis.distributions.composed import Independent, TransformedDistribution
from genesis.distributions.counts import Bernoulli, Binomial, ContinuousBernoulli, Geometric, Poisson, softplus
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.exponential import Exponential, Pareto
from genesis.distributions.gamma import Beta, Dirichlet, Gamma
from genesis.distributions.location_scale import Cauchy, Gumbel, HalfNormal, Laplace, Normal, Uniform
from genesis.distributions.matrices import LowRankMultivariateNormal, MultivariateNormal, NormalVectors
from genesis.distributions.utils import euler_constant, sum_rightmost
from genesis.functions.creation import full_like
from genesis.functions.methods.table import functions_of
from genesis.functions.selection import where
from genesis.tensor.handle import Tensor
from genesis.tracing.recording_hooks import reads_forbidden

__all__ = ["kl_divergence", "register_kl"]
__dir__ = __all__.copy

deviance, gamma_divergence = functions_of("deviance", "gamma_divergence")

Divergence = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], Divergence] = {}
_KL_MEMOIZE: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Decorator: the divergence of distributions of these classes, or of subclasses that have none closer to them."""
    for kind in (type_p, type_q):
        if not isinstance(kind, type):  # of Distribution or of what a library derives its own from beside it
            raise TypeError(f"register_kl: wants classes of distributions, got {kind!r}")

    def register(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return register


def register_rows(divergences: Mapping[tuple[type, type], Divergence]) -> None:
    """Register the divergences of a table, by their pairs of classes."""
    for pair, divergence in divergences.items():
        register_kl(*pair)(divergence)


def _dispatch_kl(type_p: type, type_q: type) -> Divergence:
    """The function of the closest pair of base classes; the left one decides where two are incomparable."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        raise NotImplementedError(f"kl_divergence: none is registered for {type_p.__name__} and {type_q.__name__}")

    def distance(kinds: tuple[type, type]) -> tuple[int, int]:
        return type_p.__mro__.index(kinds[0]), type_q.__mro__.index(kinds[1])

    left = min(pairs, key=distance)
    right = min(pairs, key=lambda kinds: distance(kinds)[::-1])
    chosen = _KL_REGISTRY[left]
    if chosen is not _KL_REGISTRY[right]:
        warnings.warn(
            f"kl_divergence: ambiguous for {type_p.__name__} and {type_q.__name__}; register that pair. The one of "
            f"{left[0].__name__} and {left[1].__name__} is taken", RuntimeWarning, stacklevel=3,
        )
    return chosen


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean of log p(x) - log q(x) over x of p, for each distribution of the batch.

    Raises NotImplementedError where none is registered for the two classes.

    >>> d = genesis.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    kinds = type(p), type(q)
    function = _KL_MEMOIZE.get(kinds)
    if function is None:
        function = _KL_MEMOIZE[kinds] = _dispatch_kl(*kinds)
    return function(p, q)


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


def _normal_vectors(p: NormalVectors, q: NormalVectors) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: events of shapes {tuple(p.event_shape)} and {tuple(q.event_shape)}; want equal ones")
    trace = reduce(add, [q._trace(factor) for factor in p._factors()])
    return 0.5 * (q._log_determinant() - p._log_determinant() + trace + q._size(q.mean - p.mean) - p.event_shape[0])


_VECTORS = MultivariateNormal, LowRankMultivariateNormal
register_rows({(p, q): _normal_vectors for p in _VECTORS for q in _VECTORS})


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
    ContinuousBernoulli: lambda p, q: (
        p.mean * (p.logits - q.logits) + p._log_norm() - softplus(p.logits) - q._log_norm() + softplus(q.logits)),
    Exponential: lambda p, q: deviance(1.0, q.rate / p.rate),
    Gamma: lambda p, q: gamma_divergence(p.concentration, q.concentration, p.mean * q.rate),
    Geometric: lambda p, q: -p.entropy() - (-q.probs).log1p() * (1 / p.probs - 1) - q.probs.log(),
    HalfNormal: lambda p, q: _normal(p.base_dist, q.base_dist),
    Poisson: lambda p, q: deviance(p.rate, q.rate),
    OneHotCategorical: lambda p, q: _categorical(p._categorical, q._categorical),
}
register_rows({(kind, kind): divergence for kind, divergence in _OF_ONE_LINE.items()})


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


def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    width = (p.high - p.low) / q.scale
    return _to_gumbel(p, q, (-p.low / q.scale).exp() * -(-width).expm1() / width)


def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    mean_log, mean_log1m = _uniform_mean_log(p.low, p.high, width), _uniform_mean_log(1 - p.high, 1 - p.low, width)
    return where((p.high > 1) | (p.low < 0), inf, _to_beta(p, q, mean_log, mean_log1m))


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
    (Uniform, Gamma): lambda p, q: where(p.low < 0, inf, _to_gamma(p, q, _uniform_mean_log(p.low, p.high, p.high - p.low))),
    (Exponential, Gumbel): lambda p, q: _to_gumbel(p, q, p.rate * q.scale / (p.rate * q.scale + 1)),
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


NOT_REPLAYABLE = ("register_kl", "register_rows")
