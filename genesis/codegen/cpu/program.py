"""From a Schedule to a native program: finds or compiles kernels, fills in arguments, divides work among threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from genesis.codegen.cpu import time_loop
from genesis.codegen.cpu.kernel_args import Work, argument, followers
from genesis.codegen.cpu.loops import LOOP, blocks_in_loop, combine_source, loop_launches
from genesis.codegen.cpu.product import launch as product
from genesis.codegen.cpu.tiling import blocks_of, cache_bytes, name_of, tile_bytes, tile_rows, tile_side, width_of
from genesis.codegen.segment import Segment, SlotMap, SymbolicSlots
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.ir.unguarded import maximum, minimum, over, symbols_of
from genesis.lower.build import KernelCall
from genesis.lower.kernel import Kernel, KernelArg, of_code
from genesis.lower.schedule import Schedule
from genesis.lower.stages import PARALLEL_COST, HostCall, Loop, Product, Stage, parts
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.deferred import deferred
from genesis.runtime.devices import Device
from genesis.runtime.kernel_cache import KernelSource, get_or_compile
from genesis.runtime.native import Addresses, Block, BlockWord, Launch, NativeLaunch, NativeProgram, Slot, SymbolicProgram

if TYPE_CHECKING:
    from genesis.codegen.cpu.emit import emit_finish, emit_kernel
    from genesis.codegen.cpu.native_operations import native_operation
    from genesis.codegen.cpu.transpose import transposition
else:  # a process that finds its kernels on disk writes none, and most programs have no host operation
    emit_finish = deferred("genesis.codegen.cpu.emit", "emit_finish")
    emit_kernel = deferred("genesis.codegen.cpu.emit", "emit_kernel")
    native_operation = deferred("genesis.codegen.cpu.native_operations", "native_operation")
    transposition = deferred("genesis.codegen.cpu.transpose", "transposition")

BLOCK_QUANTUM = 64
SHARES = 4  # per worker in a launch: with one each, all wait for the slowest worker
# A kernel with totals has a partial result per share, combined in order. The number of shares depends on the work alone, so
# results depend neither on scheduling nor on the number of workers.
LEAST_PARTIALS, MOST_PARTIALS, PARTIAL_COST = 8, 64, 1 << 18
FINAL_BLOCK = 4096


def assemble(
    nodes: Sequence[Node], schedule: Schedule, slot_format: str, arena_slot: int, output_slot: int, scalar_slot: int,
    threads: int, device: Device,
) -> tuple[list[Segment], int]:
    """The program, and the bytes that its arena needs: the schedule's, and workspace behind it. See `codegen.backend`."""
    symbols = symbols_of(nodes)
    of_program = schedule, arena_slot, output_slot, scalar_slot, _streamed(nodes, schedule)
    slots = SlotMap(*of_program) if symbols is None else SymbolicSlots(symbols, *of_program)
    sources = sources_of(nodes, schedule, threads)
    addresses = dict(zip(sources, get_or_compile(list(sources.values())), strict=True))
    make: Any = NativeProgram if symbols is None else SymbolicProgram
    segments: list[Segment] = []
    launches: list[tuple[int, Launch]] = []  # with the numbers of their stages

    def end() -> None:
        if launches:
            numbers, ready = zip(*launches, strict=True)
            segments.append(Segment(make(ready, slot_format, keep=slots.keep), None, numbers))
            launches.clear()

    for number, stage in enumerate(schedule.stages):
        found = launches_of(nodes, stage, slots, addresses, threads)
        launches += [(number, launch) for launch in found or ()]
        if found is None:
            end()
            [call] = stage
            assert isinstance(call, HostCall)
            segments.append(Segment(None, call))
    end()
    return segments, schedule.arena_bytes + slots.workspace_bytes


def launches_of(
    nodes: Sequence[Node], stage: Stage, slots: SlotMap, addresses: Addresses, threads: int
) -> Sequence[Launch] | None:
    """The launches of a stage; None for a host call that is left to Python, which is alone in its stage."""
    first = stage[0]
    if isinstance(first, HostCall) and nodes[first.node].op == "time_loop":
        return time_loop.launches(nodes, first, slots, addresses, threads, launches_of)
    if isinstance(first, HostCall):
        native = native_operation(nodes[first.node].op)
        return None if native is None else native.launches(nodes, first, slots, addresses, threads)
    if isinstance(first, Product):
        return [_product_launch(nodes, c, slots, addresses, threads) for c in stage if isinstance(c, Product)]
    if isinstance(first, Loop):
        return [launch for c in stage if isinstance(c, Loop) for launch in loop_launches(nodes, c, slots, addresses, threads)]
    return _kernel_launches([c for c in stage if isinstance(c, KernelCall)], slots, addresses, threads)


