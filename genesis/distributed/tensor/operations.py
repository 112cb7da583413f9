"""Operations on distributed tensors: ranks move their parts to where they are needed, and compute parts of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import local as thread_local
from typing import Any, NamedTuple

from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.tensor.local_program import along_axis
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from genesis.distributed.tensor.sharding import Cut, State
from genesis.execution.flush import flush_collectives
from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, dtype_of_scalar
from genesis.ir.errors import ArgumentError
from genesis.ir.graph import Graph, Value
from genesis.ir.shapes import Shape
from genesis.ops.autocast import recast
from genesis.ops.registry import Operation, cast
from genesis.pytree import leaves_of, with_leaves
from genesis.tensor.dispatch import LITERALS, call
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


class Part(NamedTuple):
    """What one rank has: its tensor, of a whole of `shape`."""

    local: Tensor
    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    shape: Shape


class _Place(NamedTuple):
    """A tensor or a number among the arguments, by its kind and its place among these."""

    is_tensor: bool
    number: int


class _Form(NamedTuple):
    """A call but for its elements and numbers; calls of one form run one program."""

    operation: Operation
    arguments: tuple[Any, ...]
    types: tuple[Any, ...]  # of the static arguments, as 1, 1.0 and True are equal
    tensors: tuple[tuple[Shape, DType, tuple[Placement, ...], bool], ...]
    numbers: tuple[type, ...]
    mesh: DeviceMesh
    groups: tuple[int, ...]
    grad_enabled: bool | None
    low: DType | None


class _Program(NamedTuple):
    """A form's program."""

    operation: Operation  # on this rank's parts
    given: tuple[tuple[Placement, ...], ...]  # the placements to which tensors are moved before
    shares: tuple[tuple[int, ...], ...]  # the axes of the mesh along which a whole tensor is used for a part of the work
    results: tuple[tuple[Shape, tuple[Placement, ...]], ...]


def computed(
    operation: Operation, arguments: CallArguments, attributes: Attributes, part: Callable[[Tensor], Part | None],
    moved: Callable[[Tensor, tuple[Placement, ...], tuple[int, ...]], Tensor],
    made: Callable[[Part], Tensor],
) -> Any:
    """The result of `operation` on arguments with distributed tensors among them.

    Args:
        part: the part of a distributed tensor, None for another tensor.
        moved: this rank's part in other placements, whose gradients are summed along axes of the mesh.
        made: the distributed tensor of a part.
    """
    tensors: list[Tensor] = []
    numbers: list[Any] = []
    types: list[Any] = []

    def form(argument: Any, is_operand: bool) -> Any:
        if isinstance(argument, Tensor):
            tensors.append(argument)
            return _Place(True, len(tensors) - 1)
        if isinstance(argument, list | tuple):
            return tuple([form(each, False) for each in argument])
        if is_operand and (argument.__class__ is Number or (argument.__class__ in (int, float) and argument not in LITERALS)):
            numbers.append(argument)
            return _Place(False, len(numbers) - 1)
        types.append((argument.__class__, str(argument) if argument.__class__ is float else None))
        return argument

    given = tuple([form(each, place in operation.operands and not operation.static_scalars)
                   for place, each in enumerate(arguments)])
    named = tuple([(name, form(each, False)) for name, each in attributes.items()])
    mesh, parts = _parts_of(operation.name, tensors, part)
    low = thread_state.autocast if operation.autocast is not None else None
    program = _program(_Form(
        operation, (given, named), tuple(types),
        tuple([(each.shape, each.local.dtype, each.placements, each.local.requires_grad) for each in parts]),
        tuple([float if isinstance(number, float) else int for number in numbers]), mesh,
        tuple([group.number for group in mesh.get_all_groups()]), thread_state.grad_enabled, low))
    locals_ = [moved(made(each), placements, shares)
               for each, placements, shares in zip(parts, program.given, program.shares, strict=True)]
    flush_collectives(thread_state.traces.get(locals_[0].device.name))
    found = call(program.operation, [*locals_, *numbers])
    return with_leaves(found, iter([made(Part(local, mesh, placements, shape)) for local, (shape, placements) in zip(
        leaves_of(found), program.results, strict=True)]))


