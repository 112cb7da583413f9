"""Symbolic sizes: integers of which a computation makes expressions, and guards for what it asks of them.

A `Size` is a polynomial over *symbols*: sizes of inputs, and integers that are no polynomials of others, as quotients. It
answers comparisons by its value in the example at hand, and each answer becomes a *guard*, unless it holds for all sizes from
2 on. For other sizes that pass the guards the computation would take the same steps, so its results are the same expressions.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partialmethod
from math import inf
from typing import Any

LEAST = 2  # value of an input: extents 0 and 1 are other structures
Terms = tuple[tuple[tuple[int, ...], int], ...]  # of a polynomial: symbols that are multiplied, and their coefficient; sorted
Bounds = tuple[float, float]
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
}


class NotSymbolicError(Exception):
    """A computation needs an integer that is known only when the guards have passed, or one of another computation."""


class Symbols:
    """The symbols of one computation, and the lines of Python that compute them and check the guards.

    Attributes:
        values, bounds: of each symbol, in the example (None for what is known only after the guards) and for all sizes.
        lines: up to the last guard, those that read the inputs from parameters among them, and
        effects: those after it, which call functions for each sizes anew, as to allocate memory.
        constants: objects that the lines name.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.bounds: list[Bounds] = []
        self.lines: list[str] = []
        self.effects: list[str] = []
        self.constants: dict[str, Any] = {"__name__": __name__}  # of the function
        self.results: dict[Any, Any] = {}  # of arithmetic, by its operands; of expressions and questions, by their text
        self._is_compiled = False
        self.keys: dict[Any, Any] = {}  # of tables

    def _symbol(self, lines: list[str], text: str, value: Any, bounds: Bounds) -> Any:
        """The symbol for what `text` computes, in a line more."""
        name = f"s{len(self.values)}"
        self._record(lines, f"{name} = {text}")
        self.values.append(value)
        self.bounds.append(bounds)
        return Real(self, name, value) if value.__class__ is float else Size(self, (((len(self.values) - 1,), 1),))

    def once(self, key: Any, compute: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns, computed once for a key."""
        found = self.results.get(key)
        if found is None:
            found = self.results[key] = compute(*arguments)
        return found

    def input(self, text: str, value: float, *others: float) -> Any:
        """A symbol for a size, or for a number in floating point, read by `text`; `others` are its values in other examples."""
        least, most = min(value, *others, inf), max(value, *others, -inf)
        if most <= -LEAST and value.__class__ is int:
            return -self.input(f"-{text}", -value, -least)
        low = LEAST if least >= LEAST else 0 if least >= 0 else -inf
        symbol = self._symbol(self.lines, text, value, (low, inf))
        if value.__class__ is int and low != -inf:
            self.ask(f"{symbol.text} < {low}", False)
        return symbol

    def derived(self, text: str, value: Any, bounds: Bounds = (-inf, inf)) -> Any:
        """The symbol for an expression."""
        return self.once(text, self._symbol, self.lines, text, value, bounds)

    def effect(self, function: str, *arguments: Any) -> Any:
        """The symbol for what a function returns after the guards."""
        return self._symbol(self.effects, f"{function}({', '.join(map(self.text, arguments))})", None, (-inf, inf))

    def ask(self, text: str, answer: bool) -> bool:
        """Guard the answer to a question."""
        if text not in self.results:
            self.results[text] = answer
            self._record(self.lines, f"if {'not ' * answer}({text}): return {len(self.lines)}")
        return answer

    def _record(self, lines: list[str], line: str) -> None:
        if self._is_compiled:  # its function would not check it
            raise NotSymbolicError("a size of a computation that has ended")
        lines.append(line)

    def text(self, thing: Any) -> str:
        """The expression of anything that may contain symbolic numbers."""
        kind = thing.__class__
        if kind is Size or kind is Real:
            if thing.symbols is not self:
                raise NotSymbolicError("a size of another computation")
            return f"({thing.text})"
        if kind is int or (kind is float and math.isfinite(thing)):
            return repr(thing)
        if kind is dict:
            return f"{{{', '.join([f'{name!r}: {self.text(value)}' for name, value in thing.items()])}}}"
        if isinstance(thing, list | tuple):
            parts = "".join([f"{self.text(part)}, " for part in thing])
            return f"[{parts}]" if kind is list else f"({parts})" if kind is tuple else f"{self.name(kind)}({parts})"
        return self.name(thing)

    def name(self, thing: Any) -> str:
        """A name for an object."""
        name = f"c{id(thing)}"
        self.constants[name] = thing
        return name

    def compiled(
        self, *parameters: str, beside: Iterable[float] = (), check: str = "True", result: str, is_checked: bool = False,
    ) -> Callable[..., Any]:
        """The function of `parameters` that returns a result; the number of a guard that fails, `check` the last of them."""
        # Tables tell keys of other hashes apart without asking: symbolic numbers, and those `beside` them. 5 is not 5.0 there.
        # Those that are equal in the example may be told apart only where its result `is_checked`, and must be equal again.
        equal = {(number.__class__, number): repr(number if number.__class__ is int else repr(number)) for number in beside}
        keys = [*equal.values()]
        for key in [key for key in self.keys.values() if key.value is not None]:
            text = key.text if key.__class__ is Size else f"repr({key.text})"
            if is_checked and (first := equal.setdefault((key.value.__class__, key.value), text)) is not text:
                self.ask(f"{text} == {first}", True)
            else:
                keys.append(text)
        self.ask(f"len({{None, {', '.join(keys)}}}) > {len(keys)} and ({check})", True)
        lines = [*self.lines, *self.effects, f"return {result}"]
        exec("\n ".join([f"def fill({', '.join(parameters)}):", *lines]), self.constants)
        function: Callable[..., Any] = self.constants.pop("fill")
        # Caches of the passes may keep sizes for long; what only the function needs is not theirs to keep.
        self._is_compiled, self.lines, self.effects, self.constants, self.results, self.keys = True, [], [], {}, {}, {}
        return function


def _by(sign: str, swapped: bool = False) -> Any:
    return lambda self, other: self.computed(sign, other, swapped)


class Number:
    """A symbolic number, whose operations and comparisons are `computed`."""

    __slots__ = ("symbols", "value")
    __array_ufunc__ = None  # NumPy leaves arithmetic to it, which refuses arrays

    __add__, __sub__, __mul__, __truediv__, __pow__ = _by("+"), _by("-"), _by("*"), _by("/"), _by("**")
    __radd__, __rsub__, __rmul__, __rtruediv__ = _by("+", True), _by("-", True), _by("*", True), _by("/", True)
    __lt__, __le__, __gt__, __ge__ = _by("<"), _by("<="), _by(">"), _by(">=")

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ not in (Size, Real, int, bool, float):
            return NotImplemented
        if self.symbols._is_compiled or getattr(other, "symbols", self.symbols) is not self.symbols:
            return other is self  # in a table that outlives a computation
        return other is self or self.computed("==", other)

    def __hash__(self: Any) -> int:
        key = self.terms if self.__class__ is Size else self.text
        self.symbols.keys[key] = self
        return hash((id(self.symbols), key))

    def __bool__(self) -> bool:
        return bool(self != 0)


class Size(Number):
    """A polynomial with integer coefficients; one without symbols is an int."""

    __slots__ = ("bounds", "terms")

    def __init__(self, symbols: Symbols, terms: Terms) -> None:
        self.symbols, self.terms = symbols, terms
        products = [[coefficient, *[symbols.values[symbol] for symbol in product]] for product, coefficient in terms]
        self.value = None if any([None in product for product in products]) else sum(map(math.prod, products))
        self.bounds = _bounds(symbols.bounds, terms)

    @property
    def text(self) -> str:
        return " + ".join(["*".join([str(coefficient)] * (coefficient != 1 or not product) + [f"s{s}" for s in product])
                           for product, coefficient in self.terms])

    @property
    def known(self) -> Any:
        """The value in the example."""
        if self.value is None:
            raise NotSymbolicError("a size that is known only after the guards")
        return self.value

    def _made(self, terms: Mapping[tuple[int, ...], int]) -> Any:
        kept = tuple(sorted([term for term in terms.items() if term[1]]))
        if len(kept) <= 1 and not any([product for product, _ in kept]):
            return kept[0][1] if kept else 0
        return self.symbols.once(kept, Size, self.symbols, kept)

    def terms_of(self, other: Any) -> Terms | None:
        """The terms of another operand; None unless it is an integer."""
        if other.__class__ is Size:
            if other.symbols is not self.symbols:
                raise NotSymbolicError("a size of another computation")
            return other.terms  # type: ignore[no-any-return]
        return (((), int(other)),) if other.__class__ is int or other.__class__ is bool else None

    def computed(self, sign: str, other: Any, swapped: bool = False) -> Any:
        """An operation's or a comparison's result."""
        if sign == "-":
            return -self + other if swapped else self + -1 * other
        if sign[0] in "<>=" and other.__class__ is float and abs(other) == inf:
            return _SIGNS[sign](0, other)
        terms = self.terms_of(other)
        if terms is None or sign in ("/", "**"):
            return Real(self.symbols, self.text, self.known).computed(sign, other, swapped)
        return self.symbols.once((sign, self.terms, terms), self._polynomial if sign in "+*" else self._asked, sign, other)

    def _polynomial(self, sign: str, other: Any) -> Any:
        found = dict(self.terms) if sign == "+" else {}
        for one, a in self.terms if sign == "*" else [((), 1)]:
            for two, b in self.terms_of(other) or ():
                product = tuple(sorted(one + two))
                found[product] = found.get(product, 0) + a * b
        return self._made(found)

    def __neg__(self) -> Any:
        return self * -1

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __divmod__(self, other: Any) -> Any:
        terms = self.terms_of(other)
        if terms is None:
            raise NotSymbolicError("a quotient by a number that is no size")
        return self.symbols.once(("/", self.terms, terms), self._quotient, other)

    def _quotient(self, other: Any) -> tuple[Any, Any]:
        quotient, rest = self.divided(other)
        (low, high), (least, most) = bounds_of(rest), bounds_of(other)
        if not (0 <= low <= high < least or low == high == 0):
            ends = 0 if bounds_of(self)[0] >= 0 else -inf, inf if bounds_of(self)[1] >= 0 else -1
            if least == most:
                ends = tuple([end if math.isinf(end) else end // least for end in bounds_of(self)])  # type: ignore[assignment]
            text = f"({self.text}) // {self.symbols.text(other)}"
            quotient = self.symbols.derived(text, self.known // value_of(other), ends if least > 0 else (-inf, inf))
            rest = self - quotient * other
        return quotient, rest

    def divided(self, other: Any) -> tuple[Any, Any]:
        """The quotient by a single term as far as it is a polynomial, and the rest."""
        whole, rest = {}, dict(self.terms)
        terms = self.terms_of(other) or ()
        divisor, by = terms[0] if len(terms) == 1 else ((), 0)
        for product, coefficient in self.terms if by else ():
            left = Counter(product)
            left.subtract(divisor)
            if not coefficient % by and min(left.values(), default=0) >= 0:
                whole[tuple(left.elements())] = rest.pop(product) // by
        return self._made(whole), self._made(rest)

    def __rdivmod__(self, other: int) -> tuple[Any, Any]:
        return divmod(Size(self.symbols, (((), other),)), self)

    def _part(self, other: Any, part: int, swapped: bool = False) -> Any:
        return (divmod(other, self) if swapped else divmod(self, other))[part]

    __floordiv__, __mod__ = partialmethod(_part, part=0), partialmethod(_part, part=1)
    __rfloordiv__, __rmod__ = partialmethod(_part, part=0, swapped=True), partialmethod(_part, part=1, swapped=True)

    def _asked(self, sign: str, other: Any) -> Any:
        difference = self - other
        low, high = bounds_of(difference)
        answers = (low == high == 0, low <= 0 <= high) if sign == "==" else (_SIGNS[sign](low, 0), _SIGNS[sign](high, 0))
        if answers[0] == answers[1]:
            return answers[0]
        return self.symbols.ask(f"{difference.text} {sign} 0", _SIGNS[sign](difference.known, 0))

    def __index__(self) -> int:
        """The integer itself, which is guarded."""
        self.symbols.ask(f"{self.text} == {self.known}", True)
        return int(self.known)

    def __repr__(self) -> str:
        return str(int(self))


class Real(Number):
    """A number in floating point that depends on sizes."""

    __slots__ = ("text",)

    def __init__(self, symbols: Symbols, text: str, value: float) -> None:
        self.symbols, self.text, self.value = symbols, text, value

    def computed(self, sign: str, other: Any, swapped: bool = False) -> Any:
        """An operation's or a comparison's result."""
        if other.__class__ not in (Size, Real, int, bool, float):
            return NotImplemented
        a, b = (other, self) if swapped else (self, other)
        text, value = f"{self.symbols.text(a)} {sign} {self.symbols.text(b)}", _SIGNS[sign](value_of(a), value_of(b))
        return self.symbols.ask(text, value) if value.__class__ is bool else self.symbols.derived(text, value)

    def __round__(self) -> Any:
        return self.symbols.derived(f"round({self.text})", round(self.value))

    def __float__(self) -> float:
        """The number itself, which is guarded."""
        self.symbols.ask(f"{self.text} == {self.value!r}", True)
        return float(self.value)

    def __repr__(self) -> str:
        """Its name, which no other number has: a key of tables, too."""
        self.symbols.keys[self.text] = self
        return f"<{self.text} of {id(self.symbols)}>"


def value_of(number: Any) -> Any:
    """The value of a number in the example; also of those in tuples and lists."""
    if number.__class__ is tuple or number.__class__ is list:
        return type(number)(map(value_of, number))
    return number.known if number.__class__ is Size else number.value if number.__class__ is Real else number


def bounds_of(number: Any) -> Bounds:
    """The least and the greatest value of a number for all sizes."""
    if number.__class__ is Size:
        return number.bounds  # type: ignore[no-any-return]
    return (-inf, inf) if number.__class__ is Real else (number, number)


def _bounds(of: Sequence[Bounds], terms: Terms) -> Bounds:
    """The least and the greatest value of a polynomial over symbols of these bounds."""
    low = high = 0.0
    for product, coefficient in terms:
        factors = [of[symbol] for symbol in product]
        if any([start < 0 for start, _ in factors]):
            return -inf, inf
        ends = [coefficient * math.prod([factor[end] for factor in factors]) if (0, 0) not in factors else 0 for end in (0, 1)]
        low, high = low + min(ends), high + max(ends)
    return low, high
