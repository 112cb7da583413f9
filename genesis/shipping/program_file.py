"""Exported programs as files: a safetensors file with the graph as JSON in its metadata, the state and the machine code.

Machine code is used only if everything it depends on is the same: the kernel's source, the compilers, the processor. Otherwise
the graph is compiled again. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from genesis.codegen.backend import backend_of
from genesis.functions.from_data import from_numpy
from genesis.ir.dtypes import NAMED
from genesis.lower import Lowered
from genesis.lower.stored import makers, passes
from genesis.lower.tables import read_nodes, read_tables, write_nodes, write_tables
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.determinism import planned_threads
from genesis.runtime.devices import CPU
from genesis.runtime.kernel_cache import kernel_cache
from genesis.runtime.loaded_source import are_as_loaded
from genesis.runtime.machine_code import target
from genesis.runtime.native import run_source
from genesis.runtime.number_of_threads import get_num_threads
from genesis.runtime.team import worker_source
from genesis.runtime.toolchain import emitters
from genesis.serialization.safetensors import SafetensorError, safe_open, save_file
from genesis.shipping.dynamic import Dim, Formula, Sizes
from genesis.shipping.graph_of_call import CallGraph, Input
from genesis.shipping.variant import Variant
from genesis.tensor.handle import Tensor

_FORMAT = "genesis program 1"
_STATE, _CODE = "state.", "code."


def write_program(
    file: str | os.PathLike[str], graph: CallGraph, sizes: Sizes, state: Mapping[str, Tensor], variant: Variant
) -> None:
    """Write a program, with the machine code of a variant."""
    with kernel_cache.noting() as kernels:
        lowered = variant.plan().lowered
    objects = dict(kernel_cache.object_code(kernel) for kernel in (*kernels, run_source(), worker_source()))
    made_for = _surroundings()
    if not are_as_loaded([*makers(), *emitters()]):  # nobody knows by which text it was made
        objects, made_for = {}, []
    saved = {"format": _FORMAT, "graph": _graph_as_json(graph), "sizes": _sizes_as_json(sizes),
            "lowered": write_tables(lowered).decode(), "made for": made_for, "digest": _digest(objects)}
    tensors = {_STATE + name: tensor.detach().clone() for name, tensor in state.items()}
    tensors |= {_CODE + name: from_numpy(np.frombuffer(code, np.uint8).copy()) for name, code in objects.items()}
    save_file(tensors, file, {"program": json.dumps(saved)})


def read_program(file: str | os.PathLike[str], machine_code: bool) -> tuple[CallGraph, Sizes, Lowered | None]:
    """The contents of a program file, and its lowered graph if that is valid here. Raises ValueError for another file."""
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
        lowered = None
        if machine_code:
            kernel_cache.supply(objects)
            if saved["made for"] == _surroundings():
                here = backend_of(CPU).target(get_num_threads(), planned_threads(), CPU)
                lowered = read_tables(saved["lowered"].encode(), here)
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise ValueError(f"load_program: {os.fspath(file)} is damaged: {problem or type(problem).__name__}") from problem
    return graph, sizes, lowered


def _surroundings() -> list[str]:
    """The conditions of a lowered graph: the passes, the processor, the number of threads."""
    return [passes(), *target(), f"{get_num_threads()} {planned_threads()}"]


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
