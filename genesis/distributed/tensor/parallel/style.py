"""Tensor parallelism by styles: a layer's parameters become DTensors, and its inputs and outputs get placements.

What the layer computes then follows from the rules for DTensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh
from genesis.distributed.process_group import world
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
Move = tuple[Placement | None, Placement | None]  # the placement that a plain tensor has, and the desired one

loss_parallel = implicit_replication  # all that cross entropy of scores sharded by classes needs: it gathers none


class ParallelStyle:
    """A style: `apply(module, device_mesh, src_data_rank)` changes the module in place."""

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Distribute `module` over a mesh of one axis."""
        raise NotImplementedError(f"{type(self).__name__} lacks apply(module, device_mesh, src_data_rank), which styles define")


class _OfLayers(ParallelStyle):
    """A style of a Linear or an Embedding.

    Args:
        input_layouts: the input's placement.
        output_layouts: the result's placement.
        use_local_output: whether the result is this rank's part, a plain tensor, or a DTensor.
    """

    linear: ClassVar[dict[str, Placement]]  # the placements of a Linear's parameters
    embedding: ClassVar[dict[str, Placement]]
    linear_input: ClassVar[Placement] = Replicate()
    output: ClassVar[Placement]

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True
    ) -> None:
        self.input_layouts, self.output_layouts = input_layouts, output_layouts or self.output
        self.use_local_output = use_local_output

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Shard a Linear or an Embedding. Raises TypeError for another module."""
        is_linear = _is_linear(module, self)
        wanted = self.linear_input if is_linear else Replicate()
        _distribute(module, device_mesh, self.linear if is_linear else self.embedding, src_data_rank)
        _move_inputs(module, device_mesh, [(self.input_layouts or wanted, wanted)])
        _move_outputs(module, device_mesh, [(None, self.output_layouts)], self.use_local_output)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts})"


class ColwiseParallel(_OfLayers):
    """A Linear or an Embedding sharded by outputs.

    Args:
        input_layouts: the input's placement; by default Replicate. With Shard(1), parts of sequences are gathered.
        output_layouts: the result's placement; by default Shard(-1), the rank's own part.
        use_local_output: whether the result is this rank's part, a plain tensor, or a DTensor.
    """

    linear, embedding = {"weight": Shard(0), "bias": Shard(0)}, {"weight": Shard(1)}
    output = Shard(-1)


class RowwiseParallel(_OfLayers):
    """A Linear sharded by inputs, or an Embedding sharded by rows.

    Args:
        input_layouts: the input's placement; by default Shard(-1) for a Linear, Replicate for an Embedding.
        output_layouts: the result's placement; by default Replicate. With Shard(1), a rank gets a part of the sequence.
        use_local_output: whether the result is this rank's part, a plain tensor, or a DTensor.
    """

    linear, embedding = {"weight": Shard(1), "bias": Replicate()}, {"weight": Shard(0)}
    linear_input, output = Shard(-1), Replicate()


class SequenceParallel(ParallelStyle):
    """A LayerNorm, RMSNorm, Dropout or similar, computed on each rank for a part of the sequence.

    Inputs and outputs are divided along axis `sequence_dim`; parameters are replicated. By default outputs are DTensors.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_dim, self.use_local_output = sequence_dim, use_local_output

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Replicate the module's parameters, and divide its inputs."""
        part = Shard(self.sequence_dim)
        own = {name: Replicate() for name, _ in module.named_parameters(recurse=False)}
        _distribute(module, device_mesh, own, src_data_rank)
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


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None, *, src_data_rank: int | None = 0,
) -> Module:
    """Shard the layers of `module` over a mesh of one axis; returns it. Create optimizers afterwards.

    Args:
        device_mesh: the ranks; by default all.
        parallelize_plan: a style for `module` itself, or a dict from submodule paths, where `*` matches any name, to styles.
        src_data_rank: the rank whose parameters are used; None if all ranks have the same.

    Raises ValueError for a mesh of more axes, and for a path without a module.

    >>> from genesis.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
    >>> network = genesis.nn.Sequential(genesis.nn.Linear(2, 8), genesis.nn.ReLU(), genesis.nn.Linear(8, 2))
    >>> network = parallelize_module(network, None, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    >>> network(genesis.ones(3, 2)).shape
    (3, 2)
    """
    mesh = device_mesh or init_device_mesh("cpu", (world().size(),))
    if mesh.ndim != 1:
        raise ArgumentError(f"parallelize_module: {mesh}; want a mesh of one axis, such as mesh['tensor']")
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.apply(module, mesh, src_data_rank)
        return module
    for path, style in (parallelize_plan or {}).items():
        found = [below for name, below in module.named_modules() if _matches(name, path)]
        if not found:
            raise ArgumentError(f"parallelize_module: there is no module {path!r} in {type(module).__name__}")
        for below in found:
            style.apply(below, mesh, src_data_rank)
    return module


