"""From a Schedule to a program of a GPU: functions compiled or found, launches whose addresses each run supplies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from genesis.codegen.cuda import simulate
from genesis.codegen.cuda.binaries import cubin
from genesis.codegen.cuda.emit import emit_finish, emit_kernel
from genesis.codegen.cuda.gemm import gemms_of
from genesis.codegen.cuda.geometry import LAYERS, Launch, finishing, launch, team_of
from genesis.codegen.cuda.loops import calls_in_turn
from genesis.codegen.cuda.product import Step as ProductStep
from genesis.codegen.cuda.product import joined, matrices_of, steps_of
from genesis.codegen.cuda.signature import Function, Signature, words_of
from genesis.codegen.cuda.speeds import speeds_of
from genesis.codegen.places import Places
from genesis.codegen.segment import Segment
from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.kernel import Kernel, KernelArg
from genesis.lower.schedule import Schedule
from genesis.lower.stages import Call, HostCall, Loop, Product
from genesis.lower.target import SequentialTiles, Target
from genesis.runtime.cuda import SIMULATED
from genesis.runtime.cuda.program import FAULT, Program, Scalar, Step
from genesis.runtime.devices import Device
from genesis.runtime.uninterrupted import uninterrupted

__all__ = ["assemble", "target", "target_of"]

# Threads that a GPU is like: lowering has rows passed over several times from 16 for each thread on, 128, about one for each of
# an H100's or H200's 132 multiprocessors. Fewer long rows are passed over by a kernel for each pass, which several teams share.
WIDE = 8
# A tile leaves a third of a cache of 40 or 50 MB to the operands. Two blocks for each of 132 multiprocessors, of 64 rows and
# columns and 256 terms, are 2^28 multiplications. Some hundred launches are bound and captured in a fraction of a second.
SEQUENTIAL_TILES = SequentialTiles(nbytes=32 << 20, filling=1 << 28, calls=384)


def target(threads: int, device: Device) -> Target:
    """What lowering has to know of a GPU, for which the host's threads are nothing."""
    return target_of(device.memory.gpu.capability)


def target_of(capability: tuple[int, int]) -> Target:
    """What lowering has to know of GPUs of a compute capability.

    Sums of columns are kernels of their own: beside a pass over rows each team would add to its sums in memory at every point,
    which takes longer than to read the rows once more.
    """
    return Target(WIDE, SEQUENTIAL_TILES, unroll=False, strided=True, crossing=False, speeds=speeds_of(capability))


def assemble(
    nodes: Sequence[Node], schedule: Schedule, slot_format: str, arena_slot: int, output_slot: int, scalar_slot: int,
    threads: int, device: Device,
) -> tuple[list[Segment], int]:
    """The program, and the bytes that its arena needs: the schedule's, and workspace behind it. See `codegen.backend`."""
    assembly = _Assembly(schedule, arena_slot, output_slot, scalar_slot, device)
    segments: list[Segment] = []
    steps: list[Step] = []
    numbers: list[int] = []
    scalars = slot_format[scalar_slot:]

    def end() -> None:
        if steps:
            segments.append(Segment(Program(device.memory, steps.copy(), scalar_slot, scalars), None, tuple(numbers)))
            steps.clear()
            numbers.clear()

    for number, stage in enumerate(schedule.stages):
        steps += assembly.stage(nodes, stage)
        numbers += [number] * (len(steps) - len(numbers))
        for call in stage:
            if isinstance(call, HostCall):
                end()
                segments.append(Segment(None, call))
    end()
    return segments, schedule.arena_bytes + assembly.places.workspace_bytes


