"""From a Schedule to a program of a GPU: functions are found or compiled; each run supplies the launches' addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from genesis.codegen.cuda import simulate
from genesis.codegen.cuda.binaries import cubin
from genesis.codegen.cuda.emit import emit_finish, emit_kernel
from genesis.codegen.cuda.geometry import LAYERS, Grid, finishing, launch, team_of
from genesis.codegen.cuda.loops import tile_calls
from genesis.codegen.cuda.product import ProductLaunch, combined, gemms_of, matrices_of, steps_of
from genesis.codegen.cuda.signature import Function, Signature, words_of
from genesis.codegen.cuda.target import speeds_of
from genesis.codegen.segment import Segment, SlotMap
from genesis.ir.annotations import Key
from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.kernel import Kernel, KernelArg
from genesis.lower.schedule import Schedule
from genesis.lower.stages import Call, HostCall, Loop, Product
from genesis.lower.target import SequentialTiles, Target
from genesis.ops.registry import PRIMITIVES
from genesis.runtime import determinism
from genesis.runtime.cuda import SIMULATED
from genesis.runtime.cuda.collective import AwaitingProgram, CollectiveProgram
from genesis.runtime.cuda.communicating_program import CommunicatingProgram
from genesis.runtime.cuda.gpu import Loaded
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.cuda.nccl import Communicator
from genesis.runtime.cuda.program import FAULT, CudaLaunch, CudaProgram, CudaWord, Scalar
from genesis.runtime.devices import Device
from genesis.runtime.groups import GROUPS, Collective

# The threads of a host that a GPU resembles. Lowering fuses multiple passes over rows from 16 rows per thread on: 128 rows are
# about one for each of an H100's or H200's 132 multiprocessors. Fewer, longer rows take a kernel per pass, shared by teams.
WIDE = 8
# A tile leaves a third of a 40 or 50 MB cache to the operands. Two blocks on each of 132 multiprocessors, 64 x 64 with 256
# terms, are 2^28 multiplications. A few hundred launches are bound and captured in a fraction of a second.
SEQUENTIAL_TILES = SequentialTiles(nbytes=32 << 20, filling=1 << 28, calls=384)


def target(threads: int, planned_threads: int, device: Device) -> Target:
    """The GPU's properties for lowering; the number of the host's threads does not matter."""
    return target_of(device.memory.gpu.capability)


def target_of(capability: tuple[int, int]) -> Target:
    """The properties, for lowering, of GPUs of a compute capability.

    Column sums are kernels of their own: in a pass over rows each team would update sums in memory at every point, which is
    slower than reading the rows once more.
    """
    return Target(
        WIDE, SEQUENTIAL_TILES, unroll=False, strided=True, crossing=False, native=False, speeds=speeds_of(capability))


def assemble(
    nodes: Sequence[Node], schedule: Schedule, slot_format: str, arena_slot: int, output_slot: int, scalar_slot: int,
    threads: int, device: Device,
) -> tuple[list[Segment], int]:
    """The program, and the bytes that its arena needs: the schedule's, and workspace behind it. See `codegen.backend`."""
    assembly = _Assembly(schedule, arena_slot, output_slot, scalar_slot, device)
    segments: list[Segment] = []
    steps: list[tuple[int, CudaLaunch]] = []  # with the numbers of their stages

    def end() -> None:
        if steps:
            numbers, found = zip(*steps, strict=True)
            segments.append(Segment(CudaProgram(device.memory, found, scalar_slot, slot_format[scalar_slot:]), None, numbers))
            steps.clear()

    for number, stage in enumerate(schedule.stages):
        steps += [(number, step) for step in assembly.stage(nodes, stage)]
        for call in stage:
            if not isinstance(call, HostCall):
                continue
            end()
            communicates = PRIMITIVES[nodes[call.node].op].kind == "collective"
            segments.append(Segment(assembly.collective(nodes, call), None, (number,)) if communicates else Segment(None, call))
    end()
    return communicating(device.memory, segments), schedule.arena_bytes + assembly.slots.workspace_bytes


