"""From a Loop to launches: its items are tiles; each worker has its own argument blocks for the calls inside.

A call runs on the items of one tile. Values private to the loop exist one tile at a time. Kernels address them as if whole, so
their address is moved back by the tile's distance from the first tile. A loop with sums over its tiles has one chunk per
partial sum, with argument blocks per chunk instead of per worker. A second kernel adds the partial sums in order, so results do
not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from genesis.codegen.cpu.kernel_args import Work, argument
from genesis.codegen.cpu.product import launch as product
from genesis.codegen.cpu.product.interface import WORDS
from genesis.codegen.cpu.tiling import blocks_of, lanes_of, name_of
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.stages import Loop, Product
from genesis.lower.tile_access import point_axes
from genesis.runtime.deferred import deferred
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.launch_ir import loop_ir
from genesis.runtime.native import Addresses, Block, BlockWord, NativeLaunch, Slot

if TYPE_CHECKING:
    from genesis.codegen.cpu.combine import combine_ir
else:
    combine_ir = deferred("genesis.codegen.cpu.combine", "combine_ir")

CHUNK = 4096  # elements of an item


@cache
def combine_source(dtype: str) -> KernelSource:
    """The kernel of words {target, source, elements, partial sums, bytes from one to the next}."""
    width = lanes_of(dtype)
    name = f"genesis_combine_{dtype}"
    return KernelSource(name, f"{name} {width}", partial(combine_ir, name, dtype, width, CHUNK))


LOOP = KernelSource("genesis_loop", "genesis_loop", loop_ir)


def loop_launches(nodes: Sequence[Node], loop: Loop, slots: SlotMap, addresses: Addresses, threads: int) -> list[NativeLaunch]:
    """The launch of a loop by up to `threads` workers, and the launches that combine partial sums."""
    # Scores are never fully materialized: gradients of 4096 tokens of 64 numbers take 16 MB beside the operands, not 200.
    workers = min(threads, loop.partials or loop.tiles)
    copies = loop.partials or workers
    products = [call for call in loop.calls if isinstance(call, Product)]
    per_worker = max(
        (sum(product.packed(call, product.operand_dtype(nodes, call), _panels(loop, call))) for call in products), default=0)
    workspace = slots.workspace(copies * per_worker)
    table = tuple(
        tuple(entry for call in loop.calls for entry in _call(
            nodes, loop, call, slots, addresses, (copy, copies, per_worker, workspace)))
        for copy in range(copies)
    )
    # With sums, the first tile of each chunk writes its partial sum; without, any free worker takes a tile.
    block = Block((len(loop.calls), table), loop.tiles)
    launches = [NativeLaunch(addresses[LOOP.symbol], [block], workers, numbered=loop.partials)]
    for value in loop.sums if copies > 1 else ():
        node = nodes[value]
        partials = slots.partial_sum(value, 0, node.nbytes)
        pitch = slots.partial_sum(value, 1, node.nbytes).offset - partials.offset
        block = Block((slots.address(value), partials, node.numel, copies, pitch), -(-node.numel // CHUNK))
        launches.append(NativeLaunch(addresses[combine_source(node.dtype.name).symbol], [block], workers))
    return launches


def _call(
    nodes: Sequence[Node], loop: Loop, call: KernelCall | Product, slots: SlotMap, addresses: Addresses,
    copy_of: tuple[int, int, int, Slot],
) -> tuple[BlockWord, ...]:
    """An entry in the table of a worker, or of a partial sum (its number, their count, the workspace of products for each and
    of all): kernel, words, items of a tile, items, number of patches, patches.
    """
    copy, copies, per_worker, workspace = copy_of
    patches: list[BlockWord] = []

    def address(number: int, value: int, offset: int) -> Slot:
        if value not in loop.private:
            return slots.address(value, offset)
        tile_bytes = loop.tile_bytes(nodes[value].nbytes)
        base = slots.address(value, offset + copy * tile_bytes)
        patches.extend((number, base, -tile_bytes))
        return base

    if isinstance(call, Product):
        dtype = product.operand_dtype(nodes, call)
        matrices = zip("abc", (call.a, call.b, call.c), strict=True)
        a, b, c = (address(WORDS.index(name), x.value, x.layout.offset * nodes[x.value].dtype.itemsize) for name, x in matrices)
        cut = _panels(loop, call)
        begins = product.NEVER
        # The first items write, later ones add, so products per image are not stored (a CNN step 24.5 to 23.9 ms).
        if call.summed:
            if copies > 1:
                c = slots.partial_sum(call.node, copy, nodes[call.node].nbytes)
            begins = loop.tiles * copy // copies * _of_tile(loop, numel(call.batch)) + call.results
        block = product.block(
            call, dtype, cut, (a, b, c), workspace, per_worker, partial(product.offsets, slots), adds_from=begins)
        kernel, words, items = addresses[product.source(dtype).symbol], tuple(block.words), block.items
    else:
        blocks = blocks_in_loop(loop, call)
        size, items = _lanes(loop, call, blocks)
        kernel, words = addresses[name_of(call.kernel, blocks)], tuple(
            address(n, w.value, w.extra) if w.kind == "pointer" else argument(w, call, slots, Work(size, 1, copies, items))
            for n, w in enumerate(call.kernel.words)
        )
    return kernel, words, _of_tile(loop, items), items, len(patches) // 3, tuple(patches)


def _of_tile(loop: Loop, items: int) -> int:
    """The number of a call's items in a tile: those of its points, or one for the whole tile."""
    return items * loop.tile // loop.points if items >= loop.points else 1


def _panels(loop: Loop, call: Product) -> product.Panels:
    """A tile's rows as a panel, or all of a matrix where points are matrices."""
    products, m = numel(call.batch), call.extents[0]
    if products >= loop.points or call.summed:
        return product.Panels(1, m, False)
    height = loop.tile * m * products // loop.points
    return product.Panels(-(-m // height), height, False)


def blocks_in_loop(loop: Loop, call: KernelCall) -> dict[int, int]:
    """The register block of a kernel in a loop (see `tiling.py`): of axes that lie within a point."""
    kernel = call.kernel
    if not kernel.outer:
        return {}
    # Needed for depthwise convolutions, which their padding turns into loops.
    within = list(call.extents)
    for axis, (of_points, _) in zip(kernel.outer, point_axes(call, loop.points), strict=True):
        within[axis] = within[axis] if of_points == 1 else 1
    return blocks_of(kernel, within)


def _lanes(loop: Loop, call: KernelCall, blocks: Mapping[int, int]) -> tuple[int, int]:
    """The lanes of an item, and the number of items: all lanes of a row, or a tile's share of a single axis."""
    kernel = call.kernel
    extent = call.extents[kernel.lane] if kernel.lane is not None else 1
    if kernel.outer:
        return extent, numel(-(-call.extents[a] // blocks.get(a, 1)) for a in kernel.outer)
    return extent // loop.points * loop.tile, loop.tiles
