"""Categorical choices, as an index or a unit vector, counts of them, and mixtures."""

from __future__ import annotations

from math import lgamma, nan, prod

from genesis.distributions import constraints
from genesis.distributions.declaration import Alternative, parameter
from genesis.distributions.distribution import Distribution, ProbsOrLogits
from genesis.distributions.utils import finfo, formula, joint_shape, sum_rightmost
from genesis.functions.creation import full_like, zeros
from genesis.functions.methods.table import functions_of
from genesis.functions.ranges import arange, eye
from genesis.ir.annotations import Extents
from genesis.ir.dtypes import int64
from genesis.random import multinomial
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size

log_beta, log_dirichlet_density, one_hot = functions_of("log_beta", "log_dirichlet_density", "one_hot")


class Categorical(ProbsOrLogits):
    """Indices 0 to n-1 with the probabilities `probs` or the unnormalized logarithms `logits` along the last axis.

    Both are normalized.

    >>> genesis.distributions.Categorical(genesis.tensor([1.0, 3.0])).log_prob(genesis.tensor([0, 1])).exp()
    tensor([0.2500, 0.7500])
    """

    probs: Alternative = parameter(constraints.simplex, default=None)
    logits: Alternative = parameter(constraints.real_vector, default=None)
    has_enumerate_support = True
    _is_binary = False

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        given = logits if probs is None else probs
        if given is not None and given.ndim < 1:
            raise ValueError("Categorical: probs or logits must have one axis at least, got a 0-d tensor")
        if probs is not None:
            probs = probs / probs.sum(-1, True)
        if logits is not None:
            logits = logits - logits.logsumexp(-1, True)
        self._declare(validate_args, probs=probs, logits=logits)

    _num_events = formula(lambda d: d._param.shape[-1])

    support = constraints.dependent_property(
        lambda d: constraints.integer_interval(0, d._num_events - 1), is_discrete=True, event_dim=0)

    def _drawn(self, sample_shape: Extents) -> Tensor:
        """`multinomial` of the rows of probabilities, with replacement: PyTorch's draws where it draws PyTorch's."""
        shape = self._extended_shape(sample_shape)
        if not prod(shape):
            return zeros(shape, dtype=int64, device=self.probs.device)
        count = prod(shape[: len(shape) - len(self._batch_shape)])
        return multinomial(self.probs.reshape(-1, self._num_events), count, True).mT.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        index, logits = self._checked(value).to(int64), self.logits
        shape = joint_shape(index.shape, logits.shape[:-1])
        rows = logits.expand(*shape, self._num_events)
        return rows.gather(-1, index.expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self._param.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(self._num_events, dtype=int64, device=self._param.device), expand)

    mean = variance = formula(lambda d: d._param[..., 0] * nan)
    mode = formula(lambda d: d.probs.argmax(-1))


