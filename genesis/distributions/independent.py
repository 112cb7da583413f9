"""Batches of distributions as distributions of larger events."""

from __future__ import annotations

from typing import Any

from genesis.distributions import constraints
from genesis.distributions.distribution import Distribution
from genesis.distributions.utils import formula, sum_rightmost
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last `reinterpreted_batch_ndims` batch axes are axes of the event.

    >>> d = genesis.distributions
    >>> d.Independent(d.Normal(genesis.zeros(2, 3), 1.0), 1).log_prob(genesis.zeros(2, 3))
    tensor([-2.7568, -2.7568])
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if count > len(batch):
            raise ValueError(f"Independent: {count} batch axes of a distribution of batch shape {tuple(batch)}; it has fewer")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        cut = len(batch) - count
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    def _expanded(self, batch_shape: tuple[int, ...]) -> dict[str, object]:
        count = self.reinterpreted_batch_ndims
        base = self.base_dist.expand((*batch_shape, *self._event_shape[:count]))
        return {"base_dist": base, "reinterpreted_batch_ndims": count}

    @property
    def has_rsample(self) -> Any:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        base, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(base, count) if count else base  # type: ignore[no-any-return]

    mean = formula(lambda d: d.base_dist.mean)
    mode = formula(lambda d: d.base_dist.mode)
    variance = formula(lambda d: d.base_dist.variance)
    def sample(self, sample_shape: Extents = ()) -> Tensor: return self.base_dist.sample(sample_shape)
    def rsample(self, sample_shape: Extents = ()) -> Tensor: return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: the support of a product of distributions is not enumerated")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
