"""Transforms from unconstrained numbers: `biject_to` one by one, `transform_to` perhaps not.

>>> from genesis.distributions import biject_to, constraints
>>> biject_to(constraints.positive)(genesis.tensor(0.0))
tensor(1.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.distributions import constraints, transforms
from genesis.distributions.constraints import Constraint
from genesis.distributions.transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Transforms by the class of the constraint that is their codomain."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Constraint | type, factory: Factory | None = None) -> Any:
        """Register `factory` for a class of constraints; without it, a decorator."""
        if factory is None:
            return lambda given: self.register(constraint, given)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError(f"register: wants a constraint or a class of constraints, got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform onto a constraint. Raises NotImplementedError where none is registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform to {type(constraint).__name__} constraints is registered")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Constraint | type, factory: Factory) -> None:
    for kind in kinds:
        biject_to.register(kind, factory)
        transform_to.register(kind, factory)


def _to_interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _from(bound: Any, sign: int) -> Transform:
    """To the numbers above a bound, or, with the sign -1, below it."""
    if sign == 1 and isinstance(bound, int | float) and bound == 0:
        return transforms.ExpTransform()
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(bound, sign)])


_both(constraints.real, factory=lambda _: transforms.identity_transform)
_both(constraints.greater_than, constraints.greater_than_eq, factory=lambda c: _from(c.lower_bound, 1))
_both(constraints.less_than, factory=lambda c: _from(c.upper_bound, -1))
_both(constraints.interval, constraints.half_open_interval, factory=_to_interval)
_both(constraints.corr_cholesky, factory=lambda _: transforms.CorrCholeskyTransform())
biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda _: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda _: transforms.PositiveDefiniteTransform())


def _of_elements(base: Transform, count: int) -> Transform:
    return transforms.IndependentTransform(base, count) if count else base


def _to_parts(to: ConstraintRegistry) -> None:
    """Register the transforms onto constraints that are made of others."""
    to.register(constraints.cat, lambda c: transforms.CatTransform([*map(to, c.cseq)], c.dim, c.lengths))
    to.register(constraints.stack, lambda c: transforms.StackTransform([*map(to, c.cseq)], c.dim))
    to.register(constraints.independent, lambda c: _of_elements(to(c.base_constraint), c.reinterpreted_batch_ndims))


_to_parts(biject_to)
_to_parts(transform_to)