def _parts_of(
    name: str, tensors: Sequence[Tensor], part: Callable[[Tensor], Part | None]
) -> tuple[DeviceMesh, list[Part]]:
    """The parts of tensors, and their mesh. Raises RuntimeError for plain tensors, ValueError for several meshes."""
    found = [part(tensor) for tensor in tensors]
    meshes = {each.mesh for each in found if each is not None}
    if len(meshes) > 1:
        raise ArgumentError(f"{name}: DTensors of {len(meshes)} meshes, {[*meshes]}; want one mesh")
    mesh = meshes.pop()
    whole = (Replicate(),) * mesh.ndim
    for tensor, each in zip(tensors, found, strict=True):
        if each is None and tensor.numel() > 1 and not _settings.plain_are_whole:
            raise RuntimeError(
                f"{name}: got mixed torch.Tensor and DTensor; want distribute_tensor or DTensor.from_local for the tensor of "
                f"shape {tuple(tensor.shape)}, or implicit_replication() if it is the same on all ranks")
    return mesh, [Part(tensor, mesh, whole, tuple(tensor.shape)) if each is None else each
                  for tensor, each in zip(tensors, found, strict=True)]


@lru_cache(maxsize=4096)
def _program(form: _Form) -> _Program:
    graph = Graph(grad_enabled=form.grad_enabled)
    inputs = [graph.add("input", (), shape, dtype, {}, bool(form.grad_enabled and needs)).index
              for shape, dtype, _, needs in form.tensors]
    count = len(inputs)
    inputs += [graph.add("scalar", (), (), dtype_of_scalar(kind(2)), {"slot": slot, "weak": True}).index
               for slot, kind in enumerate(form.numbers)]

    def value(each: Any) -> Any:
        if isinstance(each, _Place):
            return graph.value(inputs[each.number + (0 if each.is_tensor else count)])
        return tuple(map(value, each)) if each.__class__ is tuple else each

    values, named = [*map(value, form.arguments[0])], {name: value(each) for name, each in form.arguments[1]}
    if form.low is not None:
        values, named = recast(form.operation, form.low, values, named)
    result = form.operation.define(*values, **named)
    results = [each.index for each in leaves_of(result)]
    shapes = [graph.nodes[index].shape for index in results]
    given: list[list[Placement]] = [[] for _ in range(count)]
    found: list[list[Placement]] = [[] for _ in results]
    shares: list[list[int]] = [[] for _ in range(count)]
    for axis in range(form.mesh.ndim):
        states = [*[_STATES[type(placements[axis])](placements[axis]) for _, _, placements, _ in form.tensors],
                  *[None] * len(form.numbers)]
        step = along_axis(graph, inputs, results, states, form.mesh.get_group(axis))
        graph, inputs, results = step.graph, step.inputs, step.results
        for kept, state in [*zip(given, step.given, strict=False), *zip(found, step.found, strict=True)]:
            kept.append(_placement(state))
        for kept_axes, is_shared in zip(shares, step.shares, strict=False):
            kept_axes += [axis] * is_shared
    row = form.operation
    operation = Operation(row.name, _Replayed(graph, inputs, results, result), frozenset(range(count, len(inputs))),
                          public=False, takes_complex=row.takes_complex)
    return _Program(operation, tuple(map(tuple, given)), tuple(map(tuple, shares)),
                    tuple(zip(shapes, map(tuple, found), strict=True)))


_STATES: dict[type[Placement], Callable[[Any], State]] = {
    Replicate: lambda _: None, Partial: lambda placement: placement.reduce_op, Shard: lambda placement: Cut(placement.dim)}


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
