"""Transforms of numbers, and of the parts of a tensor; and all others, under the names that users write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log as ln

from genesis.distributions import constraints
from genesis.distributions.distribution import Distribution
from genesis.distributions.transform import (
    ComposeTransform, Elementwise, IndependentTransform, Transform, _InverseTransform, identity_transform,
)
from genesis.distributions.utils import Operand, formula, inside, joint_shape, parts_along, sum_rightmost
from genesis.distributions.vector_transforms import (
    CorrCholeskyTransform, LowerCholeskyTransform, PositiveDefiniteTransform, ReshapeTransform, SoftmaxTransform,
    StickBreakingTransform,
)
from genesis.functions.creation import full_like
from genesis.functions.methods.table import functions_of
from genesis.tensor.handle import Tensor

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]
__dir__ = __all__.copy
_ = _InverseTransform  # which libraries name

cat, logsigmoid, softplus, stack = functions_of("cat", "logsigmoid", "softplus", "stack")


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


class _Joined(Transform):
    """Transforms of parts along `dim`."""

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) if cache_size else t for t in tseq], dim

    bijective = formula(lambda t: all([part.bijective for part in t.transforms]))

    def _parts(self, z: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _joined(self, parts: Sequence[Tensor]) -> Tensor:
        raise NotImplementedError

    def _mapped(self, z: Tensor, turn: Callable[[Transform, Tensor], Tensor]) -> Tensor:
        return self._joined([turn(t, part) for t, part in zip(self.transforms, self._parts(z), strict=True)])

    def _call(self, x: Tensor) -> Tensor: return self._mapped(x, lambda t, part: t(part))
    def _inverse(self, y: Tensor) -> Tensor: return self._mapped(y, lambda t, part: t.inv(part))


class CatTransform(_Joined):
    """Transforms of the parts along `dim` that have the extents `lengths`, by default 1 each.

    >>> d = genesis.distributions
    >>> d.CatTransform([d.ExpTransform(), d.identity_transform], dim=0, lengths=[1, 2])(genesis.zeros(3))
    tensor([1., 0., 0.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    event_dim = formula(lambda t: max([part.event_dim for part in t.transforms]))

    @property
    def length(self) -> int:
        """The extent of the whole."""
        return sum(self.lengths)

    domain = formula(lambda t: constraints.cat([part.domain for part in t.transforms], t.dim, t.lengths))
    codomain = formula(lambda t: constraints.cat([part.codomain for part in t.transforms], t.dim, t.lengths))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, z: Tensor) -> list[Tensor]: return parts_along(z, self.dim, self.lengths)
    def _joined(self, parts: Sequence[Tensor]) -> Tensor: return cat(parts, self.dim)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
                 for t, a, b in zip(self.transforms, self._parts(x), self._parts(y), strict=True)]
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        if dim + self.event_dim < 0:
            return cat(terms, dim + self.event_dim)  # type: ignore[no-any-return]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total  # type: ignore[no-any-return]


class StackTransform(_Joined):
    """Transforms of the slices along `dim`, one for each."""

    domain = formula(lambda t: constraints.stack([part.domain for part in t.transforms], t.dim))
    codomain = formula(lambda t: constraints.stack([part.codomain for part in t.transforms], t.dim))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, z: Tensor) -> list[Tensor]: return [z.select(self.dim, i) for i in range(z.shape[self.dim])]
    def _joined(self, parts: Sequence[Tensor]) -> Tensor: return stack(parts, self.dim)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return stack([t.log_abs_det_jacobian(a, b) for t, a, b in parts], self.dim)  # type: ignore[no-any-return]