def _streamed(nodes: Sequence[Node], schedule: Schedule) -> set[int]:
    """Outputs that are larger than the last-level cache and that no kernel of the program reads."""
    # What fits is faster through the caches, with prefetches. Measured on Cascade Lake (36 MB), two threads: a clamp of 16 MB
    # 1.9 to 1.3 ms; 64 MB and more take the same time either way.
    read = {value for stage in schedule.stages for call in stage for value in call.reads}
    return {value for value, location in schedule.locations.items()
            if location.kind == "output" and nodes[value].nbytes >= cache_bytes() and value not in read}


def sources_of(nodes: Sequence[Node], schedule: Schedule, threads: int) -> dict[str, KernelSource]:
    """The schedule's functions by name; a kernel's finishing function has the suffix `_finish`."""
    # All functions are requested at once: compile workers take some while this process emits and compiles others.
    sources: dict[str, KernelSource] = {}
    for stage in schedule.stages:
        first = stage[0]
        if isinstance(first, KernelCall):
            kernels = [(first.kernel, _blocks([call for call in stage if isinstance(call, KernelCall)]))]
        else:
            kernels = [(part.kernel, blocks_in_loop(call, part) if isinstance(call, Loop) else {})
                       for call in stage for part in parts(call) if isinstance(part, KernelCall)]
        for kernel, blocks in kernels:
            if name_of(kernel, blocks) not in sources:
                sources |= _sources(kernel, blocks)
        products = [part for call in stage for part in parts(call) if isinstance(part, Product)]
        dtypes = sorted({product.operand_dtype(nodes, call) for call in products})
        sums = sorted({nodes[call.node].dtype.name for call in products if call.summed})
        if isinstance(first, Loop):
            sources[LOOP.symbol] = LOOP
        if isinstance(first, HostCall) and nodes[first.node].op == "time_loop":
            for part in time_loop.programs_of(nodes[first.node], threads):
                sources |= sources_of(part.nodes, part.schedule, threads)
        elif isinstance(first, HostCall) and (native := native_operation(nodes[first.node].op)) is not None:
            sources |= {source.symbol: source for source in native.sources(nodes, first)}
        sources |= {source.symbol: source for source in (*map(product.source, dtypes), *map(combine_source, sums))}
    return sources


def _sources(kernel: Kernel, blocks: Mapping[int, int]) -> dict[str, KernelSource]:
    width = width_of(kernel)
    text = f"width {width}\n{kernel.text}"
    stated = f"blocks {blocks}\n{text}" if blocks else text
    lanes = width if kernel.lane is None else blocks.get(kernel.lane, width)
    own = {axis: size for axis, size in blocks.items() if axis != kernel.lane}
    sources = {name_of(kernel, blocks): KernelSource(kernel.name, stated, partial(emit_kernel, kernel, lanes, own))}
    if kernel.has_totals:
        name = kernel.name + "_finish"
        sources[name] = KernelSource(name, "finish\n" + text, partial(emit_finish, kernel, width))
    transpositions = [transposition(w.value) for w in kernel.words if w.kind == "transposition"]
    return sources | {source.symbol: source for source in transpositions}


def _blocks(calls: Sequence[KernelCall]) -> dict[int, int]:
    """The blocks that fit all calls of a stage."""
    kernel = calls[0].kernel
    found = blocks_of(kernel, [min(extents) for extents in zip(*(call.extents for call in calls), strict=True)])
    same = kernel.factors is not None or all(blocks_of(call.kernel, call.extents) == found for call in calls)
    return found if same else {}


