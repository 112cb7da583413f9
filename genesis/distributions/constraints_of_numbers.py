"""Constraints of single numbers."""

from __future__ import annotations

from dataclasses import dataclass

from genesis.distributions.constraint import Constraint
from genesis.distributions.utils import Operand
from genesis.tensor.handle import Tensor


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
