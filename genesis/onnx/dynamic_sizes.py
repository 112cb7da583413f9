"""Dynamic axes by the names of a model's inputs, and numbers that depend on them, which the model computes from the inputs'
shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import TensorProto

from genesis.ir.annotations import AnyFunction, Tree
from genesis.onnx.layouts import ViewOperator, steps_at_sizes
from genesis.ops.layout import Layout, layout_in
from genesis.pytree import map_tree
from genesis.shipping.dynamic import Formula, Sizes, samples
from genesis.shipping.export import argument_names
from genesis.shipping.graph_of_call import CallGraph
from genesis.shipping.trees import described, tensors_of
from genesis.tensor.handle import Tensor

DynamicAxes = Mapping[str, Mapping[int, str] | Sequence[int]]


def dynamic_of(
    axes: DynamicAxes, function: AnyFunction, args: Sequence[Any], kwargs: Mapping[str, Any],
    input_names: Sequence[str] | None, output_names: Sequence[str] | None,
) -> list[Tree]:
    """The argument `dynamic` for `genesis.export`. Raises ValueError for a name that is neither an input nor a result.

    Axes of results are ignored, because they follow from those of inputs.
    """
    paths = _paths(argument_names(function, len(args)), args, kwargs)
    names = [*input_names] if input_names else paths
    results = [*output_names] if output_names else []
    unknown = [name for name in axes if name not in names and name not in results and not name.startswith("output")]
    if unknown:
        raise ValueError(f"onnx.export: dynamic_axes names {unknown[0]!r}; the inputs are {', '.join(names)}")
    remaining = iter(names)

    def of(leaf: Tree) -> Tree:
        return _labelled(next(remaining), axes) if isinstance(leaf, Tensor) else None

    return [map_tree(of, value) for value in (*args, *kwargs.values())]


def _labelled(name: str, axes: DynamicAxes) -> dict[int, str] | None:
    """The dynamic axes of an input with their labels; an axis without one gets a label of its own."""
    given = axes.get(name)
    if given is None or isinstance(given, Mapping):
        return None if given is None else dict(given)
    return {axis: f"{name}_dynamic_axes_{number}" for number, axis in enumerate(given, 1)}


def _paths(called: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """The names of the arguments' tensors."""
    paths: list[str] = []
    for name, value in (*zip(called, args, strict=True), *kwargs.items()):
        spec = described(value, lambda leaf: 0 if isinstance(leaf, Tensor) else None, name)
        paths += [path for path, _ in tensors_of(spec, value, name)]
    return paths