def _kernel_launches(calls: Sequence[KernelCall], slots: SlotMap, addresses: Addresses, threads: int) -> list[NativeLaunch]:
    kernel = calls[0].kernel
    cost = sum(_cost(call) for call in calls)
    # Waking the team takes 2 us, from sleep 20: a small step's largest kernel took 7.1 us with it, 5.4 alone.
    workers = over(cost, PARALLEL_COST, threads, 1)
    unrolled = _blocks(calls)
    points = sum(numel(call.extents) for call in calls)
    room = slots.workspaces()
    partials = over(cost, PARALLEL_COST, maximum(LEAST_PARTIALS, minimum(MOST_PARTIALS, cost // PARTIAL_COST)), 1)
    # Where rows are scattered, each item reads all of their places.
    along_rows = kernel.lane_is_innermost and not kernel.lane_is_reduced
    shares = partials if kernel.has_totals else over(workers, 1, (1 if along_rows else SHARES) * workers, 1)
    blocks = [_block(call, slots, workers, shares * numel(call.extents) / maximum(points, 1), unrolled, addresses, room)
              for call in calls]
    launches = [NativeLaunch(addresses[name_of(kernel, unrolled)], blocks, workers)]
    if kernel.has_totals:
        launches.append(NativeLaunch(addresses[kernel.name + "_finish"], [Block(block.words, 1) for block in blocks], 1))
    return launches


def _cost(call: KernelCall) -> int:
    return numel(call.extents) * _cost_of_point(call.kernel)


@of_code
def _cost_of_point(kernel: Kernel) -> int:
    return max(1, sum(PRIMITIVES[i.name].cost if i.name in PRIMITIVES else 1 for i in kernel.instructions if i.level == "full"))


def _block(
    call: KernelCall, slots: SlotMap, workers: int, wished: float, unrolled: Mapping[int, int], addresses: Addresses,
    room: Callable[[int, int], Slot],
) -> Block:
    """The argument block of a call, divided into about the wanted number of parts; all calls' items take equally long."""
    kernel = call.kernel
    parts = maximum(1, round(wished))
    neighbours = unrolled if kernel.tiled is None else {kernel.tiled: tile_rows(kernel)}
    items = numel(-(-call.extents[a] // neighbours.get(a, 1)) for a in kernel.outer)
    size = count = 1
    if kernel.lane is not None and not kernel.lane_is_reduced:
        extent = call.extents[kernel.lane]
        wanted = maximum(1, parts // maximum(items, 1))
        size = maximum(BLOCK_QUANTUM, -(-extent // (wanted * BLOCK_QUANTUM)) * BLOCK_QUANTUM)
        if kernel.has_totals:
            size = minimum(size, FINAL_BLOCK)
        if kernel.tiled in kernel.outer:
            size = tile_side(kernel)
        blocks = -(-extent // size) if kernel.place is None else wanted
        count = maximum(1, blocks)
        items *= blocks
    # Kernels with totals divide their items into shares themselves, each with partial results of its own.
    shares = maximum(1, minimum(parts, items))
    work = Work(size, count, workers, items, shares)

    def word(number: int, w: KernelArg) -> BlockWord:
        if w.kind == "tile":  # shared by calls with equally large tiles, as a worker is at one item at a time
            return room(number, workers * tile_bytes(kernel, call.extents, width_of(kernel), w.extra.itemsize))
        return addresses[transposition(w.value).symbol] if w.kind == "transposition" else argument(w, call, slots, work)

    words = [word(*numbered) for numbered in enumerate(kernel.words)]
    return Block(words, shares if kernel.has_totals else items)


def _product_launch(nodes: Sequence[Node], call: Product, slots: SlotMap, addresses: Addresses, threads: int) -> NativeLaunch:
    dtype = product.operand_dtype(nodes, call)
    m, n, k = call.extents
    products = numel(call.batch)
    workers = threads if call.epilogue else over(2 * products * m * n * k, 3 * PARALLEL_COST, threads, 1)
    cut = product.panels(dtype, call.extents, -(-workers // products), whole_rows=bool(call.epilogue))
    a, b, c = (slots.address(x.value, x.layout.offset * nodes[x.value].dtype.itemsize) for x in (call.a, call.b, call.c))
    per_worker = sum(product.packed(call, dtype, cut))
    table = followers(call, slots, addresses, workers)
    workspace, offsets = slots.workspace(workers * per_worker), partial(product.offsets, slots)
    block = product.block(call, dtype, cut, (a, b, c), workspace, per_worker, offsets, followers=table)
    return NativeLaunch(addresses[product.source(dtype).symbol], [block], workers)
