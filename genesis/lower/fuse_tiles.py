"""Panels: neighbouring calls that share leading axes become one loop over tiles, and what lies between them stays in cache.

Calls are followed in order as far as each may run point by point after those before it (`tile_access.py`): then any tile of
points can go through the whole chain before the next one begins. Of the chains that begin at a call, with one or another
of its leading axes as points, the one that saves most becomes a loop, if it saves more than it costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.axis_groups import PLAIN
from genesis.lower.build import KernelCall
from genesis.lower.sequential_tiles import sequential_tile
from genesis.lower.stages import Call, Loop, Product, Stage
from genesis.lower.target import Target
from genesis.lower.tile_access import access_pattern, fits, product_pattern

__all__ = ["fuse_tiles"]

CACHE = 1 << 19  # bytes that a tile's values should fit into: half of a second-level cache
LONGEST = 16  # calls in a loop
LEAST_SAVED = 1 << 18  # bytes of memory that nobody has to write and read again, from which a loop pays
LEAST_ROWS = 96  # of a product in a tile, over which what it packs is spread
PACKING = 0.6  # cycles for each element of an operand that is packed again for each tile
TRAFFIC = 0.16  # cycles for each byte that stays in cache


def fuse_tiles(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Sequence[int], target: Target) -> list[Stage]:
    """The stages, with loops in place of chains for which that pays."""
    kept = set(outputs)
    readers: dict[int, int] = {}  # how many calls read a value
    writers: dict[int, int] = {}
    for stage in stages:
        for call in list[Call](stage):
            for counts, values in ((readers, call.reads), (writers, call.writes)):
                for value in values:
                    counts[value] = counts.get(value, 0) + 1
    result: list[Stage] = []
    at = 0
    while at < len(stages):
        best: tuple[float, int, Loop] | None = None
        for points in _points(stages[at : at + 2]):
            calls, end = _chain(nodes, stages, at, points, target.sequential_tiles is not None)
            found = _loop(nodes, calls, points, kept, readers, writers, target)
            if found is not None and (best is None or found[0] >= best[0]):  # of equals, the finest
                best = found[0], end, found[1]
        if best is None:
            first = stages[at][0]
            added_up = isinstance(first, Product) and first.summed and target.sequential_tiles is None
            result.append([_alone(first, target.threads)] if added_up else stages[at])  # type: ignore[arg-type]
            at += 1
        else:
            result.append([best[2]])
            at = best[1]
    return result


def _points(stages: Sequence[Stage]) -> Iterator[int]:
    """The numbers of points that a chain which begins with these stages might have: its first product's batch, or rows."""
    for stage in stages:
        for call in stage:
            if isinstance(call, Product):
                yield from dict.fromkeys(_prefixes((*call.batch, call.extents[0])))
                return


def _prefixes(extents: Sequence[int]) -> Iterator[int]:
    points = 1
    for extent in extents:
        points *= extent
        yield points


def _chain(
    nodes: Sequence[Node], stages: Sequence[Stage], at: int, points: int, sequential: bool
) -> tuple[list[KernelCall | Product], int]:
    """The calls from stage `at` on that can run point by point together, and where they end; where tiles come in turn, with
    the last that reads what another has written.
    """
    calls: list[KernelCall | Product] = []
    last = 0, at
    written: set[int] = set()
    later: set[int] = set()  # summed over the points, or written here and there: all there when all points are done
    while at < len(stages) and len(calls) + len(stages[at]) <= LONGEST:
        found = [call for call in stages[at] if isinstance(call, KernelCall | Product)]
        found = [_by_terms(call, points, call.only if sequential else "")  # type: ignore[union-attr]
                 if _adds_up(nodes, call, written, points, sequential) else call for call in found]
        if not found or not all(_follows(nodes, call, written, later, points) for call in found):
            break
        calls += found
        if not sequential or not all(written.isdisjoint(call.reads) for call in found):
            last = len(calls), at + 1
        later.update(call.node for call in found if isinstance(call, Product) and (
            call.summed or not fits(nodes, product_pattern(call), call.writes, written, points)))
        written.update(value for call in found for value in call.writes if value not in later)
        at += 1
    return calls[: last[0]], last[1]


def _follows(
    nodes: Sequence[Node], call: KernelCall | Product, written: set[int], later: set[int], points: int
) -> bool:
    """Whether a call can run point by point after those that have `written`.

    The rows of a product's result may lie anywhere: no other point writes them, and nobody reads them before the end.
    """
    pattern = access_pattern(call)
    if pattern is None or not later.isdisjoint(call.reads):
        return False
    return fits(nodes, pattern, () if isinstance(call, Product) else call.writes, written, points)


