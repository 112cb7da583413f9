"""Exported programs as files: a safetensors file with the graph as JSON in its metadata, the state and the machine code; and
object files, which C programs can link without Python and genesis.

Machine code is used only if everything it depends on is the same: the kernel's source, the compilers, the processor. Otherwise
the graph is compiled again. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from genesis.codegen.cpu.freestanding.assemble import THREADS, HostCallError, object_file
from genesis.codegen.cpu.freestanding.interface import Copy, Interface
from genesis.functions.from_data import from_numpy
from genesis.ir.dtypes import NAMED, DType, float64, int64
from genesis.ir.shapes import numel
from genesis.lower import Lowered, lower
from genesis.lower.target import Target
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.kernel_cache import kernel_cache
from genesis.runtime.loaded_source import are_as_loaded
from genesis.runtime.machine_code import target
from genesis.runtime.native import run_source
from genesis.runtime.team import worker_source
from genesis.runtime.toolchain import emitters
from genesis.serialization.safetensors import SafetensorError, safe_open, save_file
from genesis.shipping.dynamic import Dim, Formula, Sizes
from genesis.shipping.graph_of_call import CallGraph, ExportError, Input, short
from genesis.shipping.nodes_as_json import read_nodes, write_nodes
from genesis.shipping.variant import Variant
from genesis.tensor.handle import Tensor

_FORMAT = "genesis program 1"
_STATE, _CODE = "state.", "code."


def write_program(
    file: str | os.PathLike[str], graph: CallGraph, sizes: Sizes, state: Mapping[str, Tensor], variant: Variant
) -> None:
    """Write a program, with the machine code of a variant."""
    with kernel_cache.noting() as kernels:
        variant.plan()
    objects = dict(kernel_cache.object_code(kernel) for kernel in (*kernels, run_source(), worker_source()))
    if not are_as_loaded(emitters()):  # nobody knows by which text it was made
        objects = {}
    saved = {"format": _FORMAT, "graph": _graph_as_json(graph), "sizes": _sizes_as_json(sizes),
             "digest": _digest(objects)}
    tensors = {_STATE + name: tensor.detach().clone() for name, tensor in state.items()}
    tensors |= {_CODE + name: from_numpy(np.frombuffer(code, np.uint8).copy()) for name, code in objects.items()}
    save_file(tensors, file, {"program": json.dumps(saved)})


def read_program(file: str | os.PathLike[str], machine_code: bool) -> tuple[CallGraph, Sizes]:
    """The contents of a program file, whose machine code this process then has. Raises ValueError for another file."""
    try:
        with safe_open(file, backend="pread") as opened:
            tensors = opened.get_tensors()
            saved = json.loads((opened.metadata() or {}).get("program", "{}"))
    except (SafetensorError, ValueError) as problem:
        raise ValueError(f"load_program: {os.fspath(file)} is no exported program: {problem}") from problem
    if saved.get("format") != _FORMAT:
        raise ValueError(f"load_program: {os.fspath(file)} has format {saved.get('format')!r}; want {_FORMAT!r}")
    try:
        state = {name[len(_STATE) :]: tensor for name, tensor in tensors.items() if name.startswith(_STATE)}
        objects = {name[len(_CODE) :]: tensor.numpy().tobytes() for name, tensor in tensors.items() if name.startswith(_CODE)}
        graph, sizes = _graph_of_json(saved["graph"], state), _sizes_of_json(saved["sizes"])
        if _digest(objects) != saved["digest"]:
            raise ValueError("its machine code is not what was written")
        if machine_code:
            kernel_cache.supply(objects)
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise ValueError(f"load_program: {os.fspath(file)} is damaged: {problem or type(problem).__name__}") from problem
    return graph, sizes


def _digest(objects: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, code in sorted(objects.items()):
        digest.update(f"{name} {len(code)}\n".encode() + code)
    return digest.hexdigest()


def _graph_as_json(graph: CallGraph) -> dict[str, Any]:
    return {
        "nodes": write_nodes(graph.nodes), "lines": [list(line) if line else None for line in graph.lines],
        "inputs": [list(one) for one in graph.inputs], "numbers": graph.numbers, "outputs": graph.outputs,
        "written": graph.written, "arguments": graph.arguments, "result": graph.result, "names": graph.names,
        "leaves": [[list(shape), dtype.name] for shape, dtype in graph.leaves],
    }


def _graph_of_json(saved: Mapping[str, Any], state: dict[str, Tensor]) -> CallGraph:
    nodes = read_nodes(saved["nodes"])
    unknown = [node.op for node in nodes if node.op not in PRIMITIVES]
    if unknown:
        raise ValueError(f"no operation {unknown[0]!r} is registered here")
    lines = [(str(line[0]), int(line[1])) if line else None for line in saved["lines"]]
    inputs = [Input(*one) for one in saved["inputs"]]
    for one in inputs:
        node = nodes[one.node]
        if one.kind != "argument" and (state[one.name].shape != node.shape or state[one.name].dtype is not node.dtype):
            raise ValueError(f"{one.name} is {state[one.name].dtype.name}{list(state[one.name].shape)} in the file")
    leaves = [(tuple(shape), NAMED[dtype]) for shape, dtype in saved["leaves"]]
    return CallGraph(nodes, lines, [], inputs, saved["numbers"], saved["outputs"], saved["written"], state, saved["arguments"],
                     saved["result"], leaves, [], saved["names"])


def _sizes_as_json(sizes: Sizes) -> dict[str, Any]:
    return {
        "dims": [[dim.__name__, dim.min, dim.max] for dim in sizes.dims], "axes": sizes.axes, "examples": sizes.examples,
        "formulas": [[*key, formula.kind, [[c.numerator, c.denominator, *degrees] for c, degrees in formula.terms]]
                     for key, formula in sizes.formulas.items()],
    }


def _sizes_of_json(saved: Mapping[str, Any]) -> Sizes:
    return Sizes(
        [Dim(name, min=least, max=most) for name, least, most in saved["dims"]], [(*axis,) for axis in saved["axes"]],
        tuple(saved["examples"]),
        {(node, number): Formula(kind, tuple((Fraction(a, b), tuple(degrees)) for a, b, *degrees in terms))
         for node, number, kind, terms in saved["formulas"]})


_ALIGNMENT = 64
_TYPES = {"float32": "float", "float64": "double", "bool": "_Bool"} | {
    f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}

_HEADER = """\
/* A program of genesis, for {cpu}.

   Inputs, each in row-major order:
{inputs}
   Outputs, memory that the caller has reserved, row-major too:
{outputs}
   Not thread-safe: one call at a time. Link with libc alone: cc main.c {name}.o
*/
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Read the weights, {name}.weights, and reserve memory for runs: {megabytes:.1f} MB.
   Returns 0; 1: no such file; 2: not the weights of this program; 3: too little memory. */
