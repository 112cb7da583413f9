"""`genesis.export`: a function or module, with its state, as a standalone program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from genesis.functions.from_data import from_numpy
from genesis.ir.annotations import AnyFunction, Options, Tree
from genesis.nn.module import Module
from genesis.pytree import leaves_of, map_tree
from genesis.shipping.dynamic import Dim, Formula, Sizes, fitted, numbers_of, samples, structure_of
from genesis.shipping.exported_program import ExportedProgram
from genesis.shipping.graph_of_call import CallGraph, ExportError, graph_of_call, short
from genesis.tensor.handle import Tensor
from genesis.tracing.source_line import error_line, line_name
from genesis.tracing.state import grad_mode

Arguments = tuple[tuple[Any, ...], Options]
Dynamic = Mapping[str, Any] | Sequence[Any]
_TOLERANCE = 1e-3  # between two graphs of one function: a wrong size gives a larger error than rounding


def export(fn: AnyFunction, *examples: Any, dynamic: Dynamic | None = None, **named: Any) -> ExportedProgram:
    """`fn(*examples, **named)` as a program that can be called, saved and shipped without `fn`.

    Args:
        fn: a function of tensors, or a module, whose parameters and buffers become the program's state.
        examples: arguments like those of later calls, in tuples, lists and dicts. Everything that is not a tensor is fixed in
        the program.
        dynamic: the axes with dynamic sizes: for each argument, by name or in order, a dict from axis to `Dim` or its name,
            or None: `dynamic={"x": {0: "batch"}}`. Axes with one name have one size. For a tuple, list or dict of tensors, a
            tuple, list or dict of such dicts.

    The function runs once, with dynamic sizes several times, and its side effects on tensors are undone. Python's decisions are
    fixed: the program holds for the current numbers, flags and globals. Buffers that it updates (`BatchNorm` in training) are
    copied into the program.

    Raises ExportError, with the user's line, for anything that a program cannot repeat: reading a value, a host call, random
    numbers, a gradient left in `.grad`, writing to an argument, a number that is not a polynomial of the sizes.

    >>> import genesis
    >>> double = genesis.export(lambda x: x * 2, genesis.ones(3), dynamic=[{0: "n"}])
    >>> double(genesis.tensor([1., 2., 3., 4.]))
    tensor([2., 4., 6., 8.])
    """
    if not callable(fn):
        raise TypeError(f"export: wants a function or a module, got {type(fn).__name__} {fn!r:.40}")
    graph = _named(graph_of_call(fn, examples, named), fn)
    if not dynamic:
        return ExportedProgram(graph, Sizes())
    dims, axes = _axes(dynamic, graph.names, [*examples, *named.values()], [*named])
    shapes = [leaf.shape for leaf in leaves_of([[*examples], named]) if isinstance(leaf, Tensor)]
    found: dict[int, int] = {}
    for tensor, axis, dim in axes:
        if axis >= len(shapes[tensor]):
            raise ValueError(f"export: tensor {tensor} of the arguments has shape {shapes[tensor]}, and no axis {axis}")
        if found.setdefault(dim, shapes[tensor][axis]) != shapes[tensor][axis]:
            raise ValueError(f"export: {dims[dim].__name__} is {found[dim]} and {shapes[tensor][axis]} in the examples")
    example = tuple(found[dim] for dim in range(len(dims)))

    def arguments(sizes: tuple[int, ...]) -> Arguments:
        number = iter(range(len(shapes)))

        def resized(leaf: Tree) -> Tree:
            if not isinstance(leaf, Tensor):
                return leaf
            tensor = next(number)
            return _resized(leaf, {axis: sizes[dim] for one, axis, dim in axes if one == tensor})

        args, kwargs = map_tree(resized, (tuple(examples), named))
        return args, kwargs

    grid, check = samples(dims, example)
    graph, formulas = _formulas(fn, arguments, graph, dims, grid)
    program = ExportedProgram(graph, Sizes(dims, axes, example, formulas))
    state = dict(program.state_dict)
    for point in check:
        _check(program, _graph_at(fn, arguments, point, dims).computed, arguments(point), point)
        program.state_dict.update(state)  # restore what the call may have updated
    return program


def _named(graph: CallGraph, fn: AnyFunction) -> CallGraph:
    """The graph with names for positional arguments."""
    _, ((_, items), _) = graph.arguments
    return graph._replace(names=argument_names(fn, len(items)))


def argument_names(fn: AnyFunction, count: int) -> list[str]:
    """The names of the first `count` positional arguments."""
    try:
        parameters = [*inspect.signature(fn.forward if isinstance(fn, Module) else fn).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [plain[k] if k < len(plain) else f"argument_{k}" for k in range(count)]


def _axes(
    dynamic: Dynamic, names: Sequence[str], values: Sequence[Tree], named: Sequence[str]
) -> tuple[list[Dim], list[tuple[int, int, int]]]:
    """The dims, and (tensor, axis, dim) of each dynamic axis."""
    called = [*names, *named]
    if isinstance(dynamic, Mapping):
        unknown = [name for name in dynamic if name not in called]
        if unknown:
            raise ValueError(f"export: dynamic names {unknown[0]!r}; the arguments are {', '.join(called)}")
        given = [dynamic.get(name) for name in called]
    else:
        given = [*dynamic, *[None] * (len(called) - len(dynamic))]
    dims: dict[str, Dim] = {}
    axes: list[tuple[int, int, int]] = []
    tensors = 0

    def visit(value: Tree, wanted: Any, path: str) -> None:
        nonlocal tensors
        if isinstance(value, Tensor):
            for axis, dim in _pairs(wanted, value.ndim, path):
                dim = dim if isinstance(dim, Dim) else Dim(dim)
                known = dims.setdefault(dim.__name__, dim)
                axes.append((tensors, axis, [*dims].index(known.__name__)))
            tensors += 1
        elif isinstance(value, dict | list | tuple):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                visit(item, wanted if wanted is None else wanted[key], f"{path}[{key!r}]")

    for name, value, wanted in zip(called, values, given, strict=True):
        visit(value, wanted, name)
    return [*dims.values()], axes


def _pairs(wanted: Any, ndim: int, path: str) -> list[tuple[int, Dim | str]]:
    """The dynamic axes of a tensor."""
    if wanted is None:
        return []
    pairs = [*wanted.items()] if isinstance(wanted, Mapping) else [*enumerate(wanted)]
    for axis, dim in pairs:
        if type(axis) is not int or not -ndim <= axis < ndim or not isinstance(dim, Dim | str | type(None)):
            raise ValueError(f"export: dynamic of {path} is {wanted!r:.80}; want a dict from an axis to a Dim or a name")
    return [(axis % ndim, dim) for axis, dim in pairs if dim is not None]


def _resized(tensor: Tensor, sizes: Mapping[int, int]) -> Tensor:
    """A tensor of other sizes along some axes that repeats the example's values, so that indices stay in range."""
    values = tensor.detach().numpy()
    for axis, size in sizes.items():
        values = np.take(values, np.arange(size) % values.shape[axis], axis)
    return from_numpy(np.ascontiguousarray(values)).to(tensor.dtype)