class DynamicSizes:
    """The sizes of a program, in a model whose operators and constants `add` and `constant` write.

    Integers are tensors of shape (1,), which are concatenated to shapes. Equal formulas share one operator.
    """

    def __init__(self, graph: CallGraph, sizes: Sizes, names: Sequence[str], add: Any, constant: Any) -> None:
        self._graph, self._sizes, self._names, self._add, self._constant = graph, sizes, names, add, constant
        self._made: dict[Any, str] = {}
        self._grid, self._ends = samples(sizes.dims, sizes.examples) if sizes.dims else ([], [])
        self._at = {point: sizes.at(point, graph.nodes, graph.numbers)[0] for point in (*self._grid, *self._ends)}

    # ---- of a model ----
    def shape(self, tensor: int) -> list[int | str]:
        """The shape of an argument's tensor, with names for dynamic sizes."""
        extents = [*self._graph.leaves[tensor][0]]
        named = {axis: self._sizes.dims[dim].__name__ for one, axis, dim in self._sizes.axes if one == tensor}
        return [named.get(axis, extent) for axis, extent in enumerate(extents)]

    def result_shape(self, index: int) -> list[int | str | None]:
        """The shape of a value: dynamic sizes by name, other dependent extents unknown."""
        names = {self._size(k): dim.__name__ for k, dim in enumerate(self._sizes.dims)}
        shape = self._sizes.varying(index, self._graph.nodes[index]).shape
        return [names.get(n) if isinstance(n, Formula) else n for n in shape]

    def steps(self, index: int) -> list[ViewOperator] | None:
        """The operators of a view at all sizes; None if they differ between sizes."""
        base = self._graph.nodes[index].inputs[0]

        def view(point: tuple[int, ...]) -> tuple[tuple[int, ...], Layout]:
            return self._at[point][base].shape, layout_in(self._at[point][index])

        return steps_at_sizes(self._grid, self._ends, view)

    # ---- numbers ----
    def vector(self, numbers: Sequence[int | Formula]) -> str:
        """Integers, some of which depend on sizes, as one tensor."""
        if not any(isinstance(n, Formula) for n in numbers):
            return str(self._constant(np.array(numbers, np.int64)))
        key = "vector", *numbers
        if key not in self._made:
            parts = [self.integer(n) if isinstance(n, Formula) else self._constant(np.array([n], np.int64)) for n in numbers]
            self._made[key] = parts[0] if len(parts) == 1 else self._add("Concat", parts, axis=0)
        return self._made[key]

    def integer(self, formula: Formula) -> str:
        """An integer, of shape (1,)."""
        if formula not in self._made:
            below = math.lcm(*(c.denominator for c, _ in formula.terms))
            total = None
            for c, degrees in formula.terms:
                term = self._product(int(c * below), degrees)
                total = term if total is None else self._add("Add", [total, term])
            assert total is not None
            self._made[formula] = total if below == 1 else self._add("Div", [total, self._integers(below)])
        return self._made[formula]

    def scalar(self, formula: Formula, kind: int) -> str:
        """A number of an ONNX dtype, of shape ()."""
        key = "scalar", formula, kind
        if key not in self._made:
            below = math.lcm(*(c.denominator for c, _ in formula.terms))
            whole = Formula("int", tuple((c * below, degrees) for c, degrees in formula.terms))
            value = self._add("Reshape", [self.integer(whole), self._constant(np.array([], np.int64))])
            exact = formula.kind == "int"
            if not exact:
                value = self._add("Cast", [value], to=TensorProto.DOUBLE)
            if below > 1:
                value = self._add("Div", [value, self._constant(np.array(below, np.int64 if exact else np.float64))])
            if "root" in formula.kind:
                value = self._add("Sqrt", [value])
            if "inverse" in formula.kind:
                value = self._add("Div", [self._constant(np.array(1.0)), value])
            self._made[key] = self._add("Cast", [value], to=kind)
        return self._made[key]

    def range(self, count: int | Formula) -> str:
        """0, 1, .. as int64."""
        limit = self.scalar(count, TensorProto.INT64) if isinstance(count, Formula) else self._constant(np.array(count))
        return str(self._add("Range", [self._constant(np.array(0)), limit, self._constant(np.array(1))]))

    def offsets(self, attrs: Mapping[str, Any]) -> str:
        """The offset of each element of a layout, whose numbers may be Formulas."""
        rank = len(attrs["shape"])
        total = self.vector([attrs["offset"]])
        for axis, (extent, stride) in enumerate(zip(attrs["shape"], attrs["strides"], strict=True)):
            along = self._add("Mul", [self.range(extent), self.vector([stride])])
            shape = self._constant(np.array([-1 if k == axis else 1 for k in range(rank)], np.int64))
            total = self._add("Add", [total, self._add("Reshape", [along, shape])])
        return total if rank else str(self._add("Reshape", [total, self._constant(np.array([], np.int64))]))

    def _product(self, factor: int, degrees: Sequence[int]) -> str:
        """A factor times powers of the sizes."""
        factors = [self._dim(k) for k, degree in enumerate(degrees) for _ in range(degree)]
        if factor != 1 or not factors:
            factors.append(self._integers(factor))
        value = factors[0]
        for other in factors[1:]:
            value = self._add("Mul", [value, other])
        return value

    def _integers(self, value: int) -> str:
        return str(self._constant(np.array([value], np.int64)))

    def _dim(self, number: int) -> str:
        """A size, read from an input that has it."""
        if number not in self._made:
            tensor, axis = next((tensor, axis) for tensor, axis, dim in self._sizes.axes if dim == number)
            self._made[number] = self._add("Shape", [self._names[tensor]], start=axis, end=axis + 1)
        return self._made[number]

    def _size(self, number: int) -> Formula:
        """The formula of a size itself."""
        return Formula("int", ((Fraction(1), tuple(int(k == number) for k in range(len(self._sizes.dims)))),))
