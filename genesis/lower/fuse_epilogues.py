"""Epilogue fusion: kernels over the rows of a large product run on each block of rows while it is in cache.

Before: stages in order. After: the same, with calls moved up into products' epilogues where that pays. Adam after the weight
gradients of an MLP takes 1.00 ms as an epilogue, and 1.04 as a launch of its own.

A call may join an epilogue if it can run row by row after the product (`tile_access.py`) and moving it up is safe: all that it
reads has been written; no call in between touches what it writes; it keeps its donations (`donations`); and its results live no
longer than before, as it is the product's neighbour or they are outputs, like those of an optimizer's update.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.allocate import last_failing_stage
from genesis.lower.build import KernelCall
from genesis.lower.fuse_tiles import LEAST_SAVED, PACKING, TRAFFIC
from genesis.lower.stages import Call, Product, Stage, Use, may_fail, uses_of
from genesis.lower.target import Target
from genesis.lower.tile_access import access_pattern, stays_in_tiles

COLUMNS = 64, 1024  # of a row, at least and at most: shorter rows have few vectors, blocks of longer ones exceed the cache


def fuse_epilogues(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int], target: Target) -> list[Stage]:
    """The stages with epilogues."""
    if not any(isinstance(call, Product) and _has_whole_rows(nodes, call) for stage in stages for call in stage):
        return [*stages]
    search = _EpilogueSearch(nodes, stages, outputs)
    result: list[list[Call]] = []
    for number, stage in enumerate(stages):
        left = [call for call in stage if id(call) not in search.moved]
        product = left[0] if len(left) == 1 else None
        if isinstance(product, Product) and _has_whole_rows(nodes, product):
            calls = search.followers(product, number)
            if _pays(nodes, product, calls, target.planned):
                search.moved.update(map(id, calls))
                left = [product._replace(epilogue=tuple(calls))]
        result.append(left)
    return [stage for stage in result if stage]


def _has_whole_rows(nodes: Sequence[Node], product: Product) -> bool:
    """Whether the result is one contiguous matrix whose rows have a suitable length."""
    m, n, _ = product.extents
    low, high = COLUMNS
    at = product.c.layout
    return (numel(product.batch) == 1 and at.strides[-2] == n and not at.offset and nodes[product.node].numel == m * n
            and low <= n <= high)


def _pays(nodes: Sequence[Node], product: Product, calls: Sequence[KernelCall], threads: int) -> bool:
    """Whether the traffic saved outweighs that every worker packs all columns for its own rows."""
    m, n, k = product.extents
    written = (product.node, *(value for call in calls for value in call.writes))
    saved = sum(nodes[value].nbytes for value in written if any(value in call.reads for call in calls))
    return saved >= LEAST_SAVED and saved * TRAFFIC > (threads - 1) * k * max(0, n - m) * PACKING


class _EpilogueSearch:
    """The search for calls that may follow products; `moved` are the ids of those that do."""

    def __init__(self, nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int]) -> None:
        self.nodes, self.stages, self.outputs = nodes, stages, frozenset(outputs)
        self.checked = last_failing_stage(stages)
        self.moved: set[int] = set()
        self.reads, self.writes = uses_of(stages)

    def followers(self, product: Product, at: int) -> list[KernelCall]:
        """The calls that may follow the product of stage `at`, in order: readers of its result, and theirs."""
        found: list[KernelCall] = []
        written = {product.node}
        waiting = [*self.reads.get(product.node, ())]
        seen: set[int] = set()
        while waiting:
            # In order: a call comes after those of the epilogue that it reads.
            use = heapq.heappop(waiting)
            call = use.call
            if use.number in seen or id(call) in self.moved or not isinstance(call, KernelCall):
                continue
            seen.add(use.number)
            if self._follows(use, call, at, product.extents[0], found, written):
                found.append(call)
                written.update(call.writes)
                for value in call.writes:
                    for reader in self.reads.get(value, ()):
                        heapq.heappush(waiting, reader)
        return found

    def _follows(self, use: Use, call: KernelCall, at: int, rows: int, found: Sequence[KernelCall], written: set[int]) -> bool:
        """Whether a call may follow, row by row, the product of stage `at` and the followers `found` so far."""
        # Kernels with column sums have no pattern. Allowing them gained nothing: 219 to 218 ms a step.
        pattern = access_pattern(call)
        if pattern is None or not stays_in_tiles(self.nodes, pattern, {*call.writes, *written}, rows):
            return False
        if may_fail(call):  # `checked` assumes that no epilogue fails
            return False
        there = {id(other) for other in found}
        # It would read something written after the product (other than by calls before it in the epilogue).
        late = any(id(other.call) not in there for value in call.reads for other in _between(self.writes, value, at + 1, use))
        # Something before its own stage touches what it writes: moved up, it would write too early.
        touched = any(_between(uses, value, at, use) for uses in (self.reads, self.writes) for value in call.writes)
        return (not late and not touched and (self.outputs.issuperset(call.writes) or self._is_neighbour(use, at, there))
                and self._keeps_memory(use, call, at))

    def _is_neighbour(self, use: Use, at: int, found: set[int]) -> bool:
        """Whether all calls between the product and this call have moved up to the product's stage or further."""
        return all(id(call) in found or id(call) in self.moved for stage in self.stages[at + 1 : use.stage] for call in stage)

    def _keeps_memory(self, use: Use, call: KernelCall, at: int) -> bool:
        """Whether a call keeps its donations in stage `at`."""
        sizes = {self.nodes[value].nbytes for value in call.writes if value in self.outputs}
        given = [value for value in call.reads if self.nodes[value].op == "input" and self.nodes[value].nbytes in sizes
                 and self.reads[value][-1].stage == use.stage]
        # At the product's stage: donation requires that nothing fails after it, and no other reader (`donations`).
        return not given or (at > self.checked and not any(
            other.stage >= at and other.number != use.number for value in given for other in self.reads[value]))


def _between(uses: dict[int, list[Use]], value: int, first: int, end: Use) -> list[Use]:
    """The uses of a value from stage `first` on that come before the stage of `end`."""
    return [use for use in uses.get(value, ()) if first <= use.stage < end.stage]
