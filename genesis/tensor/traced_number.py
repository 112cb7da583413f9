"""A Python number among the arguments of a traced function: data as long as only arithmetic reads it.

While `genesis.compile` records, arguments that are numbers become Numbers, which replays may replace. Arithmetic with a tensor
makes a slot; any other read (a comparison, `float()`, `range()`, a format) is reported to the recorder, for which the number is
then a constant. It is not a subclass of float, as C code would read that unseen.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from genesis.ir.annotations import AnyFunction, Arguments, Tree


class Number:
    """`value`, and the `source` from which a replay re-reads it."""

    __slots__ = ("recorder", "source", "value")

    def __init__(self, value: float, source: Arguments, recorder: Any) -> None:
        self.value = value
        self.source = source
        self.recorder = recorder
        recorder.numbers.append(self)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.value)

    def fixed(self) -> Any:
        """The plain number, which is constant from now on."""
        self.recorder.fix(self.source)
        return self.value

    def __neg__(self) -> Number:
        return Number(operator.neg(self.value), ("result", operator.neg, self.source), self.recorder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fixed(), name)


def plain(argument: Tree) -> Tree:
    """`argument` with each Number in it as a plain number, which is constant from now on."""
    if type(argument) in (list, tuple) and any(map(_has_number, argument)):
        return type(argument)(map(plain, argument))
    return number_fixed(argument)


def number_fixed(value: Any) -> Any:
    """`value`; for a Number, the plain number, which is constant from now on."""
    return value.fixed() if type(value) is Number else value


def _has_number(argument: Tree) -> bool:
    return type(argument) is Number or (type(argument) in (list, tuple) and any(map(_has_number, argument)))


def _arithmetic(function: AnyFunction, reflected: bool) -> Callable[[Number, Any], Any]:
    def method(self: Number, other: Any) -> Any:
        number = type(other) is Number
        if not number and type(other) not in (int, float):
            if isinstance(other, int | float | complex):
                return function(other, self.fixed()) if reflected else function(self.fixed(), other)
            return NotImplemented  # a tensor's own method makes a slot of this
        value = other.value if number else other
        result = function(value, self.value) if reflected else function(self.value, value)
        if type(result) not in (int, float):
            return function(plain(other), self.fixed()) if reflected else function(self.fixed(), plain(other))
        operands = (other.source if number else ("given", other)), self.source
        return Number(result, ("result", function, *(operands if reflected else operands[::-1])), self.recorder)

    return method


def _read(function: AnyFunction) -> AnyFunction:
    return lambda self, *others: function(self.fixed(), *map(plain, others))


for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(Number, f"__{_name}__", _arithmetic(getattr(operator, _name), False))
    setattr(Number, f"__r{_name}__", _arithmetic(getattr(operator, _name), True))
for _name, _function in {
    **{name: getattr(operator, name) for name in (
        "lt", "le", "eq", "ne", "gt", "ge", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift", "index", "invert",
        "pos", "abs")},
    "bool": bool, "int": int, "float": float, "complex": complex, "hash": hash, "repr": repr, "str": str, "format": format,
    "round": round, "trunc": int, "divmod": divmod,
}.items():
    setattr(Number, f"__{_name.rstrip('_')}__", _read(_function))
for _name in ("floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift"):
    _function = getattr(operator, _name)
    setattr(Number, f"__r{_name.rstrip('_')}__", _read(lambda self, other, f=_function: f(other, self)))