def _formulas(
    fn: AnyFunction, arguments: Callable[[tuple[int, ...]], Arguments], graph: CallGraph, dims: Sequence[Dim],
    grid: Sequence[tuple[int, ...]],
) -> tuple[CallGraph, dict[tuple[int, int], Formula]]:
    """The graph of the first sizes, with only those calls whose settings hold at all sizes, and the formulas of its numbers."""
    others = [_alike(graph, _graph_at(fn, arguments, point, dims), point, dims) for point in grid[1:]]
    calls = [call for call, *same in zip(graph.calls, *(other.calls for other in others), strict=False)
             if all(one == call for one in same)]
    columns = [_columns(one) for one in (graph, *others)]
    formulas: dict[tuple[int, int], Formula] = {}
    for key, value in columns[0].items():
        values = [column[key] for column in columns]
        if any(repr(value) != repr(other) for other in values):
            formula = fitted(grid, values)
            if formula is None:
                raise ExportError(_no_formula(graph, key, grid, values, dims))
            formulas[key] = formula
    return graph._replace(calls=calls), formulas


def _graph_at(
    fn: AnyFunction, arguments: Callable[[tuple[int, ...]], Arguments], point: tuple[int, ...], dims: Sequence[Dim]
) -> CallGraph:
    """The graph at other sizes. Raises ExportError, with the user's line, if the function fails there."""
    try:
        return graph_of_call(fn, *arguments(point))
    except ExportError:
        raise
    except Exception as problem:
        line, sizes = error_line(problem), ", ".join(f"{dim.__name__}={size}" for dim, size in zip(dims, point, strict=True))
        at = f" at {line_name(line, short=True)}" if line else ""
        raise ExportError(f"export: with {sizes} the function fails{at}: {problem}; want no size of the examples in it, "
                          "or Dims whose `min` and `max` leave such sizes out") from problem


