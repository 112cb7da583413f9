"""Optimizer update rules: written for one parameter, applied to all parameters of a group."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import repeat

from genesis.ir.dtypes import DType
from genesis.ir.graph import Value
from genesis.ops.complex_values import complex_value, imag_value, real_value
from genesis.ops.registry import Operation, cast, composite, widened

Scalar = Value | float  # a number that a schedule may change: an argument of the compiled program
Results = tuple[Value | None, ...]


def update_rule(rule: Callable[..., Results]) -> Operation:
    """Decorator: `rule` becomes the operation of its name, one step of an optimizer over all of a group's parameters.

    `rule` takes Values: a parameter, its gradient, and its state tensors (None if the settings do not use them); then numbers
    annotated `Scalar`, and static settings. It returns the new parameter and the new state tensors. It computes in the compute
    dtype; results are rounded to the parameter's dtype.

    The operation takes sequences instead of Values (empty for None) and returns all new parameters, then all new values of
    each kind. A step over any number of parameters is thus one call, which lowering fuses into a kernel per parameter. A
    complex parameter is updated as two real ones, its parts; its state is complex accordingly.
    """
    kinds = [parameter.annotation for parameter in inspect.signature(rule).parameters.values()]
    tensors = sum([kind.startswith("Value") for kind in kinds])

    @wraps(rule)
    def step(*arguments: Sequence[Value] | Scalar) -> tuple[Value, ...]:
        lists, settings = arguments[:tensors], arguments[tensors:]
        models: Sequence[Value] = lists[0]  # type: ignore[assignment]
        rows = zip(models, *[values or repeat(None) for values in lists[1:]], strict=False)  # type: ignore[call-overload]
        updates = [_moved(rule, [v if v is None else widened(v) for v in row], settings) for row in rows]
        kinds = zip(*updates, strict=True)
        return tuple([cast(v, p.dtype) for kind in kinds for v, p in zip(kind, models, strict=True) if v is not None])

    numbers = [place for place, kind in enumerate(kinds) if kind == "Scalar"]
    return composite(rule.__name__, numbers, takes_complex=True, method=False, public=False)(step)


def _moved(rule: Callable[..., Results], row: Sequence[Value | None], settings: Sequence[object]) -> Results:
    """`rule` applied to a parameter, or to both parts of a complex one."""
    if row[0] is None or not row[0].dtype.is_complex:
        return rule(*row, *settings)
    x, y = [rule(*[v if v is None else part(v) for v in row], *settings) for part in (real_value, imag_value)]
    return tuple([None if a is None or b is None else complex_value(a, b) for a, b in zip(x, y, strict=True)])


def in_both_parts(number: float, dtype: DType) -> float | complex:
    """The initial value of a state, for both parts if the parameter is complex: it is updated as two real numbers."""
    return complex(number, number) if dtype.is_complex else number


def is_literal(x: Scalar, literal: float) -> bool:
    """True for the Python number `literal`, which a rule may simplify away."""
    return not isinstance(x, Value) and x == literal


def descent(parameter: Value, gradient: Value, weight_decay: Scalar, maximize: bool) -> Value:
    """The direction to descend: the gradient, negated if maximizing, plus `weight_decay` times the parameter."""
    direction = -gradient if maximize else gradient
    return direction if is_literal(weight_decay, 0) else direction + parameter * weight_decay


def average_of(average: Value, value: Value, kept: Scalar, fresh: Scalar) -> Value:
    """A running average: kept * average + fresh * value."""
    return average * kept + value * fresh


def shrunk(parameter: Value, kept: Scalar) -> Value:
    """The parameter after decoupled weight decay."""
    return parameter if is_literal(kept, 1) else parameter * kept
