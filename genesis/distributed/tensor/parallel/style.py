"""Styles of tensor parallelism: a layer's parameters become DTensors, and its inputs and outputs get placements.

What the layer computes then follows from the rules for DTensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.tensor.dtensor import DTensor, distribute_tensor
from genesis.distributed.tensor.operations import implicit_replication
from genesis.distributed.tensor.placement_types import Placement, Replicate, Shard
from genesis.ir.errors import ArgumentError
from genesis.nn.embedding import Embedding
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor

Layouts = Placement | Sequence[Placement | None]
Moves = Sequence[tuple[Placement | None, Placement | None]]


class ParallelStyle:
    """A style: `apply(module, device_mesh, src_data_rank)` changes the module in place."""

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Distribute `module` over a mesh of one axis."""
        raise NotImplementedError(f"{type(self).__name__} lacks apply(module, device_mesh, src_data_rank), which styles define")


class ColwiseParallel(ParallelStyle):
    """A Linear or an Embedding sharded by outputs.

    Args:
        input_layouts: the input's placement; by default Replicate. With Shard(1), parts of sequences are gathered.
        output_layouts: the result's placement; by default Shard(-1), the rank's own part.
        use_local_output: whether the result is this rank's part, a plain tensor, or a DTensor.

    >>> ColwiseParallel(output_layouts=genesis.distributed.tensor.Replicate())
    ColwiseParallel(input_layouts=Replicate(), output_layouts=Replicate())
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True
    ) -> None:
        self.input_layouts, self.output_layouts = input_layouts or Replicate(), output_layouts or Shard(-1)
        self.use_local_output = use_local_output

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Shard a Linear or an Embedding by outputs. Raises TypeError for another module."""
        parts: dict[str, Placement] = {"weight": Shard(0), "bias": Shard(0)} if _is_linear(module, self) else {
            "weight": Shard(1)}
        _distribute(module, device_mesh, parts, src_data_rank)
        _move_inputs(module, device_mesh, [(self.input_layouts, Replicate())])
        _move_outputs(module, device_mesh, [(None, self.output_layouts)], self.use_local_output)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts})"


class RowwiseParallel(ParallelStyle):
    """A Linear sharded by inputs, or an Embedding sharded by rows.

    Args:
        input_layouts: the input's placement; by default Shard(-1) for a Linear, Replicate for an Embedding.
        output_layouts: the result's placement; by default Replicate. With Shard(1), a rank gets a part of the sequence.
        use_local_output: whether the result is this rank's part, a plain tensor, or a DTensor.
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True
    ) -> None:
        self.input_layouts, self.output_layouts = input_layouts, output_layouts or Replicate()
        self.use_local_output = use_local_output

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Shard a Linear by inputs, or an Embedding by rows. Raises TypeError for another module."""
        is_linear = _is_linear(module, self)
        parts: dict[str, Placement] = {"weight": Shard(1), "bias": Replicate()} if is_linear else {"weight": Shard(0)}
        wanted = Shard(-1) if is_linear else Replicate()
        _distribute(module, device_mesh, parts, src_data_rank)
        _move_inputs(module, device_mesh, [(self.input_layouts or wanted, wanted)])
        _move_outputs(module, device_mesh, [(None, self.output_layouts)], self.use_local_output)

    __repr__ = ColwiseParallel.__repr__


class SequenceParallel(ParallelStyle):
    """A LayerNorm, RMSNorm, Dropout or similar, computed on each rank for a part of the sequence.

    Inputs and outputs are divided along axis `sequence_dim`; parameters are replicated. By default outputs are DTensors.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_dim, self.use_local_output = sequence_dim, use_local_output

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Replicate the module's parameters, and divide its inputs."""
        names = [name for name, _ in module.named_parameters(recurse=False)]
        _distribute(module, device_mesh, {name: Replicate() for name in names}, src_data_rank)
        part = Shard(self.sequence_dim)
        _move_inputs(module, device_mesh, [(part, part)])
        _move_outputs(module, device_mesh, [(None, part)], self.use_local_output)

    def __repr__(self) -> str:
        return f"SequenceParallel(sequence_dim={self.sequence_dim})"