def _check(program: ExportedProgram, wanted: Sequence[Tensor], arguments: Arguments, point: tuple[int, ...]) -> None:
    """Raise ExportError unless program and function agree at other sizes.

    The function's own graph may differ there: with a size of 1 there is nothing to expand.
    """
    with grad_mode(False):
        found = [leaf for leaf in leaves_of(program(*arguments[0], **arguments[1])) if isinstance(leaf, Tensor)]
    if len(found) != len(wanted) or not all(map(_are_close, found, wanted)):
        raise ExportError(f"export: with {program.sizes.described(point)} the function computes something else than "
                          "its graph of other sizes; want Dims whose `min` and `max` leave such sizes out")


def _are_close(one: Tensor, two: Tensor) -> bool:
    if one.shape != two.shape or one.dtype is not two.dtype:
        return False
    return np.allclose(one.numpy(), two.numpy(), _TOLERANCE, _TOLERANCE, equal_nan=True)


def _alike(graph: CallGraph, other: CallGraph, point: tuple[int, ...], dims: Sequence[Dim]) -> CallGraph:
    """`other`, after checking that it has the structure of `graph`; raises ExportError otherwise."""
    sizes = ", ".join(f"{dim.__name__}={size}" for dim, size in zip(dims, point, strict=True))
    for k, (one, two) in enumerate(zip(graph.nodes, other.nodes, strict=False)):
        if structure_of(one) != structure_of(two):
            raise ExportError(f"export: with {sizes} the function computes something else from {short(graph.lines[k])} on: "
                              f"{two.op} instead of {one.op}")
    if len(graph.nodes) != len(other.nodes) or graph.outputs != other.outputs or graph.result != other.result:
        raise ExportError(f"export: with {sizes} the function computes {len(other.nodes)} values, not {len(graph.nodes)}")
    return other


def _columns(graph: CallGraph) -> dict[tuple[int, int], int | float]:
    found = {(k, number): value for k, node in enumerate(graph.nodes) for number, value in enumerate(numbers_of(node))}
    return found | {(-1, number): value for number, value in enumerate(graph.numbers)}


def _no_formula(
    graph: CallGraph, key: tuple[int, int], grid: Sequence[tuple[int, ...]], values: Sequence[Any], dims: Sequence[Dim]
) -> str:
    sizes = [size[0] if len(size) == 1 else size for size in grid]
    line = short(graph.lines[key[0]]) if key[0] >= 0 else ""
    return (f"export: a number at {line or 'a scalar'} is {[*values]} for {', '.join(d.__name__ for d in dims)} of {sizes}; "
            "want one that is a polynomial of the sizes")