class _Assembly:
    """Steps of launches on one device."""

    def __init__(self, schedule: Schedule, arena_slot: int, output_slot: int, scalar_slot: int, device: Device) -> None:
        self.places = Places(schedule, arena_slot, output_slot, scalar_slot)
        self.memory = device.memory

    def stage(self, nodes: Sequence[Node], calls: Sequence[Call]) -> list[Step]:
        """The launches of a stage; of what the host computes, none."""
        kernels = [call for call in calls if isinstance(call, KernelCall)]
        steps = [step for group in self.alike(kernels) for step in self.kernels(group)] if kernels else []
        for call in calls:
            if isinstance(call, Product):
                steps += self.product(call, nodes[call.node].dtype)
            elif isinstance(call, Loop):
                steps += self.loop(nodes, call)
        return steps

    def kernels(self, calls: Sequence[KernelCall]) -> list[Step]:
        """The launches of a kernel: one for all calls, and one that finishes what is reduced by many blocks."""
        kernel, processors = calls[0].kernel, self.memory.gpu.processors
        largest = max((call.extents for call in calls), key=numel)
        team = team_of(kernel, largest, processors)
        team = team._replace(shared=team.shared and len(calls) == 1)
        grid = launch(kernel, largest, team, processors)
        partials = self.places.workspace(grid.partial_bytes) if grid.partial_bytes else 0
        fill = partial(self._word, partials=partials, shares=grid.shares)
        many, kinds = len(calls) > 1, _kinds(kernel)
        main = self._loaded((kernel.name, kinds, team, many), lambda: emit_kernel(kernel, team, many))
        steps = [_step(main, grid, calls, fill)]
        if grid.partial_bytes:
            finish = self._loaded((kernel.name, kinds, team, "finish"), lambda: emit_finish(kernel, team))
            steps.append(_step(finish, finishing(kernel, largest, team, processors), calls, fill))
        return steps

    def alike(self, calls: Sequence[KernelCall]) -> list[list[KernelCall]]:
        """The calls of a stage in groups that one launch serves, no more than a grid has layers. Who adds atomically, has
        totals, or has points that several teams would share though all calls run side by side, is alone.
        """
        processors = max(1, self.memory.gpu.processors // len(calls))
        groups: dict[Any, list[KernelCall]] = {}
        for number, call in enumerate(calls):
            alone = Signature(call.kernel).is_atomic or call.kernel.has_totals or (
                team_of(call.kernel, call.extents, processors).shared)
            groups.setdefault((_kinds(call.kernel), number if alone else None), []).append(call)
        return [group[first : first + LAYERS] for group in groups.values() for first in range(0, len(group), LAYERS)]

    def loop(self, nodes: Sequence[Node], loop: Loop) -> list[Step]:
        """The launches of a loop: its calls on one tile after the other; and those that bring sums to their dtypes."""
        steps: list[Step] = []
        for call, adds in calls_in_turn(nodes, loop):
            steps += self.kernels([call]) if isinstance(call, KernelCall) else \
                self.product(call, nodes[call.node].dtype, adds)
        for value in loop.sums:
            if value not in self.places.schedule.sums:
                continue
            node = nodes[value]
            pointers = {"partial": self.places.sum_of(value, 0, 0), "c": self.places.address(value)}
            steps.append(self._step(joined(node.dtype.name, 1, node.numel, self.memory.gpu.processors), pointers))
        return steps

    def product(self, call: Product, dtype: DType, adds: bool = False) -> list[Step]:
        """The launches of a matrix product: cuBLAS' where that is installed and takes such operands, or of a kernel of ours."""
        matrices = matrices_of(call)
        apart = call.node in self.places.schedule.sums  # added up in another dtype than its own
        stored = dtype.compute if apart else dtype
        c_at = call.c.layout.offset * stored.itemsize
        pointers = {
            "a": self.places.address(call.a.value, call.a.layout.offset * dtype.itemsize),
            "b": self.places.address(call.b.value, call.b.layout.offset * dtype.itemsize),
            "c": self.places.sum_of(call.node, 0, 0, c_at) if apart else self.places.address(call.node, c_at),
        }
        gemms = gemms_of(matrices, dtype.name, stored.name, adds) if self.memory.gpu.has_blas else []
        if gemms:
            return [Step(gemm, (), (), (), tuple(pointers.values()), (), f"# cuBLAS: {gemm}\n") for gemm in gemms]
        launches, partial_bytes = steps_of(matrices, dtype.name, self.memory.gpu.processors, stored.name, adds)
        pointers["partial"] = self.places.workspace(partial_bytes)
        return [self._step(each, pointers) for each in launches]

    def _step(self, launch: ProductStep, pointers: Mapping[str, Any]) -> Step:
        function, native = self._loaded(launch.function.name, partial(getattr, launch, "function"))
        words = (*(pointers[name] for name in launch.pointers), *launch.numbers)
        return Step(native, (launch.blocks,), (launch.threads,), function.parameters, words, (), function.source)

    def _loaded(self, key: Any, emit: Callable[[], Function]) -> tuple[Function, Any]:
        """A function and what it is on the GPU, written and compiled if it is new there."""
        gpu = self.memory.gpu
        found: tuple[Function, Any] | None = gpu.functions.get(key)
        if found is None:
            function = emit()
            image = partial(simulate.run, function) if SIMULATED else uninterrupted(cubin, function, gpu.capability)
            found = gpu.functions[key] = function, gpu.load(image, function.name)
        return found

    def _word(self, word: KernelArg, partials: Any, shares: int) -> Any:
        """What fills a word of a launch."""
        if word.kind == "pointer":
            return self.places.address(word.value, word.extra)
        if word.kind == "scalar":
            return Scalar(word.value)
        if word.kind == "constant":
            return float(word.value) if word.is_double else int(word.value)
        if word.kind == "fault":
            return FAULT
        return {"partials": partials, "shares": shares}.get(word.kind, word.value)


def _kinds(kernel: Kernel) -> tuple[str, ...]:
    """What a kernel's text does not tell: a function is given the address of a scalar, and the value of a constant."""
    return tuple(word.kind for word in kernel.words)


def _step(loaded: tuple[Function, Any], grid: Launch, calls: Sequence[KernelCall], fill: Callable[[KernelArg], Any]) -> Step:
    """A launch for all calls: of one, its words are the parameters; of several, each is a layer of the grid."""
    function, native = loaded
    words = [tuple(fill(words_of(call.kernel)[w]) for w in function.row or function.words) for call in calls]
    if function.row:
        return Step(
            native, (*grid.blocks, len(calls)), grid.threads, function.parameters, (), tuple(words), function.source)
    return Step(native, grid.blocks, grid.threads, function.parameters, words[0], (), function.source)
