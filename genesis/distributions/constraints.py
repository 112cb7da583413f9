"""Constraints: which values a parameter may have, or which values a distribution may take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from genesis.distributions.utils import Formula, Operand, all_rightmost, finfo, formula, parts_along
from genesis.functions.creation import full
from genesis.functions.methods.table import functions_of
from genesis.functions.selection import where
from genesis.ir.described import Described
from genesis.ir.dtypes import bool_
from genesis.linalg import cholesky_ex, eigvalsh
from genesis.tensor.handle import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex",
    "square", "stack", "symmetric", "unit_interval",
]
__dir__ = __all__.copy

_joined, _stacked = functions_of("cat", "stack")


class Constraint(Described):
    """A region: `check` tests for each event whether it is inside. An event has the last `event_dim` axes.

    >>> from genesis.distributions import constraints
    >>> constraints.positive.check(genesis.tensor([-1.0, 2.0]))
    tensor([False,  True])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each event of `value` is inside, of shape sample_shape + batch_shape."""
        raise NotImplementedError(f"{type(self).__name__}: check is not defined")

    def __repr__(self) -> str: return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """A constraint that depends on other values; it checks nothing."""

    def __init__(self, *, is_discrete: bool | Any = NotImplemented, event_dim: int | Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    is_discrete = formula(lambda c: c._known("is_discrete"))
    event_dim = formula(lambda c: c._known("event_dim"))

    def _known(self, name: str) -> Any:
        value = getattr(self, "_" + name)
        if value is NotImplemented:
            raise NotImplementedError(f"{name} of this constraint depends on the distribution's parameters")
        return value

    def __call__(self, *, is_discrete: bool | Any = NotImplemented, event_dim: int | Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("a dependent constraint checks nothing by itself; ask the distribution's instance for its support")


def is_dependent(constraint: Constraint) -> bool:
    """Whether a constraint depends on other values."""
    return isinstance(constraint, _Dependent)


class dependent_property(Formula, _Dependent):
    """A property that is a constraint, which depends on the parameters of the instance; on the class it is dependent."""

    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: bool | Any = NotImplemented,
                 event_dim: int | Any = NotImplemented) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _Bounded(Constraint):
    """A constraint by bounds, which are numbers or tensors; its printed form names them."""

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-2]}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor: return value == value


class _Boolean(Constraint):
    is_discrete = True
    def check(self, value: Tensor) -> Tensor: return (value == 0) | (value == 1)


@dataclass(eq=False, repr=False)
class _IntegerInterval(_Bounded):
    lower_bound: Operand
    upper_bound: Operand
    is_discrete = True
    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


@dataclass(eq=False, repr=False)
class _IntegerLessThan(_Bounded):
    upper_bound: Operand
    is_discrete = True
    def check(self, value: Tensor) -> Tensor: return (value % 1 == 0) & (value <= self.upper_bound)


@dataclass(eq=False, repr=False)
class _IntegerGreaterThan(_Bounded):
    lower_bound: Operand
    is_discrete = True
    def check(self, value: Tensor) -> Tensor: return (value % 1 == 0) & (value >= self.lower_bound)


class _GreaterThan(_IntegerGreaterThan):
    is_discrete = False
    def check(self, value: Tensor) -> Tensor: return value > self.lower_bound


class _GreaterThanEq(_IntegerGreaterThan):
    is_discrete = False
    def check(self, value: Tensor) -> Tensor: return value >= self.lower_bound


class _LessThan(_IntegerLessThan):
    is_discrete = False
    def check(self, value: Tensor) -> Tensor: return value < self.upper_bound


class _Interval(_IntegerInterval):
    is_discrete = False
    def check(self, value: Tensor) -> Tensor: return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_IntegerInterval):
    is_discrete = False
    def check(self, value: Tensor) -> Tensor: return (value >= self.lower_bound) & (value < self.upper_bound)


OF_NUMBERS = (_Real, _Boolean, _Bounded)  # which a Python number can be checked against as it is


# ---- of vectors ----
class _OneHot(Constraint):
    is_discrete, event_dim = True, 1
    def check(self, value: Tensor) -> Tensor: return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1
    def check(self, value: Tensor) -> Tensor: return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Operand) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor: return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# ---- of matrices ----
class _LowerTriangular(Constraint):
    event_dim = 2
    def check(self, value: Tensor) -> Tensor: return all_rightmost(value.tril() == value, 2)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor: return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10  # of rows of length 1
        lengths = (value * value).sum(-1)
        return super().check(value) & ((lengths - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=bool_, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        mirrored, tolerance = value.transpose(-1, -2), 1e-6
        return all_rightmost((value - mirrored).abs() <= tolerance + 1e-5 * mirrored.abs(), 2)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        symmetric = super().check(value)
        lowest = eigvalsh(where(symmetric[..., None, None], value, 0))  # those of other matrices might not converge
        return symmetric & (lowest >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return super().check(value) & (cholesky_ex(value).info == 0)


class _OfAnother(Constraint):
    """A constraint by another; it is discrete as that one is, and has its events."""

    base_constraint: Constraint

    is_discrete = formula(lambda c: c.base_constraint.is_discrete)
    event_dim = formula(lambda c: c.base_constraint.event_dim)


class _IndependentConstraint(_OfAnother):
    """A constraint of each element, as one of events with more axes."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        if reinterpreted_batch_ndims < 0:
            raise ValueError(f"independent: {reinterpreted_batch_ndims} axes; want 0 or more")
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    event_dim = formula(lambda c: c.base_constraint.event_dim + c.reinterpreted_batch_ndims)

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise ValueError(f"{self!r}: an event has {self.event_dim} axes, got a value of shape {tuple(value.shape)}")
        return all_rightmost(self.base_constraint.check(value), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str: return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_OfAnother):
    """The support of a mixture: the intersection of its components' supports."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    def check(self, value: Tensor) -> Tensor: return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)
    def __repr__(self) -> str: return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _OfParts(Constraint):
    """Constraints of parts of a value."""

    cseq: list[Constraint]

    is_discrete = formula(lambda c: any([part.is_discrete for part in c.cseq]))
    event_dim = formula(lambda c: max([part.event_dim for part in c.cseq]))


class _Stack(_OfParts):
    """Constraints of the slices along `dim`, one for each."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most event axes of a constraint; at least enough to include `dim`."""
        most = super().event_dim
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Tensor) -> Tensor:
        return _stacked([c.check(value.select(self.dim, i)) for i, c in enumerate(self.cseq)], self.dim)


class _Cat(_OfParts):
    """Constraints of the parts along `dim`, of the extents `lengths`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Tensor) -> Tensor:
        parts = zip(self.cseq, parts_along(value, self.dim, self.lengths), strict=True)
        return _joined([c.check(part) for c, part in parts], self.dim)


# ---- their names ----
_DependentProperty = dependent_property
independent, cat, stack, multinomial = _IndependentConstraint, _Cat, _Stack, _Multinomial
integer_interval, interval, half_open_interval = _IntegerInterval, _Interval, _HalfOpenInterval
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
dependent, real, boolean, one_hot, simplex = _Dependent(), _Real(), _Boolean(), _OneHot(), _Simplex()
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
positive, nonnegative, unit_interval = _GreaterThan(0.0), _GreaterThanEq(0.0), _Interval(0.0, 1.0)
real_vector = independent(real, 1)
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
