"""From a Schedule to one module of LLVM IR: kernels, their argument blocks as data, and a function that runs them in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from genesis.codegen.cpu.freestanding.interface import Interface
from genesis.codegen.cpu.freestanding.runner_ir import runner_ir
from genesis.codegen.cpu.program import launches_of, sources_of
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.lower.schedule import Schedule
from genesis.lower.stages import HostCall
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.native import BlockWord, Launch, ProgramLayout, Symbol
from genesis.runtime.numba_compiler import compile_object

THREADS = 1  # a thread of the caller's runs all


class HostCallError(ValueError):
    """A stage of a program needs Python: `node` is its operation."""

    def __init__(self, node: int) -> None:
        super().__init__(node)
        self.node = node


class _StaticSlots(SlotMap):
    """A program's own memory as data of the object file."""

    is_portable = True

    def __init__(self, schedule: Schedule, arena_slot: int, output_slot: int, scalar_slot: int) -> None:
        super().__init__(schedule, arena_slot, output_slot, scalar_slot)
        self.data: list[str] = []

    def _add(self, kind: str) -> Symbol:
        name = f"data.{len(self.data)}"
        self.data.append(f'@"{name}" = internal {kind}, align 64')
        return Symbol(name)

    def room(self, nbytes: int) -> BlockWord:
        return self._add(f"global [{max(nbytes, 1)} x i8] zeroinitializer")

    def table(self, values: np.ndarray) -> BlockWord:
        content = "".join(f"\\{byte:02x}" for byte in values.tobytes())
        return self._add(f'constant [{values.nbytes} x i8] c"{content}"')


def object_file(nodes: Sequence[Node], schedule: Schedule, interface: Interface, name: str) -> bytes:
    """An ELF object that defines `{name}_load`, `{name}_run` and `{name}_free`. Raises HostCallError."""
    output_slot = len(interface.inputs)
    arena_slot = output_slot + len(interface.outputs)
    slots = _StaticSlots(schedule, arena_slot, output_slot, arena_slot + 1)
    sources = sources_of(nodes, schedule, THREADS)
    symbols = {key: Symbol(f"kernel.{number}") for number, key in enumerate(sources)}
    launches: list[Launch] = []
    for stage in schedule.stages:
        found = launches_of(nodes, stage, slots, symbols, THREADS)
        if found is None or any(
            PRIMITIVES[nodes[call.node].op].kind == "collective" for call in stage if isinstance(call, HostCall)
        ):
            [call] = stage
            assert isinstance(call, HostCall)
            raise HostCallError(call.node)
        launches += found
    layout = ProgramLayout(arena_slot + 1 + len(interface.scalars))
    layout.end(launches)
    arena_bytes = schedule.arena_bytes + slots.workspace_bytes
    text = runner_ir(layout, interface, arena_bytes, name, slots.data, [symbol.name for symbol in symbols.values()])
    modules = [(source.symbol, symbols[key].name, source.llvm_ir()) for key, source in sources.items()]
    return compile_object(modules, text, [f"{name}_{what}" for what in ("load", "run", "free")])
