"""A Python number among the arguments of a traced function: data as long as only arithmetic reads it.

While `genesis.compile` records, arguments that are numbers become Numbers, which replays may replace. Arithmetic with a tensor
makes a slot; any other read (a comparison, `float()`, `range()`, a format) is reported to the recorder, for which the number is
then a constant. It is not a subclass of float, as C code would read that unseen.
"""

from __future__ import annotations

import dataclasses
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

    def __copy__(self) -> Number: return self
    def __deepcopy__(self, memo: object) -> Number: return self

    def __reduce__(self) -> tuple[type, tuple[Any]]:
        return type(self.value), (self.fixed(),)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fixed(), name)


def number_fixed(value: Any) -> Any:
    """`value`; for a Number, the plain number, which is constant from now on."""
    return value.fixed() if type(value) is Number else value


def number_given(value: Any) -> Any:
    """`value`; for a Number, the plain number."""
    return value.value if type(value) is Number else value


def plain(value: Tree, taken: Callable[[Any], Any] = number_fixed, met: dict[int, Any] | None = None) -> Tree:
    """`value` with `taken(part)` in place of each part of it: by default, a plain number, constant from now on, for a Number.

    Lists, dicts and dataclasses keep their identity, and may contain themselves. `met`: the results so far, by ids.
    """
    met = {} if met is None else met
    if id(value) in met:
        return met[id(value)]
    made = taken(value)
    if made is not value:
        return made
    met[id(value)] = value
    if isinstance(value, tuple):
        items = [plain(item, taken, met) for item in value]
        if any(a is not b for a, b in zip(items, value, strict=True)):
            met[id(value)] = tuple.__new__(type(value), items)
    elif isinstance(value, list | dict):
        for key, item in enumerate(value) if isinstance(value, list) else [*value.items()]:
            if (made := plain(item, taken, met)) is not item:
                value[key] = made
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name, item in [*getattr(value, "__dict__", {}).items()]:
            if (made := plain(item, taken, met)) is not item:
                object.__setattr__(value, name, made)
    return met[id(value)]


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
