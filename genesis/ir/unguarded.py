"""Functions of sizes that need no guard: for symbolic sizes (`symbolic_sizes.py`), their results are symbols themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from genesis.ir.graph import Node
from genesis.ir.symbolic_sizes import Bounds, Real, Size, Symbols, bounds_of, value_of


def symbols_in(*things: Any) -> Symbols | None:
    """The symbols of the first symbolic number among `things` and within tuples and lists; None if there is none."""
    for thing in things:
        kind = thing.__class__
        if kind is Size or kind is Real:
            return thing.symbols  # type: ignore[no-any-return]
        if (kind is tuple or kind is list) and (found := symbols_in(*thing)) is not None:
            return found
    return None


def symbols_of(nodes: Iterable[Node]) -> Symbols | None:
    """The symbols of a graph's sizes, if they are symbolic."""
    return next((extent.symbols for node in nodes for extent in node.shape if extent.__class__ is Size), None)  # type: ignore[attr-defined]


def as_named(number: Any) -> Any:
    """A number that stands in tables under its text: the text of a symbolic size is that of an integer."""
    return int(number) if number.__class__ is Size else number


def minimum(a: Any, b: Any) -> Any:
    """The lesser of two sizes.

    >>> minimum(2, 3), maximum(2, 3), over(2, 3, 5, 7)
    (2, 3, 7)
    """
    symbols = symbols_in(a, b)
    if symbols is None:
        return a if a <= b else b
    (low, high), (least, most) = bounds_of(a), bounds_of(b)
    if high <= least or most <= low:
        return a if high <= least else b
    bounds = min(low, least), min(high, most)
    return symbols.derived(f"min({symbols.text(a)}, {symbols.text(b)})", min(value_of(a), value_of(b)), bounds)


def maximum(a: Any, b: Any) -> Any:
    """The greater of two sizes."""
    return -minimum(-a, -b)


def over(size: Any, limit: Any, above: Any, below: Any) -> Any:
    """`above` if a size is greater than a limit, else `below`."""
    symbols = symbols_in(size, limit)
    if symbols is None:
        return above if size > limit else below
    low, high = bounds_of(size - limit)
    if low > 0 or high <= 0:
        return above if low > 0 else below
    (low, high), (least, most) = bounds_of(above), bounds_of(below)
    if low == high == least == most:
        return above
    texts = [*map(symbols.text, (above, size, limit, below))]
    value = value_of(above if value_of(size) > value_of(limit) else below)
    return symbols.derived("{} if {} > {} else {}".format(*texts), value, (min(low, least), max(high, most)))


def may_exceed(size: Any, limit: int) -> bool:
    """Whether a size is greater than a limit; for a symbolic one, whether it is for any sizes."""
    return bool(bounds_of(size)[1] > limit)


def gcd(a: Any, b: Any) -> Any:
    """The greatest common divisor of two sizes."""
    if symbols_in(a, b) is None:
        return math.gcd(a, b)
    for size, other in (a, b), (b, a):
        if size.__class__ is Size and bounds_of(size.divided(other)[1]) == (0, 0):
            return abs(other)
    return computed(math.gcd, a, b, bounds=(1, inf))


def computed(function: Callable[..., Any], *arguments: Any, bounds: Bounds = (-inf, inf)) -> Any:
    """The number that a function computes, within `bounds`."""
    symbols = symbols_in(*arguments)
    if symbols is None:
        return function(*arguments)
    text = f"{symbols.name(function)}({', '.join(map(symbols.text, arguments))})"
    return symbols.derived(text, function(*value_of(arguments)), bounds)