class OfCategories(Distribution):
    """Distributions based on a `Categorical`, whose last axis is the event's."""

    probs: Alternative = parameter(constraints.simplex, of="_categorical")
    logits: Alternative = parameter(constraints.real_vector, of="_categorical")

    def _declare_categories(self, categorical: Categorical, validate_args: bool | None) -> None:
        self._categorical: Categorical = categorical
        Distribution.__init__(self, categorical.batch_shape, categorical.param_shape[-1:], validate_args)

    def _expanded(self, batch_shape: tuple[int, ...]) -> dict[str, object]:
        return {**super()._expanded(batch_shape), "_categorical": self._categorical.expand(batch_shape)}

    _param = formula(lambda d: d._categorical._param)

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` or `logits`."""
        return self._categorical.param_shape


class OneHotCategorical(OfCategories):
    """Unit vectors, of the entry that a `Categorical` chooses."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        self._declare_categories(Categorical(probs, logits, validate_args), validate_args)

    def sample(self, sample_shape: Extents = ()) -> Tensor:
        return one_hot(self._categorical.sample(sample_shape), self._event_shape[0]).to(self._param.dtype)

    def log_prob(self, value: Tensor) -> Tensor: return self._categorical.log_prob(self._checked(value).argmax(-1))
    def entropy(self) -> Tensor: return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values

    mean = formula(lambda d: d.probs)
    mode = formula(lambda d: one_hot(d._categorical.mode, d._event_shape[0]).to(d._param.dtype))
    variance = formula(lambda d: d.probs * (1 - d.probs))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Unit vectors whose gradients are those of the probabilities (Y. Bengio and others, 2013)."""

    has_rsample = True
    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfCategories):
    """The counts of n categories among `total_count` choices."""

    def __init__(
        self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(f"Multinomial: total_count must be one int for all, got {type(total_count).__name__}")
        self.total_count = total_count
        self._declare_categories(Categorical(probs, logits, validate_args), validate_args)

    support = constraints.dependent_property(lambda d: constraints.multinomial(d.total_count), is_discrete=True, event_dim=1)

    def sample(self, sample_shape: Extents = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        chosen = self._categorical.sample((self.total_count, *shape[: len(shape) - 1 - len(self._batch_shape)]))
        like = self._param
        counts = zeros(shape, dtype=like.dtype, device=like.device)
        chosen = chosen.movedim(0, -1)
        return counts.scatter_add(-1, chosen, full_like(chosen, 1, dtype=like.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        value, others = self._checked(value), self._event_shape[0] - 1
        if not others:
            return value.sum(-1) * 0
        orders = log_beta(value.sum(-1) + 1, others) - lgamma(others)
        return log_dirichlet_density(value + 1, self.logits) + orders

    def entropy(self) -> Tensor:
        """By the expected logarithms of the factorials, which need the binomial distribution of each count."""
        n, like = self.total_count, self._param
        total = arange(1, n + 2, dtype=like.dtype, device=like.device)
        factorials = total.lgamma()
        counts = arange(1, n + 1, dtype=like.dtype, device=like.device).reshape(n, *[1] * like.ndim)
        ways = factorials[-1] - (counts + 1).lgamma() - (n - counts + 1).lgamma()
        p = self.probs
        terms = (ways + counts.xlogy(p) + (n - counts).xlogy(1 - p)).exp() * (counts + 1).lgamma()
        return n * self._categorical.entropy() - factorials[-1] + sum_rightmost(terms.sum(0), 1)

    mean = formula(lambda d: d.probs * d.total_count)
    variance = formula(lambda d: d.total_count * d.probs * (1 - d.probs))


class MixtureSameFamily(Distribution):
    """One of the distributions along the last batch axis of `component_distribution`, chosen by `mixture_distribution`.

    >>> d = genesis.distributions
    >>> mixture = d.MixtureSameFamily(d.Categorical(genesis.ones(2)), d.Normal(genesis.tensor([-1.0, 1.0]), 1.0))
    >>> mixture.mean, mixture.variance
    (tensor(0.), tensor(2.))
    """

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError(f"MixtureSameFamily: the mixture must be a Categorical, got {type(mixture).__name__}")
        if not isinstance(component, Distribution):
            raise ValueError(f"MixtureSameFamily: the components must be a distribution, got {type(component).__name__}")
        if not component.batch_shape or mixture._num_events != component.batch_shape[-1]:
            raise ValueError(
                f"MixtureSameFamily: {mixture._num_events} categories of components of batch shape "
                f"{tuple(component.batch_shape)}; want as many along its last axis"
            )
        joint_shape(mixture.batch_shape, component.batch_shape[:-1])
        self._mixture_distribution, self._component_distribution = mixture, component
        self._num_component, self._event_ndims = mixture._num_events, len(component.event_shape)
        super().__init__(component.batch_shape[:-1], component.event_shape, validate_args)

    def _expanded(self, batch_shape: tuple[int, ...]) -> dict[str, object]:
        return {
            "_mixture_distribution": self._mixture_distribution.expand(batch_shape),
            "_component_distribution": self._component_distribution.expand((*batch_shape, self._num_component)),
            "_num_component": self._num_component, "_event_ndims": self._event_ndims,
        }

    support = constraints.dependent_property(
        lambda d: constraints.MixtureSameFamilyConstraint(d._component_distribution.support))

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch axis."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * self._event_ndims)

    mean = formula(lambda d: (d._weights() * d._component_distribution.mean).sum(-1 - d._event_ndims))

    @property
    def variance(self) -> Tensor:
        axis = -1 - self._event_ndims
        deviation = self._component_distribution.mean - self.mean.unsqueeze(axis)
        return (self._weights() * (self._component_distribution.variance + deviation.square())).sum(axis)

    def cdf(self, x: Tensor) -> Tensor:
        below = self._component_distribution.cdf(self._padded(x))
        return (below * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        density = self._component_distribution.log_prob(self._padded(self._checked(x)))
        return (density + self._mixture_distribution.logits).logsumexp(-1)

    def _padded(self, value: Tensor) -> Tensor: return value.unsqueeze(-1 - self._event_ndims)

    def _drawn(self, sample_shape: Extents) -> Tensor:
        chosen = self._mixture_distribution.sample(sample_shape)
        samples = self._component_distribution.sample(sample_shape)
        axis = samples.ndim - 1 - self._event_ndims
        index = chosen.reshape(*chosen.shape, *[1] * (self._event_ndims + 1))
        index = index.expand(*samples.shape[:axis], 1, *samples.shape[axis + 1 :])
        return samples.gather(axis, index).squeeze(axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution!r},\n  {self._component_distribution!r})"