def _adds_up(
    nodes: Sequence[Node], call: KernelCall | Product, written: set[int], points: int, sequential: bool
) -> bool:
    """Whether a product's terms are at the points, so that each of them adds its part to the whole result; of a batch, to the
    result of its matrix, where tiles come in turn.
    """
    if not isinstance(call, Product) or written.isdisjoint(call.reads) or not points or call.axis_groups != (PLAIN, PLAIN):
        return False
    products = numel(call.batch)
    if (call.batch and not sequential) or not products or points % products or call.extents[2] % (points // products):
        return False
    patterns = product_pattern(call), product_pattern(_by_terms(call, points))
    return [fits(nodes, pattern, call.writes, written, points) for pattern in patterns] == [False, True]


def _by_terms(call: KernelCall | Product, points: int, only: str = "") -> Product:
    """The product, or each of a batch, as a batch of products of parts of its terms, `points` in all, that is summed."""
    assert isinstance(call, Product)
    a, b, c = call.strides
    parts = points // numel(call.batch)
    terms = call.extents[2] // parts
    steps = (*a, terms * call.a_layout.strides[-1]), (*b, terms * call.b_layout.strides[-2]), (*c, 0)
    return call.resized("k", terms)._replace(batch=(*call.batch, parts), strides=steps, only=only)


def _with_all_terms(call: KernelCall | Product, tile: int) -> KernelCall | Product:
    """A product of parts of the terms, that are summed, with the terms of a whole tile in each part."""
    if not isinstance(call, Product) or not call.summed or len(call.batch) > 1 or call.only:
        return call
    (_, _, k), (points,) = call.extents, call.batch
    (a,), (b,), c = call.strides
    if (a, b) != (k * call.a_layout.strides[-1], k * call.b_layout.strides[-2]):
        return call
    return call.resized("k", k * tile)._replace(batch=(points // tile,), strides=((a * tile,), (b * tile,), c))


def _alone(call: Product, threads: int) -> Loop:
    """The loop that adds up a batch."""
    points = numel(call.batch)
    return Loop((call,), points, -(-points // threads), (), points)


def _loop(
    nodes: Sequence[Node], calls: Sequence[KernelCall | Product], points: int, kept: set[int], readers: dict[int, int],
    writers: dict[int, int], target: Target,
) -> tuple[float, Loop] | None:
    """The loop over `calls`, and what it saves, in cycles (or, of tiles in turn, in bytes); None if that is nothing."""
    if len(calls) < 2 or not any(isinstance(call, Product) for call in calls):
        return None
    inside: dict[int, int] = {}
    for call in calls:
        for value in call.reads:
            inside[value] = inside.get(value, 0) + 1
    written = list(dict.fromkeys(value for call in calls for value in call.writes))
    private = tuple(v for v in written if v not in kept and inside.get(v, 0) == readers.get(v, 0) and v in inside and
                    writers[v] == sum(v in call.writes for call in calls))
    room = sum(nodes[v].nbytes for v in private)
    if target.sequential_tiles is not None:
        cut = sequential_tile(calls, points, room, target.sequential_tiles) if calls[0].writes[0] in inside else None
        return None if cut is None else (room, Loop(tuple(calls), points, cut[0], private, cut[1]))
    saved = room + sum(nodes[v].nbytes for v in written if v in inside)
    if saved < LEAST_SAVED:
        return None
    tile = _tile(nodes, calls, points, target.threads, max(2 * CACHE, room // 16))
    if tile is None:
        return None
    loop = Loop(tuple(_with_all_terms(call, tile) for call in calls), points, tile, private, points)
    again = sum(_packed_again(call, loop, target.threads) for call in calls if isinstance(call, Product))
    gain = saved * TRAFFIC - again * PACKING
    return (gain, loop) if gain > 0 else None


def _tile(
    nodes: Sequence[Node], calls: Sequence[KernelCall | Product], points: int, threads: int, most: int
) -> int | None:
    """Points of a tile: such that what lies between the calls fits into cache, and each worker has as many tiles as the
    others. None if a tile with as many rows as products need takes more than `most` bytes.
    """
    by_rows = [(numel(call.batch), call.extents[0]) for call in calls
               if isinstance(call, Product) and numel(call.batch) < points]
    least = max((-(-LEAST_ROWS * points // (products * m)) for products, m in by_rows), default=1)
    point = _live(nodes, calls) // points
    if least * point > most:
        return None
    wanted = max(least, CACHE // max(point, 1))
    turns = -(-points // (wanted * threads))
    tile = -(-points // (turns * threads))
    within = [points // products for products, _ in by_rows if products > 1]
    within += [points for call in calls if isinstance(call, Product) and call.summed]
    if within:  # a panel lies within one matrix, and all parts of a sum have as many terms
        tile = next(t for t in range(min(tile, *within), 0, -1) if not any(extent % t for extent in within))
    return tile


def _live(nodes: Sequence[Node], calls: Sequence[KernelCall | Product]) -> int:
    """The most bytes that lie between the calls at a time: written by this call or one before, read by it or one after."""
    last = {value: at for at, call in enumerate(calls) for value in call.reads}
    most = 0
    live: set[int] = set()
    for at, call in enumerate(calls):
        live.update(call.writes)
        most = max(most, sum(nodes[value].nbytes for value in live))
        live = {value for value in live if last.get(value, -1) > at}
    return most


def _packed_again(call: Product, loop: Loop, threads: int) -> float:
    """The elements that tiles of rows pack beyond what each worker would, were the product cut by rows or by columns."""
    m, n, k = call.extents
    products = numel(call.batch)
    alone = products * min(threads * n, n + (threads - 1) * m)
    return 0 if products >= loop.points else max(0, loop.tiles * n - alone) * k