def distribute_module(
    module: Module, device_mesh: DeviceMesh, partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None, output_fn: Callable[..., Any] | None = None,
) -> Module:
    """Make the parameters and buffers of `module` DTensors, replicated unless `partition_fn` distributes them; returns it.

    Args:
        partition_fn: called as `partition_fn(name, submodule, device_mesh)` for the module and each one in it.
        input_fn: called before each forward, as `input_fn(module, inputs, device_mesh)`, returns the inputs.
        output_fn: called after each forward, as `output_fn(module, outputs, device_mesh)`, returns the outputs.

    >>> mesh = genesis.distributed.init_device_mesh("cpu", (1,))
    >>> layer = genesis.distributed.tensor.distribute_module(genesis.nn.Linear(2, 3), mesh)
    >>> layer.weight.placements
    (Replicate(),)
    """
    whole = [Replicate()] * device_mesh.ndim
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, device_mesh)
        for own, tensor in [*each.named_parameters(recurse=False), *each.named_buffers(recurse=False)]:
            if not isinstance(tensor, DTensor):
                held = distribute_tensor(tensor.detach(), device_mesh, whole)
                setattr(each, own, Parameter(held, tensor.requires_grad) if isinstance(tensor, Parameter) else held)
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
            held = distribute_tensor(whole.detach(), mesh, [placement], src_data_rank=src_data_rank)
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


def _moves(name: str, comes: Layouts | None, wanted: Layouts | None) -> list[Move]:
    before, after = [[each] if isinstance(each, Placement) else [*(each or ())] for each in (comes, wanted)]
    if len(before) != len(after):
        raise ArgumentError(f"{name}: {len(before)} layouts and {len(after)} desired ones; want as many")
    return [*zip(before, after, strict=True)]


def _moved(values: tuple[Any, ...], moves: Sequence[Move], mesh: DeviceMesh, is_local: bool) -> tuple[Any, ...]:
    """Tensors in their desired placements, by a move for each of the first; the others do not change."""
    def moved(value: Any, source: Placement | None, target: Placement | None) -> Any:
        if isinstance(value, Tensor) and not isinstance(value, DTensor) and source is not None and target is not None:
            value = DTensor.from_local(value, mesh, [source])
        if target is None or not isinstance(value, DTensor):
            return value
        held = value.redistribute(mesh, [target])
        return held.to_local() if is_local else held

    return (*[moved(value, *move) for value, move in zip(values, moves, strict=False)], *values[len(moves) :])


def _move_inputs(
    module: Module, mesh: DeviceMesh, moves: Sequence[Move], named: Mapping[str, Move] | None = None, is_local: bool = False
) -> None:
    """Redistribute a module's inputs before each call."""
    def move(module: Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        known = {name: _moved((options[name],), [how], mesh, is_local)[0] for name, how in (named or {}).items()
                 if name in options}
        return _moved(inputs, moves, mesh, is_local), {**options, **known}

    module.register_forward_pre_hook(move, with_kwargs=True)


def _move_outputs(module: Module, mesh: DeviceMesh, moves: Sequence[Move], is_local: bool) -> None:
    """Redistribute a module's results after each call."""
    def move(module: Module, inputs: Any, output: Any) -> Any:
        is_one = not isinstance(output, tuple)
        found = _moved((output,) if is_one else output, moves, mesh, is_local)
        return found[0] if is_one else found

    module.register_forward_hook(move)


def _matches(name: str, path: str) -> bool:
    names, parts = name.split("."), path.split(".")
    return len(names) == len(parts) and all(map(fnmatchcase, names, parts))
