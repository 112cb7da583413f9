"""Host operations: what Python computes between two native programs, by an operation's NumPy reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides
from genesis.lower.stages import HostCall
from genesis.ops.layout import Layout
from genesis.ops.registry import PRIMITIVES
from genesis.plan import Plan

__all__ = ["call_host"]


def call_host(plan: Plan, call: HostCall, slots: Sequence[Any]) -> None:
    """Compute a host operation on the memory that the slots of a run point to."""
    lowered = plan.lowered
    outputs_at = len(plan.inputs)

    def array_at(value: int, layout: Layout) -> np.ndarray:
        place = lowered.schedule.locations[value]
        node = lowered.nodes[value]
        first = {"input": place.place, "output": outputs_at + place.place, "arena": outputs_at + len(plan.sizes)}
        address = slots[first[place.kind]] + (place.place if place.kind == "arena" else 0)
        return _over(address, node, layout)

    node = lowered.nodes[call.node]
    operands = [array_at(base, layout) for base, layout in call.operands]
    target = array_at(call.node, Layout(node.shape, contiguous_strides(node.shape), 0))
    reference = PRIMITIVES[node.op].reference
    assert reference is not None
    with np.errstate(all="ignore"):
        target[...] = reference(node, *operands)


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
