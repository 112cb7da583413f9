"""Host operations: Python runs an operation's NumPy reference between two native programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.execution.plan import Plan
from genesis.ir.graph import Node
from genesis.lower.stages import HostCall
from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.devices import Device
from genesis.runtime.memory import fetched


def call_host(plan: Plan, call: HostCall, slots: Sequence[Any], device: Device) -> None:
    """Compute a host operation on the memory of `device` that the slots of a run point to."""
    lowered = plan.lowered
    outputs_at = len(plan.inputs)

    def address_of(value: int) -> int:
        place = lowered.schedule.locations[value]
        first = {"input": place.place, "output": outputs_at + place.place, "arena": outputs_at + len(plan.sizes)}
        return slots[first[place.kind]] + (place.place if place.kind == "arena" else 0)

    def operand(value: int, layout: Layout) -> np.ndarray:
        node, address = lowered.nodes[value], address_of(value)
        if device.memory.is_host:
            return _over(address, node, layout)
        size = node.dtype.itemsize
        strides = [s * size for s in layout.strides]
        return fetched(device, address + layout.offset * size, node.dtype.numpy, layout.shape, strides)

    node = lowered.nodes[call.node]
    operands = [operand(base, layout) for base, layout in call.operands]
    reference = PRIMITIVES[node.op].reference
    assert reference is not None
    with np.errstate(all="ignore"):
        result = reference(node, *operands)
    if device.memory.is_host:
        _over(address_of(call.node), node, contiguous_layout(node.shape))[...] = result
    else:
        device.memory.write(address_of(call.node), np.ascontiguousarray(np.broadcast_to(result, node.shape), node.dtype.numpy))


class _Address:
    """Memory at an address, in NumPy's array interface."""

    def __init__(self, address: int, node: Node, layout: Layout) -> None:
        size = node.dtype.itemsize
        kind = node.dtype.numpy.str if node.dtype.numpy.kind != "V" else f"<V{size}"
        self.__array_interface__ = {
            "data": (address + layout.offset * size, False), "shape": layout.shape, "typestr": kind,
            "strides": tuple(s * size for s in layout.strides), "version": 3,
        }


def _over(address: int, node: Node, layout: Layout) -> np.ndarray:
    array = np.asarray(_Address(address, node, layout))
    return array if array.dtype == node.dtype.numpy else array.view(node.dtype.numpy)