def communicating(memory: GpuMemory, segments: Sequence[Segment]) -> list[Segment]:
    """The segments, with a collective and what follows it as one: launches, and collectives of its group.

    It ends before a host call, a message, another group's collective, and launches that report faults, for the host looks at
    these before others begin.
    """
    found: list[Segment] = []
    run: list[Segment] = []

    def end() -> None:
        programs = [segment.program for segment in run]
        if any(isinstance(program, CudaProgram) for program in programs):
            stages = tuple(number for segment in run for number in segment.stages)
            found.append(Segment(CommunicatingProgram(memory, programs), None, stages))  # type: ignore[arg-type]
        else:
            found.extend(run)
        run.clear()

    for segment in segments:
        program = segment.program
        if isinstance(program, CollectiveProgram) and program.what.between is None:
            if run and program.group is not run[0].program.group:  # type: ignore[union-attr]
                end()
            run.append(segment)
        elif run and (isinstance(program, AwaitingProgram) or (isinstance(program, CudaProgram) and not program.can_fail)):
            run.append(segment)
        else:
            end()
            found.append(segment)
    end()
    return found


class _Assembly:
    """Steps of launches on one device."""

    def __init__(self, schedule: Schedule, arena_slot: int, output_slot: int, scalar_slot: int, device: Device) -> None:
        self.slots = SlotMap(schedule, arena_slot, output_slot, scalar_slot)
        self.memory = device.memory
        self.begun: dict[int, CollectiveProgram] = {}  # collectives under way

    def stage(self, nodes: Sequence[Node], calls: Sequence[Call]) -> list[CudaLaunch]:
        """The launches of a stage; host calls and collectives have none."""
        kernels = [call for call in calls if isinstance(call, KernelCall)]
        steps = [step for group in self.launch_groups(kernels) for step in self.kernels(group)] if kernels else []
        for call in calls:
            if isinstance(call, Product):
                steps += self.product(call, nodes[call.node].dtype)
            elif isinstance(call, Loop):
                steps += self.loop(nodes, call)
        return steps

    def kernels(self, calls: Sequence[KernelCall]) -> list[CudaLaunch]:
        """The launches of a kernel: one for all calls, and one that combines what multiple blocks have reduced."""
        kernel, processors = calls[0].kernel, self.memory.gpu.processors
        if Signature(kernel).adds_in_any_order:
            determinism.refuse("scatter_add", "on a GPU, numbers for one element are added in any order")
        largest = max((call.extents for call in calls), key=numel)
        team = team_of(kernel, largest, processors)
        # The layers of the grid number either the calls or the shares of a point.
        team = team._replace(shared=team.shared and len(calls) == 1)
        grid = launch(kernel, largest, team, processors)
        partials = self.slots.workspace(grid.partial_bytes) if grid.partial_bytes else 0
        fill = partial(self._word, partials=partials, shares=grid.shares)
        many, kinds = len(calls) > 1, _kinds(kernel)
        main = self._loaded((kernel.name, kinds, team, many), lambda: emit_kernel(kernel, team, many))
        steps = [_launch(main, grid, calls, fill)]
        if grid.partial_bytes:
            finish = self._loaded((kernel.name, kinds, team, "finish"), lambda: emit_finish(kernel, team))
            steps.append(_launch(finish, finishing(kernel, largest, team, processors), calls, fill))
        return steps

    def launch_groups(self, calls: Sequence[KernelCall]) -> list[list[KernelCall]]:
        """The calls of a stage in groups that one launch serves, at most as many as a grid has layers.

        A call has its own launch if it adds atomically, has totals, or has points that teams would share even while all calls
        run concurrently.
        """
        processors = max(1, self.memory.gpu.processors // len(calls))
        groups: dict[Key, list[KernelCall]] = {}
        for number, call in enumerate(calls):
            alone = Signature(call.kernel).is_atomic or call.kernel.has_totals or (
                team_of(call.kernel, call.extents, processors).shared)
            groups.setdefault((_kinds(call.kernel), number if alone else None), []).append(call)
        return [group[first : first + LAYERS] for group in groups.values() for first in range(0, len(group), LAYERS)]

    def loop(self, nodes: Sequence[Node], loop: Loop) -> list[CudaLaunch]:
        """The launches of a loop: its calls on one tile after the other, and conversions of sums to their dtypes."""
        steps: list[CudaLaunch] = []
        for call, adds in tile_calls(nodes, loop):
            steps += self.kernels([call]) if isinstance(call, KernelCall) else self.product(call, nodes[call.node].dtype, adds)
        for value in loop.sums:
            if value not in self.slots.schedule.sums:
                continue
            node = nodes[value]
            pointers = {"partial": self.slots.partial_sum(value, 0, 0), "c": self.slots.address(value)}
            steps.append(self._product_launch(combined(node.dtype.name, 1, node.numel, self.memory.gpu.processors), pointers))
        return steps

    def product(self, call: Product, dtype: DType, adds: bool = False) -> list[CudaLaunch]:
        """The launches of a product: cuBLAS where it is installed and supports the layout; otherwise our tiled kernel."""
        matrices = matrices_of(call)
        in_sums = call.node in self.slots.schedule.sums  # in the compute dtype: sixteen bits would round each addition
        stored = dtype.compute if in_sums else dtype
        c_at = call.c.layout.offset * stored.itemsize
        pointers = {
            "a": self.slots.address(call.a.value, call.a.layout.offset * dtype.itemsize),
            "b": self.slots.address(call.b.value, call.b.layout.offset * dtype.itemsize),
            "c": self.slots.partial_sum(call.node, 0, 0, c_at) if in_sums else self.slots.address(call.node, c_at),
        }
        gemms = gemms_of(matrices, dtype.name, stored.name, adds) if self.memory.gpu.has_blas else []
        if gemms:
            return [CudaLaunch(gemm, (), (), (), tuple(pointers.values()), (), f"# cuBLAS: {gemm}\n") for gemm in gemms]
        launches, partial_bytes = steps_of(matrices, dtype.name, self.memory.gpu.processors, stored.name, adds)
        pointers["partial"] = self.slots.workspace(partial_bytes)
        return [self._product_launch(each, pointers) for each in launches]

    def collective(self, nodes: Sequence[Node], call: HostCall) -> CollectiveProgram | AwaitingProgram:
        """A collective as a program; awaiting it is a program too."""
        if call.phase == "wait":
            return AwaitingProgram(self.memory, self.begun[call.node])
        [(value, layout)] = call.operands
        node = nodes[call.node]
        at, size = node.attrs, node.dtype.itemsize
        group = GROUPS[at["group"]]
        assert isinstance(group.gpu, Communicator), "checked where the tensor came in"
        self.begun[call.node] = begun = CollectiveProgram(
            group, group.gpu, Collective.of(node.op, at), node.dtype, call.node,
            self.slots.address(value, layout.offset * size), self.slots.address(call.node),
            min(layout.shape[0] * size, node.nbytes), call.phase != "start")
        return begun

    def _product_launch(self, launch: ProductLaunch, pointers: Mapping[str, CudaWord]) -> CudaLaunch:
        function, native = self._loaded(launch.function.name, partial(getattr, launch, "function"))
        words = (*(pointers[name] for name in launch.pointers), *launch.numbers)
        return CudaLaunch(native, (launch.blocks,), (launch.threads,), function.parameters, words, (), function.source)

    def _loaded(self, key: Key, emit: Callable[[], Function]) -> tuple[Function, Loaded]:
        """A function and its loaded machine code; it is emitted and compiled if it is new on this GPU."""
        gpu = self.memory.gpu
        found: tuple[Function, Loaded] | None = gpu.functions.get(key)
        if found is None:
            function = emit()
            image = partial(simulate.run, function) if SIMULATED else cubin(function, gpu.capability)
            found = gpu.functions[key] = function, gpu.load(image, function.name)
        return found

    def _word(self, word: KernelArg, partials: CudaWord, shares: int) -> CudaWord:
        if word.kind == "pointer":
            return self.slots.address(word.value, word.extra)
        if word.kind == "scalar":
            return Scalar(word.value)
        if word.kind == "constant":
            return float(word.value) if word.is_double else int(word.value)
        if word.kind == "fault":
            return FAULT
        return {"partials": partials, "shares": shares}.get(word.kind, word.value)


def _kinds(kernel: Kernel) -> tuple[str, ...]:
    """The kinds of a kernel's words, which its text omits: a scalar is passed by address, a constant by value."""
    return tuple(word.kind for word in kernel.words)


def _launch(
    loaded: tuple[Function, Loaded], grid: Grid, calls: Sequence[KernelCall], fill: Callable[[KernelArg], CudaWord]
) -> CudaLaunch:
    """The launch of all calls: the words of a single one are the parameters; of more, each call is a layer of the grid."""
    function, native = loaded
    words = [tuple(fill(words_of(call.kernel)[w]) for w in function.row or function.words) for call in calls]
    if function.row:
        return CudaLaunch(
            native, (*grid.blocks, len(calls)), grid.threads, function.parameters, (), tuple(words), function.source)
    return CudaLaunch(native, grid.blocks, grid.threads, function.parameters, words[0], (), function.source)
