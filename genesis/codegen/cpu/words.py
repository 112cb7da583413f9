"""What fills the words of argument blocks: addresses, extents, numbers, memory for workers."""

from __future__ import annotations

import struct
from array import array
from typing import Any

from genesis.codegen.cpu.column_sums import ROOM
from genesis.codegen.places import Places
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.kernel import KernelArg
from genesis.runtime.memory import Buffer
from genesis.runtime.native import FAULT, Slot

__all__ = ["word"]


def word(w: KernelArg, call: KernelCall, places: Places, size: int, count: int, workers: int, items: int, shares: int) -> Any:
    """What fills word `w` of a call of `items` that are blocks of `size` lanes, `count` of them along the lane axis."""
    kernel = call.kernel
    if w.kind == "pointer":
        return places.address(w.value, w.extra)
    if w.kind == "scalar":
        return Slot(places.scalar_slot + w.value)
    if w.kind == "constant":
        return _bits(w.value) if w.is_double else int(w.value)
    if w.kind == "fault":
        return FAULT
    if w.kind == "stream":
        return int(w.value in places.streamed)
    if w.kind == "scratch":
        rows = Buffer(workers * call.extents[kernel.lane or 0] * w.extra.itemsize)
        places.keep.append(rows)
        return rows.ptr
    if w.kind == "partials":
        totals = [i for i in kernel.instructions if i.level in ("column", "final") and "over" in dict(i.attrs)]
        columns = [extent for extent, (_, reduced) in zip(call.extents, kernel.axes, strict=True) if reduced]
        memory = array("q", [0]) * (shares * len(totals) * (numel(columns) + ROOM if totals[0].level == "column" else 1))
        places.keep.append(memory)
        return memory.buffer_info()[0]
    return {"block": size, "blocks": count, "items": items, "shares": shares}.get(w.kind, w.value)


def _bits(value: float) -> int:
    return int.from_bytes(struct.pack("=d", value), "little", signed=True)
