"""The base of transforms, their inverses, chains of them, and transforms of vectors element by element."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from genesis.distributions import constraints
from genesis.distributions.constraints import Constraint
from genesis.distributions.utils import formula, sum_rightmost
from genesis.functions.creation import zeros_like
from genesis.ir.described import Described
from genesis.tensor.handle import Tensor


class Transform(Described):
    """An invertible function of events, with the logarithm of its Jacobian's determinant.

    A subclass declares `domain`, `codomain`, `bijective` and, of functions of numbers, the `sign` of the slope; it defines
    `_call`, `_inverse` and `log_abs_det_jacobian(x, y)`. With `cache_size=1` the inverse of the last result is its argument.

    >>> exp = genesis.distributions.ExpTransform()
    >>> exp(genesis.tensor(0.0)), exp.inv(genesis.tensor(1.0))
    (tensor(1.), tensor(0.))
    """

    bijective: Any = False
    domain: Constraint | Any
    codomain: Constraint | Any
    _inv: Any = None  # where transforms of libraries keep their inverses
    _compared: ClassVar[tuple[str, ...] | None] = None  # attributes by which a class's transforms are equal; None: by identity

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"{type(self).__name__}: cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (None, None)  # argument and result of the last call

    @property
    def event_dim(self) -> int:
        """The axes of an event, where argument and result have equally many."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError(f"{type(self).__name__}: event_dim of argument and result differ; ask domain or codomain")
        return self.domain.event_dim  # type: ignore[no-any-return]

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """1 of an increasing function of numbers, -1 of a falling one."""
        raise NotImplementedError(f"{type(self).__name__}: has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with this size of the cache."""
        if self._cache_size == cache_size:
            return self
        made = copy.copy(self)
        Transform.__init__(made, cache_size)
        return made

    def __eq__(self, other: object) -> bool:
        if self is other or self._compared is None:
            return self is other
        declaring = next(kind for kind in type(self).__mro__ if "_compared" in vars(kind))  # of which users have subclasses
        return isinstance(other, declaring) and all([
            _alike(getattr(self, name), getattr(other, name)) for name in self._compared])

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]  # type: ignore[no-any-return]

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]  # type: ignore[no-any-return]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: _call is not defined")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: _inverse is not defined")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det J| of each event, from argument and result."""
        raise NotImplementedError(f"{type(self).__name__}: log_abs_det_jacobian is not defined")

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the result for that of the argument."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the argument for that of the result."""
        return shape

    def __repr__(self) -> str: return f"{type(self).__name__}()"


class Elementwise(Transform):
    """A base of monotone functions of numbers: one line for each of the four things to know."""

    domain: Constraint | Any = constraints.real
    codomain: Constraint | Any = constraints.real
    bijective = True
    sign: ClassVar[Any] = 1


class _InverseTransform(Transform):
    """The inverse of a transform."""

    _compared = ("_inv",)

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    domain = formula(lambda t: t._inv.codomain)
    codomain = formula(lambda t: t._inv.domain)
    bijective = formula(lambda t: t._inv.bijective)
    sign = formula(lambda t: t._inv.sign)
    inv = formula(lambda t: t._inv)
    def with_cache(self, cache_size: int = 1) -> Transform: return self.inv.with_cache(cache_size).inv
    def __call__(self, x: Tensor) -> Tensor: return self._inv._inv_call(x)
    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor: return -self._inv.log_abs_det_jacobian(y, x)
    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]: return self._inv.inverse_shape(shape)
    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]: return self._inv.forward_shape(shape)
    def __repr__(self) -> str: return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """Transforms one after another, the first of `parts` first."""

    _compared = ("parts",)

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        axes = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            axes = max(axes + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        first: Constraint = self.parts[0].domain
        return constraints.independent(first, axes - first.event_dim) if axes > first.event_dim else first

    codomain = formula(lambda t: t.inv.domain)
    bijective = formula(lambda t: all([part.bijective for part in t.parts]))

    @property
    def sign(self) -> Any:
        result: Any = 1
        for part in self.parts:
            result = result * part.sign
        return result

    inv = formula(lambda t: ComposeTransform([part.inv for part in reversed(t.parts)]))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        axes, total = self.domain.event_dim, None
        for part, before, after in zip(self.parts, points, points[1:], strict=False):
            term = sum_rightmost(part.log_abs_det_jacobian(before, after), axes - part.domain.event_dim)
            total = term if total is None else total + term
            axes += part.codomain.event_dim - part.domain.event_dim
        assert total is not None
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]: return self.inv.forward_shape(shape)
    def __repr__(self) -> str: return f"ComposeTransform({self.parts!r})"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose further `reinterpreted_batch_ndims` axes count as the event's: their logarithms add up."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform.with_cache(cache_size), reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    domain = formula(lambda t: constraints.independent(t.base_transform.domain, t.reinterpreted_batch_ndims))
    codomain = formula(lambda t: constraints.independent(t.base_transform.codomain, t.reinterpreted_batch_ndims))
    bijective = formula(lambda t: t.base_transform.bijective)
    sign = formula(lambda t: t.base_transform.sign)

    def _call(self, x: Tensor) -> Tensor:
        _want_axes(self, x, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _want_axes(self, y, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(result, self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]: return self.base_transform.forward_shape(shape)
    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]: return self.base_transform.inverse_shape(shape)
    def __repr__(self) -> str: return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def _alike(a: Any, b: Any) -> bool:
    """Whether two attributes are equal, tensors everywhere; the same object is, without a look at its values."""
    return a is b or bool((a == b).all() if isinstance(a, Tensor) or isinstance(b, Tensor) else a == b)


def _want_axes(transform: Transform, value: Tensor, axes: int) -> None:
    if value.ndim < axes:
        raise ValueError(f"{transform!r}: an event has {axes} axes, got a value of shape {tuple(value.shape)}")
