"""Constraints: which values a parameter may have, or which values a distribution may take."""

from __future__ import annotations

from genesis.distributions.constraint import Constraint, _Dependent, dependent_property, is_dependent
from genesis.distributions.constraints_of_arrays import (
    _CorrCholesky,
    _LowerCholesky,
    _LowerTriangular,
    _Multinomial,
    _OneHot,
    _PositiveDefinite,
    _PositiveSemidefinite,
    _Simplex,
    _Square,
    _Symmetric,
)
from genesis.distributions.constraints_of_numbers import (
    _Boolean,
    _GreaterThan,
    _GreaterThanEq,
    _HalfOpenInterval,
    _IntegerGreaterThan,
    _IntegerInterval,
    _IntegerLessThan,
    _Interval,
    _LessThan,
    _Real,
)
from genesis.distributions.constraints_of_others import (
    MixtureSameFamilyConstraint,
    _Cat,
    _IndependentConstraint,
    _Stack,
)

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square",
    "stack", "symmetric", "unit_interval",
]

dependent = _Dependent()
independent = _IndependentConstraint
_DependentProperty = dependent_property
_ = _IntegerLessThan  # which libraries name
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
