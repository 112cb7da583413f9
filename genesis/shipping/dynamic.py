"""Dynamic sizes: a graph's numbers as functions of them.

A graph for all sizes is derived from graphs of a few: the call is recorded at several sizes, and each number that differs among
the graphs (an extent, a stride, an offset, a mean's divisor) is fitted by a polynomial of the sizes, in exact arithmetic.
Further recordings, at the ends of the range among them, must agree with the polynomials.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from genesis.ir.graph import Node

_DEGREE = 2  # of a size in a polynomial: attention scores grow with the square of the sequence length
_FAR = 4  # recordings run at up to this multiple of the example's size, within the range


class Dim:
    """A dynamic size from `min` to `max` (None for no bound); axes with the same Dim have the same size.

    >>> Dim("batch", max=64)
    Dim('batch', min=1, max=64)
    """

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if max is not None and max < (min or 1):
            raise ValueError(f"Dim: {name} from {min} to {max}; want a range of sizes")
        self.__name__ = name
        self.min = 1 if min is None else min
        self.max = max

    def __repr__(self) -> str:
        return f"Dim({self.__name__!r}, min={self.min}, max={self.max})"


class Formula(NamedTuple):
    """A number as a function of sizes: `kind` of a polynomial with these terms, each a coefficient and a degree per size."""

    kind: str
    terms: tuple[tuple[Fraction, tuple[int, ...]], ...]

    def at(self, sizes: Sequence[int]) -> int | float:
        """The number at these sizes."""
        value = sum((c * math.prod(s**d for s, d in zip(sizes, degrees, strict=True)) for c, degrees in self.terms), Fraction())
        return _KINDS[self.kind](value)


def _root(value: Fraction) -> float:
    return math.sqrt(value)


_KINDS: dict[str, Callable[[Fraction], Any]] = {
    "int": int, "float": float, "inverse": lambda value: 1 / float(value), "root": _root,
    "inverse root": lambda value: 1 / _root(value),
    "inverse root, as a power": lambda value: float(value) ** -0.5,  # rounds differently
}
_UNDONE: dict[str, Callable[[Any], float]] = {
    "float": lambda v: v, "inverse": lambda v: 1 / v, "root": lambda v: v * v, "inverse root": lambda v: 1 / (v * v),
    "inverse root, as a power": lambda v: 1 / (v * v)}


class Sizes:
    """The dynamic sizes: dims, the axes of argument tensors that have them, the examples' sizes, and the formulas by
    (node, number within it); node -1 has the graph's scalars."""

    def __init__(
        self, dims: Sequence[Dim] = (), axes: Sequence[tuple[int, int, int]] = (), examples: tuple[int, ...] = (),
        formulas: dict[tuple[int, int], Formula] | None = None,
    ) -> None:
        self.dims = list(dims)
        self.axes = list(axes)  # (argument tensor, axis, dim)
        self.examples = examples
        self.formulas = formulas or {}

    def of(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The sizes of arguments with these shapes. Raises ValueError if they differ, or are out of range."""
        found: dict[int, int] = {}
        for tensor, axis, dim in self.axes:
            shape, one = shapes[tensor], self.dims[dim]
            size = shape[axis] if axis < len(shape) else 0
            if found.setdefault(dim, size) != size:
                raise ValueError(f"{one.__name__} is {found[dim]} in one argument and {size} in another; want equal sizes")
            if size < one.min or (one.max is not None and size > one.max):
                raise ValueError(f"{one.__name__} is {size}; the program was exported for {one.min} to {one.max or 'any'}")
        return tuple(found[dim] for dim in range(len(self.dims)))

    def described(self, sizes: Sequence[int]) -> str:
        """The sizes by name, for a message."""
        return ", ".join(f"{dim.__name__}={size}" for dim, size in zip(self.dims, sizes, strict=True))

    def shape(self, tensor: int, shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The expected shape of an argument's tensor."""
        given = {axis: sizes[dim] for one, axis, dim in self.axes if one == tensor}
        return tuple(given.get(axis, extent) for axis, extent in enumerate(shape))

    def at(self, sizes: tuple[int, ...], nodes: Sequence[Node], numbers: Sequence[float]) -> tuple[list[Node], list[float]]:
        """The graph at these sizes, from the graph at the examples' sizes."""
        made, scalars = [*nodes], [*numbers]
        by_node: dict[int, dict[int, Formula]] = {}
        for (node, number), formula in self.formulas.items():
            by_node.setdefault(node, {})[number] = formula
        for index, formulas in by_node.items():
            if index < 0:
                for number, formula in formulas.items():
                    scalars[number] = formula.at(sizes)
                continue
            one = nodes[index]
            made[index] = _with_numbers(
                one, [formulas[k].at(sizes) if k in formulas else v for k, v in enumerate(numbers_of(one))])
        return made, scalars

    def varying(self, index: int, node: Node) -> Node:
        """A node of the graph with a Formula for each number that depends on sizes."""
        return _with_numbers(node, [self.formulas.get((index, k), v) for k, v in enumerate(numbers_of(node))])

    def __str__(self) -> str:
        return "dynamic: " + ", ".join(
            f"{dim.__name__} from {dim.min} to {dim.max or 'any'}, here {size}"
            for dim, size in zip(self.dims, self.examples, strict=True))


def samples(dims: Sequence[Dim], examples: Sequence[int]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The sizes for fitting formulas, the examples' first, and those for checking them."""
    grids, ends = [], []
    for dim, example in zip(dims, examples, strict=True):
        most = dim.max or _FAR * max(example, 4)
        near = [s for s in (example, example + 1, example + 2, example + 3, example - 1, example - 2)
                if max(dim.min, 2) <= s <= most]
        grids.append(near[: _DEGREE + 1] or [example])
        ends.append((dim.min, min(most, _FAR * max(example, 4))))
    grid = [*itertools.product(*grids)]
    check = dict.fromkeys([*zip(*ends, strict=True), *itertools.product(*ends)])
    return grid, [point for point in check if point not in grid]


def fitted(grid: Sequence[tuple[int, ...]], values: Sequence[Any]) -> Formula | None:
    """The formula with these values at these sizes; None if there is none."""
    return _fitted((*grid,), (*values,), all(type(value) is int for value in values))


@lru_cache(1 << 12)  # the layers of a model share numbers
def _fitted(grid: tuple[tuple[int, ...], ...], values: tuple[Any, ...], exact: bool) -> Formula | None:
    kinds = ["int"] if exact else [*_UNDONE]
    degrees = [*itertools.product(*[range(len({point[k] for point in grid})) for k in range(len(grid[0]))])]
    for kind in kinds:
        try:
            wanted = [Fraction(v) if kind == "int" else Fraction(_UNDONE[kind](v)).limit_denominator(1 << 16) for v in values]
        except (ZeroDivisionError, OverflowError, ValueError):
            continue
        rows = [[Fraction(math.prod(s**d for s, d in zip(point, degree, strict=True))) for degree in degrees] for point in grid]
        solution = _solved(rows, wanted)
        formula = Formula(kind, tuple((c, d) for c, d in zip(solution, degrees, strict=True) if c))
        try:
            if [formula.at(point) for point in grid] == [*values]:
                return formula
        except (ZeroDivisionError, ValueError):
            continue
    return None


def _solved(rows: list[list[Fraction]], wanted: list[Fraction]) -> list[Fraction]:
    """The solution of a regular system, by elimination."""
    table = [[*row, value] for row, value in zip(rows, wanted, strict=True)]
    for k in range(len(table)):
        pivot = next(r for r in range(k, len(table)) if table[r][k])
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [value / table[k][k] for value in table[k]]
        for r in range(len(table)):
            if r != k and table[r][k]:
                table[r] = [a - table[r][k] * b for a, b in zip(table[r], table[k], strict=True)]
    return [row[-1] for row in table]


# ---- the numbers of a node ----
def numbers_of(node: Node) -> list[int | float]:
    """The extents and the numbers among a node's attributes, in order."""
    return [*_numbers(node.shape), *[number for value in node.attrs.values() for number in _numbers(value)]]


def _with_numbers(node: Node, numbers: Sequence[Any]) -> Node:
    """The node with other numbers."""
    values = iter(numbers)
    shape = tuple(_filled(node.shape, values))
    return Node(node.op, node.inputs, {name: _filled(value, values) for name, value in node.attrs.items()}, shape, node.dtype)


def structure_of(node: Node) -> tuple[Any, ...]:
    """Everything else of a node: equal for nodes that differ only in numbers."""
    marks = itertools.repeat("number")
    attrs = [(name, _filled(value, marks)) for name, value in node.attrs.items()]
    return node.op, node.inputs, node.dtype, _filled(node.shape, marks), attrs


def _numbers(value: Any) -> Iterator[int | float]:
    if type(value) in (int, float):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)


def _filled(value: Any, numbers: Iterator[Any]) -> Any:
    if type(value) in (int, float):
        return next(numbers)
    return tuple(_filled(item, numbers) for item in value) if isinstance(value, tuple) else value
