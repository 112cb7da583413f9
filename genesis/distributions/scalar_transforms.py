"""Transforms of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import log as ln
from typing import Any

from genesis.distributions import constraints
from genesis.distributions.constraints import Constraint
from genesis.distributions.distribution import Distribution
from genesis.distributions.transform import Elementwise, Transform
from genesis.distributions.utils import Operand, finfo, joint_shape, sum_rightmost
from genesis.functions.creation import full_like
from genesis.functions.methods.table import functions_of
from genesis.ir.replayable import replayable_module
from genesis.tensor.handle import Tensor

softplus, logsigmoid = functions_of("softplus", "logsigmoid")


class ExpTransform(Elementwise):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Elementwise):
    """y = x^exponent, of positive x."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Operand, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = exponent

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self) -> Any:  # type: ignore[override]
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else (self.exponent > 0) - (self.exponent < 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _alike(self.exponent, other.exponent)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return joint_shape(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class SigmoidTransform(Elementwise):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return logsigmoid(x) + logsigmoid(-x)


class SoftplusTransform(Elementwise):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return logsigmoid(x)


class TanhTransform(Elementwise):
    """y = tanh(x). With `cache_size=1` the inverse of a result is exact where it has been rounded to 1."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (ln(2) - x - softplus(-2 * x))


class AbsTransform(Transform):
    """y = |x|; its inverse is the one that is not negative."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x, of events of `event_dim` axes."""

    bijective = True

    def __init__(self, loc: Operand, scale: Operand, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain  # type: ignore[assignment]

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _alike(self.loc, other.loc) and _alike(self.scale, other.scale)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale
        size = scale.abs().log() if isinstance(scale, Tensor) else full_like(x, ln(abs(scale)))
        shape = joint_shape(x.shape, size.shape)
        return sum_rightmost(size.expand(shape), self._event_dim)  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return joint_shape(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = the distribution's cdf of x: uniform numbers of its samples."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        return self.distribution.support  # type: ignore[no-any-return]

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    return inside(x.sigmoid())


def inside(y: Tensor) -> Tensor:
    """Kept from 0 and 1 by the least steps."""
    limits = finfo(y.dtype)
    return y.clamp(limits.tiny, 1 - limits.eps)


def _alike(a: Operand, b: Operand) -> bool:
    """Whether two parameters are equal everywhere; the same object is, without a look at its values."""
    if a is b:
        return True
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return bool((a == b).all())  # type: ignore[union-attr]
    return a == b


replayable_module(__name__)
