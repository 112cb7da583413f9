"""PyTorch's `dynamic_axes`, by the names of a model's inputs, as `genesis.export` takes them: by argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genesis.ir.annotations import AnyFunction, Tree
from genesis.pytree import map_tree
from genesis.shipping.export import argument_names
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
