"""Transforms of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import log as ln

from genesis.distributions import constraints
from genesis.distributions.distribution import Distribution
from genesis.distributions.transform import Elementwise, Transform
from genesis.distributions.utils import Operand, finfo, formula, joint_shape, sum_rightmost
from genesis.functions.creation import full_like
from genesis.functions.methods.table import functions_of
from genesis.tensor.handle import Tensor

softplus, logsigmoid = functions_of("softplus", "logsigmoid")


class ExpTransform(Elementwise):
    """y = exp(x)."""

    codomain = constraints.positive
    _compared = ()
    def _call(self, x: Tensor) -> Tensor: return x.exp()
    def _inverse(self, y: Tensor) -> Tensor: return y.log()
    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor: return x


class PowerTransform(Elementwise):
    """y = x^exponent, of positive x."""

    domain = codomain = constraints.positive
    _compared = ("exponent",)

    def __init__(self, exponent: Operand, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = exponent

    sign = formula(lambda t: t.exponent.sign() if isinstance(t.exponent, Tensor) else (t.exponent > 0) - (t.exponent < 0))
    def _call(self, x: Tensor) -> Tensor: return x**self.exponent
    def _inverse(self, y: Tensor) -> Tensor: return y ** (1 / self.exponent)
    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor: return (self.exponent * y / x).abs().log()
    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return joint_shape(shape, getattr(self.exponent, "shape", ()))
    inverse_shape = forward_shape


class SigmoidTransform(Elementwise):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval
    _compared = ()
    def _call(self, x: Tensor) -> Tensor: return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor: return logsigmoid(x) + logsigmoid(-x)


class SoftplusTransform(Elementwise):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive
    _compared = ()
    def _call(self, x: Tensor) -> Tensor: return softplus(x)
    def _inverse(self, y: Tensor) -> Tensor: return y + (-(-y).expm1()).log()
    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor: return logsigmoid(x)


class TanhTransform(Elementwise):
    """y = tanh(x). With `cache_size=1` the inverse of a result is exact where it has been rounded to 1."""

    codomain = constraints.interval(-1.0, 1.0)
    _compared = ()
    def _call(self, x: Tensor) -> Tensor: return x.tanh()
    def _inverse(self, y: Tensor) -> Tensor: return y.atanh()
    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor: return 2 * (ln(2) - x - softplus(-2 * x))


class AbsTransform(Transform):
    """y = |x|; its inverse is the one that is not negative."""

    domain = constraints.real
    codomain = constraints.positive
    _compared = ()
    def _call(self, x: Tensor) -> Tensor: return x.abs()
    def _inverse(self, y: Tensor) -> Tensor: return y


class AffineTransform(Transform):
    """y = loc + scale * x, of events of `event_dim` axes."""

    bijective = True
    _compared = "loc", "scale"

    def __init__(self, loc: Operand, scale: Operand, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = formula(lambda t: t._event_dim)
    domain = codomain = formula(
        lambda t: constraints.independent(constraints.real, t._event_dim) if t._event_dim else constraints.real)
    sign = formula(lambda t: t.scale.sign() if isinstance(t.scale, Tensor) else (t.scale > 0) - (t.scale < 0))
    def _call(self, x: Tensor) -> Tensor: return self.loc + self.scale * x
    def _inverse(self, y: Tensor) -> Tensor: return (y - self.loc) / self.scale

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

    domain = formula(lambda t: t.distribution.support)
    def _call(self, x: Tensor) -> Tensor: return self.distribution.cdf(x)
    def _inverse(self, y: Tensor) -> Tensor: return self.distribution.icdf(y)
    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor: return self.distribution.log_prob(x)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    return inside(x.sigmoid())


def inside(y: Tensor) -> Tensor:
    """Kept from 0 and 1 by the least steps."""
    limits = finfo(y.dtype)
    return y.clamp(limits.tiny, 1 - limits.eps)
