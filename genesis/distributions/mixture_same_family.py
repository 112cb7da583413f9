"""Mixtures of distributions of one family."""

from __future__ import annotations

from genesis.distributions import constraints
from genesis.distributions.categorical import Categorical
from genesis.distributions.distribution import Distribution
from genesis.distributions.utils import formula, joint_shape
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording

__all__ = ["MixtureSameFamily"]


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

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

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

    def _padded(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._event_ndims)

    def sample(self, sample_shape: Extents = ()) -> Tensor:
        with recording(False) as again, again:
            chosen = self._mixture_distribution.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            axis = samples.ndim - 1 - self._event_ndims
            index = chosen.reshape(*chosen.shape, *[1] * (self._event_ndims + 1))
            index = index.expand(*samples.shape[:axis], 1, *samples.shape[axis + 1 :])
            return samples.gather(axis, index).squeeze(axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution!r},\n  {self._component_distribution!r})"