class PrepareModuleInput(ParallelStyle):
    """Changes the placements of a module's inputs.

    Args:
        input_layouts: the given placement of each positional input; None leaves an input unchanged.
        desired_input_layouts: the desired placements.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same for keyword inputs.
        use_local_output: whether the module gets this rank's parts, plain tensors, or DTensors.

    Raises ValueError if the numbers or names of layouts differ.
    """

    def __init__(
        self, *, input_layouts: Layouts | None = None, desired_input_layouts: Layouts | None = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False,
    ) -> None:
        self.moves, self.use_local_output = _moves("PrepareModuleInput", input_layouts, desired_input_layouts), use_local_output
        comes, wanted = input_kwarg_layouts or {}, desired_input_kwarg_layouts or {}
        if comes.keys() != wanted.keys():
            raise ArgumentError(f"PrepareModuleInput: named inputs {[*comes]} and {[*wanted]}; want the same ones")
        self.named_moves = {name: (comes[name], wanted[name]) for name in comes}

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Redistribute the inputs before each call."""
        _move_inputs(module, device_mesh, self.moves, self.named_moves, self.use_local_output)


class PrepareModuleOutput(ParallelStyle):
    """Changes the placements of a module's results: as `PrepareModuleInput`."""

    def __init__(self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True) -> None:
        self.moves = _moves("PrepareModuleOutput", output_layouts, desired_output_layouts)
        self.use_local_output = use_local_output

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Redistribute the results after each call."""
        _move_outputs(module, device_mesh, self.moves, self.use_local_output)


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module."""

    def __init__(
        self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_input: bool = False,
        use_local_output: bool = True, **inputs: Any,
    ) -> None:
        self.styles = (
            PrepareModuleInput(**inputs, use_local_output=use_local_input),
            PrepareModuleOutput(output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
                                use_local_output=use_local_output))

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Redistribute the inputs before each call, and the results after it."""
        for style in self.styles:
            style.apply(module, device_mesh, src_data_rank)


@contextmanager
def loss_parallel() -> Iterator[None]:
    """A context for the cross entropy of scores sharded by classes, which no rank gathers, with targets that all ranks have."""
    with implicit_replication():
        yield


def distribute_module(
    module: Module, device_mesh: DeviceMesh, partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None, output_fn: Callable[..., Any] | None = None,
) -> Module:
    """Make the parameters and buffers of `module` DTensors, replicated unless `partition_fn` distributes them; returns it.

    Args:
        partition_fn: called as `partition_fn(name, submodule, device_mesh)` for the module and each one in it.
        input_fn: called before each forward, as `input_fn(module, inputs, device_mesh)`, returns the inputs.
        output_fn: called after each forward, as `output_fn(module, outputs, device_mesh)`, returns the outputs.

    >>> genesis.distributed.init_process_group()
    >>> mesh = genesis.distributed.init_device_mesh("cpu", (1,))
    >>> layer = genesis.distributed.tensor.distribute_module(genesis.nn.Linear(2, 3), mesh)
    >>> layer.weight.placements
    (Replicate(),)
    >>> genesis.distributed.destroy_process_group()
    """
    whole = [Replicate()] * device_mesh.ndim
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, device_mesh)
        for own, parameter in each.named_parameters(recurse=False):
            if not isinstance(parameter, DTensor):
                held = distribute_tensor(parameter, device_mesh, whole)
                each.register_parameter(own, Parameter(held, parameter.requires_grad))
        for own, buffer in each.named_buffers(recurse=False):
            if not isinstance(buffer, DTensor):
                setattr(each, own, distribute_tensor(buffer, device_mesh, whole))
    if input_fn is not None:
        module.register_forward_pre_hook(lambda called, inputs: input_fn(called, inputs, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda called, _, outputs: output_fn(called, outputs, device_mesh))
    return module


# ---- shared code ----


def _distribute(module: Module, mesh: DeviceMesh, placements: Mapping[str, Placement], src_data_rank: int | None) -> None:
    """Replace a module's parameters of these names by DTensors. Raises ValueError for an axis without equal parts."""
    for name, placement in placements.items():
        whole = getattr(module, name)
        if whole is not None:
            if isinstance(placement, Shard) and whole.shape[placement.dim] % mesh.size():
                met = f"axis {placement.dim} of {name}, of shape {tuple(whole.shape)}"
                raise ArgumentError(f"{met}, has no {mesh.size()} equal parts, one for each rank")
            held = distribute_tensor(whole, mesh, [placement], src_data_rank=src_data_rank)
            setattr(module, name, Parameter(held, whole.requires_grad))


def _is_linear(module: Module, style: ParallelStyle) -> bool:
    """Whether a module is a Linear; else it is an Embedding. Raises TypeError for another kind."""
    if isinstance(module, Linear):
        return True
    if not isinstance(module, Embedding):
        raise TypeError(f"{type(style).__name__}: {type(module).__name__}; want a Linear or an Embedding")
    if module.max_norm is not None or module.scale_grad_by_freq or module.sparse:
        raise ArgumentError(f"{type(style).__name__}: an Embedding with max_norm, scale_grad_by_freq or sparse; want none")
    return False


def _moves(name: str, comes: Layouts | None, wanted: Layouts | None) -> Moves:
    before, after = [[each] if isinstance(each, Placement) else [*(each or ())] for each in (comes, wanted)]
    if len(before) != len(after):
        raise ArgumentError(f"{name}: {len(before)} layouts and {len(after)} desired ones; want as many")
    return [*zip(before, after, strict=True)]


def _moved(value: Any, move: tuple[Placement | None, Placement | None], mesh: DeviceMesh, is_local: bool) -> Any:
    """A tensor in its desired placement; one that is no DTensor has the given placement."""
    source, target = move
    if target is None or not isinstance(value, Tensor):
        return value
    if not isinstance(value, DTensor):
        if source is None:
            return value
        value = DTensor.from_local(value, mesh, [source])
    moved = value.redistribute(mesh, [target])
    return moved.to_local() if is_local else moved


def _move_inputs(
    module: Module, mesh: DeviceMesh, moves: Moves, named: Mapping[str, tuple[Placement, Placement]] | None = None,
    is_local: bool = False,
) -> None:
    """Redistribute a module's inputs before each call."""
    def move(module: Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        moved = [_moved(value, how, mesh, is_local) for value, how in zip(inputs, moves, strict=False)]
        known = {name: _moved(options[name], how, mesh, is_local) for name, how in (named or {}).items() if name in options}
        return (*moved, *inputs[len(moved) :]), {**options, **known}

    module.register_forward_pre_hook(move, with_kwargs=True)


def _move_outputs(module: Module, mesh: DeviceMesh, moves: Moves, is_local: bool) -> None:
    """Redistribute a module's results after each call."""
    def move(module: Module, inputs: Any, output: Any) -> Any:
        if not isinstance(output, tuple):
            return _moved(output, moves[0], mesh, is_local)
        return (*[_moved(value, how, mesh, is_local) for value, how in zip(output, moves, strict=False)], *output[len(moves) :])

    module.register_forward_hook(move)