int {name}_load(const char *weights);

/* Compute the outputs of the inputs. Returns 0; -1: no weights are loaded; 4: an index is out of range, or a divisor 0. */
int {name}_run(const void *const *inputs, void *const *outputs);

/* Give the memory back. */
void {name}_free(void);

#ifdef __cplusplus
}}
#endif

#endif
"""


def write_object(
    folder: str | os.PathLike[str], name: str, graph: CallGraph, variant: Variant, state: dict[str, Tensor], names: list[str]
) -> None:
    """Write `{name}.o`, `{name}.h` and `{name}.weights`. Raises ExportError for operations that need Python."""
    if not name.isidentifier():
        raise ValueError(f"to_object: name {name!r}; want an identifier of C")
    if graph.written:
        raise ExportError(f"to_object: {', '.join(graph.written)} would be written over; want a program without such state")
    kinds = [float64 if type(number) is float else int64 for number in variant.numbers]
    lowered = lower(variant.nodes, variant.values, Target(THREADS), kinds)
    weights = _Weights()
    interface = _interface(lowered, graph, variant, weights, state)
    try:
        content = object_file(lowered.nodes, lowered.schedule, interface, name)
    except HostCallError as problem:
        node = lowered.nodes[problem.node]
        where = short(graph.lines[lowered.origins[problem.node]])
        raise ExportError(f"to_object: {node.op} at {where or 'an unknown line'} is computed by Python's libraries (NumPy, "
                          "SciPy); an object file has libc alone") from problem
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / f"{name}.o").write_bytes(content)
    (path / f"{name}.weights").write_bytes(weights.content)
    leaves = [(one.shape, one.dtype) for one in (variant.nodes[node] for node in graph.outputs)]
    taken = [_given(variant, graph, number) for number in range(len(graph.leaves))]
    total = interface.weights_bytes + interface.working_bytes + lowered.schedule.arena_bytes
    (path / f"{name}.h").write_text(_HEADER.format(
        name=name, upper=name.upper(), cpu=target()[1], inputs=_listed(taken, names),
        outputs=_listed(leaves, [f"output {k}" for k in range(len(leaves))]), megabytes=total / 1e6))


def _given(variant: Variant, graph: CallGraph, number: int) -> tuple[tuple[int, ...], DType]:
    """The shape and dtype of an argument tensor."""
    for one in graph.inputs:
        if one.kind == "argument" and int(one.name) == number:
            return variant.nodes[one.node].shape, variant.nodes[one.node].dtype
    return graph.leaves[number]


def _listed(leaves: list[tuple[tuple[int, ...], DType]], names: list[str]) -> str:
    return "\n".join(
        f"     {k}  {_TYPES.get(dtype.name, dtype.name)} {name}{''.join(f'[{extent}]' for extent in shape)}"
        for k, ((shape, dtype), name) in enumerate(zip(leaves, names, strict=True))) or "     none"


class _Weights:
    """The concatenated bytes of the state's tensors."""

    def __init__(self) -> None:
        self.content = bytearray()

    def add(self, tensor: Tensor) -> int:
        """Append a tensor; returns its offset."""
        self.content += b"\0" * (-len(self.content) % _ALIGNMENT)
        start = len(self.content)
        self.content += tensor.detach().contiguous().numpy().tobytes()
        return start


