"""Exported programs: a graph with its state, without the exported function."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genesis.execution.realize import readable
from genesis.ir.annotations import Options
from genesis.ir.graph import VerificationError, format_nodes
from genesis.nn.module import Module
from genesis.runtime.devices import CPU
from genesis.shipping.dynamic import Sizes
from genesis.shipping.graph_of_call import CallGraph, ExportError, short
from genesis.shipping.nodes_as_json import verify_layouts
from genesis.shipping.program_file import read_program, write_object, write_program
from genesis.shipping.trees import built, tensors_of
from genesis.shipping.variant import Variant
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Array


@dataclass(frozen=True)
class ExportGraphSignature:
    """Names of a program's inputs and outputs.

    Attributes:
        user_inputs: the tensors of the arguments.
        user_outputs: the values that are returned, as the listing names them.
        parameters: those of the module.
        buffers: those of the module.
        inputs_to_parameters: input of the graph -> parameter.
        inputs_to_buffers: input of the graph -> buffer.
        buffers_to_mutate: value -> the buffer that holds it after a call.
    """

    user_inputs: tuple[str, ...]
    user_outputs: tuple[str, ...]
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    inputs_to_parameters: Mapping[str, str]
    inputs_to_buffers: Mapping[str, str]
    buffers_to_mutate: Mapping[str, str]


class ExportedProgram:
    """A program that runs without its exported function: see `genesis.export`.

    It takes tensors with the shapes and dtypes of the examples (except along dynamic axes), computes at once, and has no
    gradients. Other arguments must equal the examples'.

    Attributes:
        graph: nodes, inputs and outputs.
        state_dict: the tensors that it reads, by name: parameters, buffers, constants.
        sizes: the dynamic sizes and the graph's formulas.
    """

    def __init__(self, graph: CallGraph, sizes: Sizes) -> None:
        self.graph = graph
        self.state_dict: dict[str, Tensor] = graph.state
        self.sizes = sizes
        self._variants: dict[tuple[int, ...], Variant] = {}

    # ---- running ----
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute. Raises ValueError, naming the first argument that does not match the examples."""
        refuse("an exported program runs")
        if thread_state.deferred:
            raise RuntimeError("an exported program computes at once: it cannot be transformed, by vmap or grad")
        leaves = self._leaves(args, kwargs)
        for path, leaf in leaves:
            if thread_state.grad_enabled and leaf.requires_grad:
                raise RuntimeError(f"{path} requires gradients, which an exported program has not: call it under no_grad()")
        sizes = self.sizes.of([leaf.shape for _, leaf in leaves])
        for number, ((path, leaf), (shape, dtype)) in enumerate(zip(leaves, self.graph.leaves, strict=True)):
            wanted = self.sizes.shape(number, shape, sizes)
            if leaf.shape != wanted or leaf.dtype is not dtype or leaf.device is not CPU:
                raise ValueError(
                    f"{path} is {leaf.dtype.name}{list(leaf.shape)} on {leaf.device}; the program takes "
                    f"{dtype.name}{list(wanted)} on cpu")
        variant = self.variant(sizes)
        arrays = [_contiguous(leaves[int(one.name)][1] if one.kind == "argument" else self.state_dict[one.name])
                  for one in self.graph.inputs]
        values = variant.run(arrays)
        for name, node in self.graph.written.items():
            self.state_dict[name] = tensor_of(values[node])
        given = {one.node: leaves[int(one.name)][1] for one in self.graph.inputs if one.kind == "argument"}
        tensors = [given[node] if node in given else tensor_of(values[node]) for node in self.graph.outputs]
        return built(self.graph.result, tensors)

    def _leaves(self, args: Sequence[Any], kwargs: Options) -> list[tuple[str, Any]]:
        """The tensors among the arguments, with their names."""
        _, ((_, items), (_, options)) = self.graph.arguments
        names = self.graph.names
        args, kwargs = [*args], dict(kwargs)
        for name in names[len(args) : len(items)]:  # given by name, positional in the example
            if name not in kwargs:
                break
            args.append(kwargs.pop(name))
        if len(args) != len(items) or {*kwargs} != {name for name, _ in options}:
            wanted = ", ".join([*names, *[name for name, _ in options]])
            got = f"{len(args)} by position, and {', '.join(kwargs) or 'none'} by name"
            raise ValueError(f"the program takes ({wanted}); got {got}")
        given = [*zip(names, items, args, strict=True), *[(name, spec, kwargs[name]) for name, spec in options]]
        leaves = [leaf for name, spec, value in given for leaf in tensors_of(spec, value, name)]
        for path, leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise ValueError(f"{path} is {leaf!r:.60}; want a tensor")
        return leaves

    def variant(self, sizes: tuple[int, ...] | None = None) -> Variant:
        """The program at the given sizes, by default the examples'."""
        sizes = self.sizes.examples if sizes is None else sizes
        found = self._variants.get(sizes)
        if found is None:
            nodes, numbers = self.sizes.at(sizes, self.graph.nodes, self.graph.numbers)
            try:
                verify_layouts(nodes)
            except VerificationError as problem:
                after = (short(line) for line in self.graph.lines[problem.index or 0 :] if line)  # a view has its reader's line
                raise ExportError(
                    f"export: the program has no form for {self.sizes.described(sizes)} at {next(after, 'its results')}: "
                    f"{problem}; want Dims whose `min` and `max` leave such sizes out") from problem
            found = self._variants[sizes] = Variant(nodes, numbers, [*self.graph.outputs, *self.graph.written.values()])
        return found

    def module(self) -> Module:
        """The program as a module."""
        return ExportedModule(self)

    # ---- reading ----
    @property
    def graph_signature(self) -> ExportGraphSignature:
        """The names of its inputs, state and outputs."""
        inputs = self.graph.inputs
        named = {kind: {f"%{one.node}": one.name for one in inputs if one.kind == kind} for kind in ("parameter", "buffer")}
        return ExportGraphSignature(
            tuple(path for path, _ in self.named_arguments()), tuple(f"%{node}" for node in self.graph.outputs),
            tuple(named["parameter"].values()), tuple(named["buffer"].values()), named["parameter"], named["buffer"],
            {f"%{node}": name for name, node in self.graph.written.items()})

    def named_arguments(self) -> list[tuple[str, int]]:
        """(name, number) of each argument tensor."""
        _, ((_, items), (_, options)) = self.graph.arguments
        pairs = [*zip(self.graph.names, items, strict=True), *options]
        return [leaf for name, spec in pairs for leaf in tensors_of(spec, built(spec, range(1 << 20)), name)]

    def __repr__(self) -> str:
        taken = ", ".join(path for path, _ in self.named_arguments())
        count = sum(tensor.numel() for tensor in self.state_dict.values())
        return f"<ExportedProgram of ({taken}): {len(self.graph.nodes)} nodes, {count:,} numbers of state>"

    def __str__(self) -> str:
        names = {number: path for path, number in self.named_arguments()}
        notes = {one.node: names[int(one.name)] if one.kind == "argument" else f"{one.kind} {one.name}"
                 for one in self.graph.inputs}
        lines = [format_nodes(self.graph.nodes, None, lambda i: notes.get(i) or short(self.graph.lines[i]))]
        lines += [f"{name} becomes %{node}" for name, node in self.graph.written.items()]
        lines += [str(self.sizes)] if self.sizes.dims else []
        return "\n".join([*lines, f"return {', '.join(f'%{node}' for node in self.graph.outputs)}"])

    # ---- shipping ----
    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the program to a file for `genesis.load_program`: graph, state, and machine code for this processor.

        The file is in the safetensors format: JSON and numbers, no pickle.
        """
        write_program(file, self.graph, self.sizes, self.state_dict, self.variant())

    def to_object(self, folder: str | os.PathLike[str], name: str = "genesis") -> None:
        """Write an ELF object, its C header and its weights to a folder: `{name}.o`, `{name}.h`, `{name}.weights`.

        A C program links the object with libc alone, reads the weights by `{name}_load` and computes by `{name}_run`, on one
        thread, at the sizes of the examples. The code is for this kind of processor, or for GENESIS_TARGET.

        Raises ExportError for a program that updates its state, or needs Python's libraries: LAPACK factorizations, FFTs by
        SciPy.
        """
        names = [path for path, _ in self.named_arguments()]
        write_object(folder, name, self.graph, self.variant(), self.state_dict, names)


class ExportedModule(Module):
    """An exported program as a module."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        self.program = program
        self.training = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program."""
        return self.program(*args, **kwargs)


def _contiguous(tensor: Tensor) -> Array:
    """A tensor's array, computed, in row-major order."""
    array = readable(array_of(tensor))
    memory = array.memory
    assert memory is not None
    return array if memory.strides is None else Array(None, -1, array.node, memory.copied(array.node.dtype, CPU))


def load_program(file: str | os.PathLike[str], *, machine_code: bool = True) -> ExportedProgram:
    """The program in a file written by `ExportedProgram.save`, without its original function.

    On the same kind of processor, with the same genesis version and number of threads, nothing is compiled, and results are
    bitwise equal. Otherwise, or without `machine_code`, the graph is compiled again.

    Nothing is unpickled, but machine code runs: only load files from sources whose shared libraries you would load. Raises
    ValueError for a file that is damaged or not an exported program.
    """
    return ExportedProgram(*read_program(file, machine_code))
