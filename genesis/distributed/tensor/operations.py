"""Operations on distributed tensors: ranks move their parts to where they are needed, and compute parts of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import local as thread_local
from typing import Any, NamedTuple

from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.tensor.local_program import along_axis
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from genesis.distributed.tensor.sharding import Cut, State
from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, dtype_of_scalar
from genesis.ir.graph import Graph, Value
from genesis.ir.shapes import Shape
from genesis.ops.autocast import recast
from genesis.ops.layout import Layout, contiguous_layout, layout_in
from genesis.ops.registry import Operation, cast
from genesis.pytree import leaves_of, with_leaves
from genesis.tensor.dispatch import LITERALS
from genesis.tensor.handle import CallArguments, Tensor
from genesis.tensor.traced_number import Number
from genesis.tracing.state import thread_state


class _Settings(thread_local):
    plain_are_whole = False


_settings = _Settings()


@contextmanager
def implicit_replication() -> Iterator[None]:
    """A context in which tensors beside distributed ones are taken to be the same on all ranks."""
    before, _settings.plain_are_whole = _settings.plain_are_whole, True
    try:
        yield
    finally:
        _settings.plain_are_whole = before


def check_beside(name: str, tensor: Tensor) -> None:
    """Raise RuntimeError for a tensor beside distributed ones that may not be the same on all ranks."""
    if tensor.numel() > 1 and not _settings.plain_are_whole:
        raise RuntimeError(
            f"{name}: got mixed torch.Tensor and DTensor; want distribute_tensor or DTensor.from_local for the tensor of "
            f"shape {tuple(tensor.shape)}, or implicit_replication() if it is the same on all ranks")


Held = tuple[Shape, DType, tuple[Placement, ...], bool]  # of a tensor; at last whether it requires a gradient


class _Place(NamedTuple):
    """A tensor or a number among the arguments, by its kind and its place among these."""

    is_tensor: bool
    number: int


class _Form(NamedTuple):
    """A call but for its elements and numbers; calls of one form run one program."""

    operation: Operation
    arguments: tuple[Any, ...]
    attributes: tuple[tuple[str, Any], ...]
    types: tuple[Any, ...]  # of the static arguments, as 1, 1.0 and True are equal
    numbers: tuple[type, ...]
    mesh: DeviceMesh
    groups: tuple[int, ...]
    tensors: tuple[Held, ...]
    grad_enabled: bool | None
    low: DType | None


class Program(NamedTuple):
    """What this rank does in a call of an operation.

    Attributes:
        operation: on this rank's parts.
        moves: for each tensor, the placements to which it is moved before, and the axes of the mesh along which a whole one is
            used for a part of the work.
        results: the shapes and placements of the results.
        view: where the one result's part is in the memory of the tensor's part, if it is a view of it.
    """

    operation: Operation
    moves: tuple[tuple[tuple[Placement, ...], tuple[int, ...]], ...]
    results: tuple[tuple[Shape, tuple[Placement, ...]], ...]
    view: Layout | None


class Call:
    """A call of an operation: its tensors, its numbers, and all else about it, by which `program` finds its program."""

    def __init__(self, operation: Operation, arguments: CallArguments, attributes: Attributes) -> None:
        self._operation = operation
        self.tensors: list[Tensor] = []
        self.numbers: list[Any] = []
        self._types: list[Any] = []
        self._arguments = tuple([self._form(each, place in operation.operands and not operation.static_scalars)
                                 for place, each in enumerate(arguments)])
        self._attributes = tuple([(name, self._form(each, False)) for name, each in attributes.items()])

    def _form(self, argument: Any, is_operand: bool) -> Any:
        if isinstance(argument, Tensor):
            self.tensors.append(argument)
            return _Place(True, len(self.tensors) - 1)
        if isinstance(argument, list | tuple):
            return tuple([self._form(each, False) for each in argument])
        kind = argument.__class__
        if is_operand and (kind is Number or (kind in (int, float) and argument not in LITERALS)):
            self.numbers.append(argument)
            return _Place(False, len(self.numbers) - 1)
        self._types.append((kind, str(argument) if kind is float else None))
        return argument

    def program(self, mesh: DeviceMesh, tensors: Sequence[Held]) -> Program:
        """The program of this call on a mesh, for tensors that are held in this way."""
        row, state = self._operation, thread_state
        return _program(_Form(
            row, self._arguments, self._attributes, tuple(self._types),
            tuple([float if isinstance(number, float) else int for number in self.numbers]), mesh,
            tuple([group.number for group in mesh.get_all_groups()]), tuple(tensors), state.grad_enabled,
            state.autocast if row.autocast is not None else None))


@lru_cache(maxsize=4096)
def _program(form: _Form) -> Program:
    graph, row = Graph(grad_enabled=form.grad_enabled), form.operation
    inputs = [graph.add("input", (), shape, dtype, {}, bool(form.grad_enabled and needs)).index
              for shape, dtype, _, needs in form.tensors]
    count = len(inputs)
    inputs += [graph.add("scalar", (), (), dtype_of_scalar(kind(2)), {"slot": slot, "weak": True}).index
               for slot, kind in enumerate(form.numbers)]

    def value(each: Any) -> Any:
        if isinstance(each, _Place):
            return graph.value(inputs[each.number + (0 if each.is_tensor else count)])
        return tuple(map(value, each)) if each.__class__ is tuple else each

    values, named = [*map(value, form.arguments)], {name: value(each) for name, each in form.attributes}
    if form.low is not None:
        values, named = recast(row, form.low, values, named)
    result = row.define(*values, **named)
    results = [each.index for each in leaves_of(result)]
    shapes = [graph.nodes[index].shape for index in results]
    given: list[list[Placement]] = [[] for _ in range(count)]
    shares: list[list[int]] = [[] for _ in range(count)]
    found: list[list[Placement]] = [[] for _ in results]
    for axis in range(form.mesh.ndim):
        states = [*[_state(held[2][axis]) for held in form.tensors], *[None] * len(form.numbers)]
        step = along_axis(graph, inputs, results, states, form.mesh.get_group(axis))
        graph, inputs, results = step.graph, step.inputs, step.results
        for kept, state in [*zip(given, step.given, strict=False), *zip(found, step.found, strict=True)]:
            kept.append(_placement(state))
        for kept_axes, is_shared in zip(shares, step.shares, strict=False):
            kept_axes += [axis] * is_shared
    operation = Operation(row.name, _Replayed(graph, inputs, results, result), frozenset(range(count, len(inputs))),
                          public=False, takes_complex=row.takes_complex)
    return Program(operation, tuple(zip(map(tuple, given), map(tuple, shares), strict=True)),
                   tuple(zip(shapes, map(tuple, found), strict=True)), _view_in(graph, inputs, results, row) if (
                       *given[0],) == form.tensors[0][2] else None)


def _view_in(graph: Graph, inputs: list[int], results: list[int], row: Operation) -> Layout | None:
    """The layout of a view of the one input; None for another operation, and for one that would be the input itself."""
    node = graph.nodes[results[0]]
    if not row.is_view or len(results) > 1 or node.op != "view" or [*node.inputs] != inputs:
        return None
    at = layout_in(node)
    return None if node.differentiable and at == contiguous_layout(graph.nodes[inputs[0]].shape) else at


def _state(placement: Placement) -> State:
    if isinstance(placement, Shard):
        return Cut(placement.dim)
    return placement.reduce_op if isinstance(placement, Partial) else None


def _placement(state: State) -> Placement:
    return Shard(state.dim) if isinstance(state, Cut) else Replicate() if state is None else Partial(state)


class _Replayed:
    """The definition of an operation whose nodes are known."""

    def __init__(self, graph: Graph, inputs: Sequence[int], results: Sequence[int], like: Any) -> None:
        self.nodes, self.inputs, self.results, self.like = graph.nodes, inputs, results, like

    def __call__(self, *values: Any) -> Any:
        graph = next(value.graph for value in values if isinstance(value, Value))
        places: dict[int, Value] = {}
        for index, value in zip(self.inputs, values, strict=True):
            places[index] = value if isinstance(value, Value) else graph.constant(value, dtype_of_scalar(value), weak=True)
        numbers = [places[index] for index in self.inputs if self.nodes[index].op == "scalar"]
        for index, node in enumerate(self.nodes):
            if index not in places:
                given = [places[i] for i in node.inputs]
                places[index] = cast(numbers[node.attrs["slot"]], node.dtype) if node.op == "scalar" else graph.add(
                    node.op, given, node.shape, node.dtype, node.attrs, None if node.differentiable else False)
        return with_leaves(self.like, iter([places[index] for index in self.results]))
