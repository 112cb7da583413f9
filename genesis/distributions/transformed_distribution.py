"""Distributions of transformed samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.distributions import constraints
from genesis.distributions.distribution import Distribution
from genesis.distributions.independent import Independent
from genesis.distributions.transforms import ComposeTransform, Transform
from genesis.distributions.utils import Operand, sum_rightmost
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of transforms of samples of `base_distribution`, the first transform first.

    >>> d = genesis.distributions
    >>> d.TransformedDistribution(d.Normal(0.0, 1.0), [d.ExpTransform()]).log_prob(genesis.tensor(1.0))
    tensor(-0.9189)
    """

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | Sequence[Transform], validate_args: bool | None = None
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for transform in self.transforms:
            if not isinstance(transform, Transform):
                raise ValueError(f"TransformedDistribution: wants transforms, got {type(transform).__name__}")
        base, whole = base_distribution, ComposeTransform(self.transforms)
        shape = tuple(base.batch_shape + base.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(f"TransformedDistribution: {whole!r} wants {whole.domain.event_dim} axes or more, got {shape}")
        spread = tuple(whole.inverse_shape(whole.forward_shape(shape)))
        if spread != shape:
            base = base.expand(spread[: len(spread) - len(base.event_shape)])
        more = whole.domain.event_dim - len(base.event_shape)
        self.base_dist: Any = Independent(base, more) if more > 0 else base
        result = tuple(whole.forward_shape(spread))
        axes = whole.codomain.event_dim + max(len(base.event_shape) - whole.domain.event_dim, 0)
        super().__init__(result[: len(result) - axes], result[len(result) - axes :], validate_args)

    def _expanded(self, batch_shape: tuple[int, ...]) -> dict[str, object]:
        shape = tuple(ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self._event_shape)))
        base = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return {"base_dist": base, "transforms": self.transforms}

    @property
    def has_rsample(self) -> Any:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support  # type: ignore[no-any-return]
        last = self.transforms[-1].codomain
        more = len(self._event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last  # type: ignore[no-any-return]

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Extents = ()) -> Tensor:
        with recording(False) as again, again:
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Extents = ()) -> Tensor: return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The density at the inverse, less the logarithms of the Jacobians' determinants."""
        y, axes, total = self._checked(value), len(self._event_shape), None
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            axes += transform.domain.event_dim - transform.codomain.event_dim
            term = sum_rightmost(transform.log_abs_det_jacobian(x, y), axes - transform.domain.event_dim)
            total = term if total is None else total + term
            y = x
        density = sum_rightmost(self.base_dist.log_prob(y), axes - len(self.base_dist.event_shape))
        return density if total is None else density - total  # type: ignore[no-any-return]

    def _mirrored(self, probability: Tensor) -> Tensor:
        """1 - probability if the transforms are decreasing."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int):
            return probability if sign == 1 else 1 - probability
        return where(sign > 0, probability, 1 - probability)

    def cdf(self, value: Tensor) -> Tensor:
        y = self._checked(value)
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        if self.base_dist._validate_args:
            self.base_dist._validate_sample(y)
        return self._mirrored(self.base_dist.cdf(y))

    def icdf(self, value: Tensor) -> Tensor: return self._forward(self.base_dist.icdf(self._mirrored(value)))


class Composed(TransformedDistribution):
    """Distributions whose base or transforms depend on their declared parameters."""

    _expanded = Distribution._expanded

    def _parts(self) -> tuple[Distribution, list[Transform]]:
        """The base and the transforms."""
        raise NotImplementedError

    def _declare(self, validate_args: bool | None, **parameters: Operand | None) -> None:
        self._set(parameters)
        super().__init__(*self._parts(), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.base_dist, new.transforms = new._parts()
        return new
