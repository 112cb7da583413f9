"""The base of constraints, and constraints that depend on a distribution's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.distributions.utils import Formula, formula
from genesis.ir.replayable import Described
from genesis.tensor.handle import Tensor


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

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


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