def _interface(lowered: Lowered, graph: CallGraph, variant: Variant, weights: _Weights, state: dict[str, Tensor]) -> Interface:
    nodes, locations = lowered.nodes, lowered.schedule.locations
    by_node = {one.node: one for one in graph.inputs}
    inputs: list[int | None] = []
    starts: list[int] = []
    for index in lowered.inputs:
        one = by_node[lowered.origins[index]]
        is_given = one.kind == "argument"
        inputs.append(int(one.name) if is_given else None)
        starts.append(0 if is_given else weights.add(state[one.name]))
    sizes = {location.position: nodes[value].nbytes for value, location in locations.items() if location.kind == "output"}
    outputs: list[int | None] = [None] * len(sizes)
    copies: list[Copy | None] = []
    for result, node in enumerate(graph.outputs):
        base, layout = lowered.outputs[variant.values.index(node)]
        location, size = locations[base], nodes[base].dtype.itemsize
        direct = location.kind == "output" and outputs[location.position] is None and layout.is_contiguous and not layout.offset
        if direct and numel(layout.shape) * size == sizes[location.position]:
            outputs[location.position] = result
            copies.append(None)
        else:
            slot = location.position + (len(inputs) if location.kind == "output" else 0)
            copies.append(Copy(slot, layout.offset, layout.shape, layout.strides, size))
    buffers, working = [], 0
    for number, given in enumerate(outputs):
        buffers.append(working)
        working += 0 if given is not None else -(-sizes[number] // _ALIGNMENT) * _ALIGNMENT
    return Interface(inputs, starts, outputs, buffers, copies, [_word(number) for number in variant.numbers],
                     len(weights.content), working)


def _word(number: float) -> int:
    """A number as a 64-bit word."""
    return int.from_bytes(struct.pack("=d" if type(number) is float else "=q", number), "little", signed=True)
