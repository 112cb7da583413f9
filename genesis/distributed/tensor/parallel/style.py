"""Styles of tensor parallelism: placements of a layer's inputs and outputs, and sharding of its parameters.

Layers exchange local tensors. A tensor's placement also applies to its gradient: see `redistribution.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.nn.functional import all_reduce
from genesis.distributed.process_group import ProcessGroup
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from genesis.distributed.tensor.redistribution import redistribute_local
from genesis.distributed.tensor.sharded_parameter import shard_parameters
from genesis.ir.errors import ArgumentError
from genesis.nn import functional
from genesis.nn.embedding import Embedding
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

Layouts = Placement | Sequence[Placement | None]


class ParallelStyle:
    """A style: `apply(module, device_mesh, src_data_rank)` changes the module in place."""

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Shard `module` over a mesh of one axis."""
        raise NotImplementedError(f"{type(self).__name__} lacks apply(module, device_mesh, src_data_rank), which styles define")


class ColwiseParallel(ParallelStyle):
    """A Linear or an Embedding sharded by outputs.

    Args:
        input_layouts: the input's placement; by default Replicate. With Shard(1), parts of sequences are gathered.
        output_layouts: the result's placement; by default Shard(-1), the rank's own part.
        use_local_output: no effect: layers return local tensors.

    >>> ColwiseParallel(output_layouts=genesis.distributed.tensor.Replicate())
    ColwiseParallel(input_layouts=Replicate(), output_layouts=Replicate())
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True
    ) -> None:
        self.input_layouts, self.output_layouts = input_layouts or Replicate(), output_layouts or Shard(-1)

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Shard a Linear or an Embedding by outputs. Raises TypeError for another module."""
        if isinstance(module, Linear):
            parts: dict[str, Placement] = {"weight": Shard(0), "bias": Shard(0)}
        else:
            module, parts = _embedding(module, self), {"weight": Shard(1)}
        shard_parameters(module, device_mesh, parts, src_data_rank)
        group = device_mesh.get_group()
        # each rank's outputs contribute a term to the gradient of the shared input
        _move_inputs(module, group, [(self.input_layouts, Replicate())], Partial() if isinstance(module, Linear) else None)
        _move_outputs(module, group, [(Shard(-1), self.output_layouts)])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts})"


class RowwiseParallel(ParallelStyle):
    """A Linear sharded by inputs, or an Embedding sharded by rows.

    Args:
        input_layouts: the input's placement; by default Shard(-1) for a Linear, Replicate for an Embedding.
        output_layouts: the result's placement; by default Replicate. With Shard(1), a rank gets a part of the sequence.
        use_local_output: no effect: layers return local tensors.
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True
    ) -> None:
        self.input_layouts, self.output_layouts = input_layouts, output_layouts or Replicate()

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Shard a Linear by inputs, or an Embedding by rows. Raises TypeError for another module."""
        group, wanted = device_mesh.get_group(), self.output_layouts
        if isinstance(module, Linear):
            shard_parameters(module, device_mesh, {"weight": Shard(1), "bias": Replicate()}, src_data_rank)
            if isinstance(wanted, Shard) and module.bias is not None:
                _add_gradients(module.bias, group)
            _move_inputs(module, group, [(self.input_layouts or Shard(-1), Shard(-1))])
            module.forward = _SumOfLinears(module, wanted, group)  # type: ignore[method-assign]
        else:
            table = _embedding(module, self)
            shard_parameters(table, device_mesh, {"weight": Shard(0)}, src_data_rank)
            _move_inputs(table, group, [(self.input_layouts or Replicate(), Replicate())])
            table.forward = _SumOfRows(table, wanted, group)  # type: ignore[method-assign]

    __repr__ = ColwiseParallel.__repr__


class SequenceParallel(ParallelStyle):
    """A LayerNorm, RMSNorm, Dropout or similar, computed on each rank for a part of the sequence.

    Inputs and outputs are parts along axis `sequence_dim`; parameters are the same on all ranks, and their gradients are summed
    over all. `use_local_output` has no effect.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_dim = sequence_dim

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Sum the module's parameter gradients over the ranks."""
        names = [name for name, _ in module.named_parameters(recurse=False)]
        shard_parameters(module, device_mesh, {name: Replicate() for name in names}, src_data_rank)
        for parameter in module.parameters(recurse=False):
            _add_gradients(parameter, device_mesh.get_group())

    def __repr__(self) -> str:
        return f"SequenceParallel(sequence_dim={self.sequence_dim})"


