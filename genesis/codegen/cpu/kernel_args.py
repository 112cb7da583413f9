"""Kernel arguments as words of argument blocks: addresses, extents, numbers, memory for workers; a product's epilogues."""

from __future__ import annotations

import struct
from itertools import chain
from typing import NamedTuple

from genesis.codegen.segment import SlotMap
from genesis.ir.shapes import numel
from genesis.ir.unguarded import computed
from genesis.lower.build import KernelCall
from genesis.lower.kernel import KernelArg
from genesis.lower.stages import Product
from genesis.runtime.native import FAULT, Addresses, BlockWord, Slot, Symbol

ROOM = 64  # numbers of padding after a share's column sums: the widest vector


class Work(NamedTuple):
    """The division of a call: `items`, of which `blocks` along the lane axis have `lanes` each; `shares` have partial
    results."""

    lanes: int
    blocks: int
    workers: int
    items: int
    shares: int = 1


def argument(w: KernelArg, call: KernelCall, slots: SlotMap, work: Work) -> BlockWord:
    kernel = call.kernel
    if w.kind == "pointer":
        return slots.address(w.value, w.extra)
    if w.kind == "scalar":
        return Slot(slots.scalar_slot + w.value)
    if w.kind == "constant":
        return bits(w.value) if w.is_double else int(w.value)
    if w.kind == "fault":
        return FAULT
    # Whether an output is streamed depends on its size, so it is an argument: the kernel's text stays the same.
    if w.kind == "stream":
        return int(w.value in slots.streamed)
    if w.kind == "scratch":  # one row for each worker
        return slots.room(work.workers * call.extents[kernel.lane or 0] * w.extra.itemsize)
    if w.kind == "partials":
        totals = [i for i in kernel.instructions if i.level in ("column", "final") and "over" in dict(i.attrs)]
        columns = [extent for extent, (_, reduced) in zip(call.extents, kernel.axes, strict=True) if reduced]
        return slots.room(8 * work.shares * len(totals) * (numel(columns) + ROOM if totals[0].level == "column" else 1))
    return {"block": work.lanes, "blocks": work.blocks, "items": work.items, "shares": work.shares}.get(w.kind, w.value)


def bits(value: float) -> int:
    """The word of a number in float64."""
    return computed(_double, value)  # type: ignore[no-any-return]


def _double(value: float) -> int:
    return int.from_bytes(struct.pack("=d", value), "little", signed=True)


def followers(product: Product, slots: SlotMap, addresses: Addresses, workers: int) -> tuple[BlockWord, ...]:
    """For each call its kernel, its argument block, and its items per row."""
    rows = product.extents[0]
    return tuple(chain.from_iterable(_entry(call, rows, slots, addresses, workers) for call in product.epilogue))


def _entry(
    call: KernelCall, rows: int, slots: SlotMap, addresses: Addresses, workers: int
) -> tuple[int | Symbol, tuple[BlockWord, ...], int]:
    kernel = call.kernel
    extent = call.extents[kernel.lane] if kernel.lane is not None else 1
    lanes, items = (extent, numel(call.extents[a] for a in kernel.outer)) if kernel.outer else (extent // rows, rows)
    work = Work(lanes, 1, workers, items)
    words = tuple(argument(w, call, slots, work) for w in kernel.words)
    return addresses[kernel.name], words, items // rows
