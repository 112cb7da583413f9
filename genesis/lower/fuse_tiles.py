"""Tile fusion: neighbouring calls that share leading axes become one loop over tiles, and values between them stay in cache.

Before: stages in order. After: the same, with loops instead of chains of calls where a loop saves more than it costs.
Attention's scores are such values: tiled, never fully materialized (Dao et al., 2022).

A chain extends as long as each call can run point by point after those before it (`tile_access.py`): then a tile of points can
go through the whole chain before the next tile. Of the chains that begin at a call, for each number of its leading axes taken
as points, the one that saves most becomes a loop. Kernels that write parts of one value, as an image and the zeros around it,
are such a chain too: cache lines are completed while they are in cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from math import inf
from operator import mul
from typing import NamedTuple, TypeGuard

from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.ir.unguarded import computed, maximum, may_exceed, minimum
from genesis.lower.build import KernelCall
from genesis.lower.stages import Call, Loop, Product, Stage, uses_of
from genesis.lower.target import Target
from genesis.lower.tile_access import (
    AccessPattern, access_pattern, may_stay_in_tiles, product_pattern, sequential_tile, stays_in_tiles,
)

CACHE = 1 << 19  # bytes for the values of a tile: half of a second-level cache
# Bytes for a product of a single point, as an image: what it reads is still in cache where it was just written. Zen 4,
# one thread, 8 images of 64 channels of 56 x 56, 3 x 3 in steps of two, padding apart and before each image 10.3 and 9.3 ms.
MOST = 1 << 21
LONGEST = 16  # calls in a loop
LEAST_SAVED = 1 << 18  # bytes of saved traffic from which a loop pays
LEAST_ROWS = 96  # of a product in a tile, to amortize packing
PACKING = 0.6  # cycles for each element of an operand that is packed again for each tile; measured
TRAFFIC = 0.16  # cycles for each byte that stays in cache
FLOPS = 32  # of a product in a cycle


def fuse_tiles(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Sequence[int], target: Target) -> list[Stage]:
    """The stages, with loops instead of chains where that pays."""
    search = _LoopSearch(nodes, stages, outputs, target)
    result: list[Stage] = []
    at = 0
    while at < len(stages):
        candidates = _points(stages[at : at + 3]) if search.may_pay(at) else ()
        found = [loop for points in candidates if (loop := search.loop(at, points)) is not None]
        if found:
            best = max(reversed(found), key=lambda each: each.gain)  # of equal gains the last, which has the finest points
            result.append([best.loop])
            at = best.end
            continue
        first = stages[at][0]
        # A sum over a batch by itself is a loop too: only loops have partial sums per worker.
        alone = isinstance(first, Product) and first.summed and target.sequential_tiles is None
        result.append([_alone(first, target.planned)] if alone else stages[at])  # type: ignore[arg-type]
        at += 1
    return result


def _points(stages: Sequence[Stage]) -> Iterator[int]:
    """Candidates for the number of points of a chain that begins with these stages: its first product's batch or rows, or the
    outer axes of a kernel that writes another part of the first call's value.
    """
    first, *others = [call for stage in stages for call in stage]
    product = next((call for call in (first, *others) if isinstance(call, Product)), None)
    shapes = [(*product.batch, product.extents[0])] if product is not None else []
    shapes += [pattern.extents for call in others if isinstance(call, KernelCall) and call.writes == first.writes
               and (pattern := access_pattern(call)) is not None]
    yield from dict.fromkeys(points for shape in shapes for points in accumulate(shape, mul))


class _Found(NamedTuple):
    """A loop, the stage after its last, and its gain: in cycles, or in bytes where tiles run in sequence."""

    gain: float
    end: int
    loop: Loop


class _LoopSearch:
    """The search for loops in the stages of a graph."""

    def __init__(self, nodes: Sequence[Node], stages: Sequence[Stage], outputs: Sequence[int], target: Target) -> None:
        self.nodes, self.stages, self.outputs, self.target = nodes, stages, frozenset(outputs), target
        self.patterns: dict[int, tuple[object, AccessPattern | None]] = {}  # by ids of calls, which it keeps
        self.reads, self.writes = uses_of(stages)
        # Of bytes that the stages before each write.
        self.written = [*accumulate((sum(nodes[value].nbytes for call in stage for value in call.writes) for stage in stages),
                                    initial=0)]

    def may_pay(self, at: int) -> bool:
        """Whether a chain that begins with stage `at` may save enough: at most what its calls write, and a reading of it."""
        if self.target.sequential_tiles is not None:
            return True
        end = min(at + LONGEST, len(self.stages))
        return may_exceed(2 * (self.written[end] - self.written[at]), LEAST_SAVED - 1)

    def loop(self, at: int, points: int, end: int | None = None) -> _Found | None:
        """The loop over the chain that begins with stage `at`, before stage `end` if given; None if it saves nothing."""
        if at + 1 < len(self.stages) and not self._may_begin(at, points):
            return None
        calls, end = self._chain(at, points, len(self.stages) if end is None else end)
        if len(calls) < 2:
            return None
        written = Counter(value for call in calls for value in call.writes)
        in_parts = [value for value, times in written.items() if times > 1]
        if not in_parts and not any([isinstance(call, Product) for call in calls]):
            return None
        inside = Counter(value for call in calls for value in call.reads)
        # A value that only these calls touch is never whole in memory: a tile per worker is enough.
        private = tuple(v for v in written if v in inside and v not in self.outputs and inside[v] == len(self.reads[v])
                        and len(self.writes[v]) == written[v])
        room = sum(self.nodes[v].nbytes for v in private)
        limits = self.target.sequential_tiles
        if limits is not None:
            cut = sequential_tile(calls, points, room, limits) if calls[0].writes[0] in inside else None
            return None if cut is None else _Found(room, end, Loop(tuple(calls), points, cut[0], private, cut[1]))
        saved = room + sum(self.nodes[v].nbytes for v in (*in_parts, *(v for v in written if v in inside)))
        if saved < LEAST_SAVED:
            return None
        tile = self._tile(calls, points, room // 16)
        if tile is None:  # for want of a product's rows, as of a layer behind convolutions: those before it may be a loop
            few = {id(call) for call in calls if _by_rows(call, points)}
            before = max((n for n in range(at + 1, end) if any(id(call) in few for call in self.stages[n])), default=None)
            return None if before is None else self.loop(at, points, before)
        whole = tuple(_with_all_terms(call, tile) for call in calls)
        loop = _divided(Loop(whole, points, tile, private, points), self.target.planned)
        again = sum(_packed_again(call, loop, self.target.planned) for call in calls if isinstance(call, Product))
        # Counting packing keeps large products out of loops with their GELU: an MLP's forward takes 0.89 ms instead of 0.998.
        gain = saved * TRAFFIC - again * PACKING - _idle(loop, self.target.planned)
        return _Found(gain, end, loop) if gain > 0 else None

    def _may_begin(self, at: int, points: int) -> bool:
        """Whether a chain may go on after its first stage, as far as that can be told before its points divide anything."""
        first, following = self.stages[at : at + 2]
        return len(first) > 1 or all([
            (isinstance(call, Product) and (not call.batch or self.target.sequential_tiles is not None))  # it may run by terms
            or ((pattern := self._pattern(call)) is not None
                and may_stay_in_tiles(self.nodes, pattern, first[0].writes, points))
            for call in following])

    def _chain(self, at: int, points: int, end: int) -> tuple[list[KernelCall | Product], int]:
        """The calls from stage `at` on, before `end`, that can run point by point together, and the stage after them.

        Where tiles run in sequence each call is a launch, so a chain ends with the last call that reads what another one wrote.
        """
        stages, sequential = self.stages, self.target.sequential_tiles is not None
        calls: list[KernelCall | Product] = []
        last = 0, at
        written: set[int] = set()
        later: set[int] = set()  # accumulated over the points, or written out of order: complete only after the loop
        while at < end and len(calls) + len(stages[at]) <= LONGEST:
            found = [call for call in stages[at] if isinstance(call, (KernelCall, Product))]
            found = [_by_terms(call, points, call.only if sequential else "")  # type: ignore[union-attr]
                     if self._adds_up(call, written, points) else call for call in found]
            if not found or not all([self._follows(call, written, later, points) for call in found]):
                break
            calls += found
            if not sequential or not all([written.isdisjoint(call.reads) for call in found]):
                last = len(calls), at + 1
            for call in found:
                if (isinstance(call, Product) and call.summed) or not self._stays(call, {*call.writes, *written}, points):
                    later.update(call.writes)
            for call in found:
                written.update([value for value in call.writes if value not in later])
            at += 1
        return calls[: last[0]], last[1]

    def _follows(self, call: KernelCall | Product, written: set[int], later: set[int], points: int) -> bool:
        """Whether a call can run point by point after those that have `written`.

        A call's writes may go anywhere: no other point writes there, and nothing in the loop reads or rewrites it.
        """
        if not later.isdisjoint(call.reads) or not later.isdisjoint(call.writes):
            return False
        # A worker's first items write instead of adding, so that a tile has all results.
        whole = self.target.sequential_tiles is not None or not isinstance(call, Product) or not call.summed
        if not whole and numel(call.batch) // call.results % points:  # type: ignore[union-attr]
            return False
        return self._stays(call, written, points)

    def _stays(self, call: KernelCall | Product, values: Collection[int], points: int) -> bool:
        """Whether a call can run point by point, within its own tiles of what it touches of `values`."""
        pattern = self._pattern(call)
        return pattern is not None and stays_in_tiles(self.nodes, pattern, values, points)

    def _pattern(self, call: Call) -> AccessPattern | None:
        if id(call) not in self.patterns:
            self.patterns[id(call)] = call, access_pattern(call)
        return self.patterns[id(call)][1]

    def _adds_up(self, call: KernelCall | Product, written: set[int], points: int) -> bool:
        """Whether the points divide a product's terms, so that each point adds its part to the result.

        The result is one matrix; where tiles run in sequence, it may be one for each of a batch.
        """
        if not isinstance(call, Product) or written.isdisjoint(call.reads) or not points or not call.is_plain:
            return False
        products, values = numel(call.batch), {*call.writes, *written}
        if call.batch and self.target.sequential_tiles is None:
            return False
        if not products or points % products or self._stays(call, values, points):
            return False
        # Gradients of attention's keys and values are such sums. With them, backward of 1 x 1 x 4096 x 64 is one loop, which
        # takes 16 MB beside the operands instead of 200.
        return not call.extents[2] % (points // products * (2 if call.pairs else 1)) and stays_in_tiles(
            self.nodes, product_pattern(_by_terms(call, points)), values, points)

    def _tile(self, calls: Sequence[KernelCall | Product], points: int, most: int) -> int | None:
        """The points of a tile: values between the calls fit into cache, and workers have equally many tiles.

        None if a tile with the least rows of a product, or a point, takes too many bytes: more than `most` and a constant.
        """
        by_rows = [(numel(call.batch), call.extents[0]) for call in calls if _by_rows(call, points)]
        least = max((-(-LEAST_ROWS * points // (products * m)) for products, m in by_rows), default=1)
        point = _live_bytes(self.nodes, calls) // points
        by_image = not by_rows and any(isinstance(call, Product) for call in calls)
        if least * point > maximum(MOST if by_image else 2 * CACHE, most):
            return None
        wanted = maximum(least, CACHE // maximum(point, 1))
        rounds = -(-points // (wanted * self.target.planned))
        tile = -(-points // (rounds * self.target.planned))
        # A tile must lie within one matrix of a batch, and all parts of a sum must have equally many terms.
        within = [points // products for products, _ in by_rows if products > 1]
        within += [points for call in calls if isinstance(call, Product) and call.summed]
        if within:
            tile = computed(_divisor, tile, within, bounds=(1, inf))
        return tile


def _divisor(most: int, extents: Sequence[int]) -> int:
    """The greatest common divisor of `extents` up to `most`."""
    return next(t for t in range(min(most, *extents), 0, -1) if not any(extent % t for extent in extents))


def _by_rows(call: KernelCall | Product, points: int) -> TypeGuard[Product]:
    """Whether a call is a product each of whose matrices has several points of a loop, as rows."""
    return isinstance(call, Product) and numel(call.batch) < points


def _by_terms(call: KernelCall | Product, points: int, only: str = "") -> Product:
    """The product as a summed batch of `points` products, each of a part of its terms."""
    assert isinstance(call, Product)
    parts = points // numel(call.batch)
    terms = call.extents[2] // parts
    part = call.resized("k", terms)
    a = part.a._replace(steps=(*part.a.steps, terms * part.a.layout.strides[-1]))
    b = part.b._replace(steps=(*part.b.steps, terms * part.b.layout.strides[-2]))
    return part._replace(a=a, b=b, c=part.c._replace(steps=(*part.c.steps, 0)), batch=(*call.batch, parts), only=only)


def _with_all_terms(call: KernelCall | Product, tile: int) -> KernelCall | Product:
    """A summed batch of products of parts of the terms, with the terms of a whole tile as one part."""
    if not isinstance(call, Product) or not call.summed or len(call.batch) > 1 or call.only or not call.is_plain:
        return call
    (_, _, k), (points,) = call.extents, call.batch
    (a,), (b,) = call.a.steps, call.b.steps
    if (a, b) != (k * call.a.layout.strides[-1], k * call.b.layout.strides[-2]):
        return call
    whole = call.resized("k", k * tile)
    a_tile, b_tile = whole.a._replace(steps=(a * tile,)), whole.b._replace(steps=(b * tile,))
    return whole._replace(a=a_tile, b=b_tile, batch=(points // tile,))


def _alone(call: Product, threads: int) -> Loop:
    """The loop that sums a batch."""
    points = numel(call.batch) // call.results
    return _divided(Loop((call,), points, -(-points // threads), (), points), threads)


def _divided(loop: Loop, threads: int) -> Loop:
    """The loop, with partial sums for `threads` threads if it accumulates over its tiles."""
    return loop._replace(partials=minimum(threads, loop.tiles)) if loop.sums else loop


def _live_bytes(nodes: Sequence[Node], calls: Sequence[KernelCall | Product]) -> int:
    """The peak of bytes that are live between the calls: written by an earlier call, read by a later one."""
    last = {value: at for at, call in enumerate(calls) for value in call.reads}
    most = 0
    live: set[int] = set()
    for at, call in enumerate(calls):
        live.update(call.writes)
        most = maximum(most, sum(nodes[value].nbytes for value in live))
        live = {value for value in live if last.get(value, -1) > at}
    return most


def _idle(loop: Loop, threads: int) -> float:
    """The cycles that threads wait at the loop's end, where whole matrices are not equally many for each."""
    if any(_by_rows(call, loop.points) for call in loop.calls):  # a product's rows are not equally many without a loop either
        return 0
    round_ = loop.tile * threads
    missing = -(-loop.points // round_) * round_ - loop.points
    return sum(call.flops for call in loop.calls if isinstance(call, Product)) / FLOPS * missing / loop.points


def _packed_again(call: Product, loop: Loop, threads: int) -> float:
    """The elements that tiles of rows pack beyond what the undivided product would pack."""
    m, n, k = call.extents
    products = numel(call.batch)
    alone = products * minimum(threads * n, n + (threads - 1) * m)
    return 0 if products >= loop.points else maximum(0, loop.tiles * n - alone) * k