class PrepareModuleInput(ParallelStyle):
    """Changes the placements of a module's inputs.

    Args:
        input_layouts: the given placement of each positional input; None leaves an input unchanged.
        desired_input_layouts: the desired placements.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same for keyword inputs.
        use_local_output: no effect: the module gets local tensors.

    Raises ValueError if the numbers or names of layouts differ.
    """

    def __init__(
        self, *, input_layouts: Layouts | None = None, desired_input_layouts: Layouts | None = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False,
    ) -> None:
        self.moves = _moves("PrepareModuleInput", input_layouts, desired_input_layouts)
        comes, wanted = input_kwarg_layouts or {}, desired_input_kwarg_layouts or {}
        if comes.keys() != wanted.keys():
            raise ArgumentError(f"PrepareModuleInput: named inputs {[*comes]} and {[*wanted]}; want the same ones")
        self.named_moves = {name: (comes[name], wanted[name]) for name in comes}

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Redistribute the inputs before each call."""
        _move_inputs(module, device_mesh.get_group(), self.moves, None, self.named_moves)


class PrepareModuleOutput(ParallelStyle):
    """Changes the placements of a module's results: as `PrepareModuleInput`."""

    def __init__(self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True) -> None:
        self.moves = _moves("PrepareModuleOutput", output_layouts, desired_output_layouts)

    def apply(self, module: Module, device_mesh: DeviceMesh, src_data_rank: int | None = 0) -> None:
        """Redistribute the results after each call."""
        _move_outputs(module, device_mesh.get_group(), self.moves)


# ---- shared code ----
Moves = Sequence[tuple[Placement | None, Placement | None]]


class _SumOfLinears:
    """The forward of a Linear sharded by inputs: the bias is added once, to the sum."""

    def __init__(self, module: Linear, wanted: Placement, group: ProcessGroup) -> None:
        self.module, self.wanted, self.group = module, wanted, group

    def __call__(self, input: Tensor) -> Tensor:
        term = functional.linear(input, self.module.weight)
        total = redistribute_local(term, Partial(), self.wanted, self.group)
        return total if self.module.bias is None else total + self.module.bias


class _SumOfRows:
    """The forward of an Embedding sharded by rows: other ranks' rows are zeros here."""

    def __init__(self, module: Embedding, wanted: Placement, group: ProcessGroup) -> None:
        self.module, self.wanted, self.group = module, wanted, group
        self.rows = module.weight.shape[0]
        self.first = group.rank() * self.rows
        padding = module.padding_idx
        self.padding = padding - self.first if padding is not None and 0 <= padding - self.first < self.rows else None

    def __call__(self, input: Tensor) -> Tensor:
        index = input - self.first
        here = (index >= 0) & (index < self.rows)
        found = functional.embedding(index.clamp(0, self.rows - 1), self.module.weight, self.padding)
        return redistribute_local(found * here.unsqueeze(-1), Partial(), self.wanted, self.group)


def _embedding(module: Module, style: ParallelStyle) -> Embedding:
    """The module, checked for sharding. Raises TypeError for another kind."""
    if not isinstance(module, Embedding):
        raise TypeError(f"{type(style).__name__}: {type(module).__name__}; want a Linear or an Embedding")
    if module.max_norm is not None or module.scale_grad_by_freq or module.sparse:
        raise ArgumentError(f"{type(style).__name__}: an Embedding with max_norm, scale_grad_by_freq or sparse; want none")
    return module


def _add_gradients(parameter: Tensor, group: ProcessGroup) -> None:
    """Sum a replicated parameter's gradient over ranks, each of which used it for a part of the sequence."""
    if group.size() > 1 and parameter.requires_grad:
        parameter.register_hook(lambda gradient: all_reduce(gradient, "sum", group))


def _moves(name: str, comes: Layouts | None, wanted: Layouts | None) -> Moves:
    before, after = [[each] if isinstance(each, Placement) else [*(each or ())] for each in (comes, wanted)]
    if len(before) != len(after):
        raise ArgumentError(f"{name}: {len(before)} layouts and {len(after)} desired ones; want as many")
    return [*zip(before, after, strict=True)]


def _moved(value: Any, move: tuple[Placement | None, Placement | None], group: ProcessGroup, gradient: Any = None) -> Any:
    source, target = move
    if source is None or target is None or not isinstance(value, Tensor):
        return value
    return redistribute_local(value, source, target, group, gradient)


def _move_inputs(
    module: Module, group: ProcessGroup, moves: Moves, gradient: Placement | None = None,
    named: dict[str, tuple[Placement, Placement]] | None = None,
) -> None:
    """Redistribute a module's inputs before each call."""
    def move(module: Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        moved = [_moved(value, how, group, gradient) for value, how in zip(inputs, moves, strict=False)]
        known = {name: _moved(options[name], how, group) for name, how in (named or {}).items() if name in options}
        return (*moved, *inputs[len(moved) :]), {**options, **known}

    module.register_forward_pre_hook(move, with_kwargs=True)


def _move_outputs(module: Module, group: ProcessGroup, moves: Moves) -> None:
    """Redistribute a module's results after each call."""
    def move(module: Module, inputs: Any, output: Any) -> Any:
        if not isinstance(output, tuple):
            return _moved(output, moves[0], group)
        return (*[_moved(value, how, group) for value, how in zip(output, moves, strict=False)], *output[len(moves) :])

    module.register_forward_hook(move)
