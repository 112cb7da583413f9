"""Host operations: Python runs an operation's NumPy reference between two native programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from genesis.lower import Lowered
from genesis.lower.stages import HostCall
from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.devices import Device
from genesis.runtime.memory import fetched


class Caller(Protocol):
    """What a plan knows of its host calls."""

    lowered: Lowered
    inputs: list[int]
    sizes: list[int]
    host_calls: dict[int, BoundCall]  # by node, from their first run on


def call_host(plan: Caller, call: HostCall, slots: Sequence[Any], device: Device) -> None:
    """Compute a host operation on the memory of `device` that the slots of a run point to."""
    bound = plan.host_calls.get(call.node)
    if bound is None:
        bound = plan.host_calls[call.node] = BoundCall(plan, call)
    with np.errstate(all="ignore"):
        if device.memory.is_host:
            bound.run(slots)
        else:
            bound.run_apart(slots, device)


class _Place:
    """Where an operand or a result lies: a slot of each run, and the array that begins in bytes behind it."""

    __slots__ = ("dtype", "layout", "offset", "shown", "slot", "strides")

    def __init__(self, plan: Caller, value: int, layout: Layout) -> None:
        lowered, outputs_at = plan.lowered, len(plan.inputs)
        node = lowered.nodes[value]
        place = lowered.schedule.locations[value]
        size, self.dtype, self.layout = node.dtype.itemsize, node.dtype.numpy, layout
        first = {"input": place.place, "output": outputs_at + place.place, "arena": outputs_at + len(plan.sizes)}
        self.slot = first[place.kind]
        self.offset = layout.offset * size + (place.place if place.kind == "arena" else 0)
        kind = self.dtype.str if self.dtype.kind != "V" else f"<V{size}"
        self.strides = tuple([s * size for s in layout.strides])
        self.shown = {"shape": layout.shape, "typestr": kind, "strides": self.strides, "version": 3}

    def array(self, slots: Sequence[Any]) -> np.ndarray:
        """The memory of the host in this run."""
        array = np.asarray(_Address({**self.shown, "data": (slots[self.slot] + self.offset, False)}))
        return array if array.dtype == self.dtype else array.view(self.dtype)

    def fetched(self, slots: Sequence[Any], device: Device) -> np.ndarray:
        """A copy of the memory of a device."""
        return fetched(device, slots[self.slot] + self.offset, self.dtype, self.layout.shape, self.strides)


class _Address:
    """Memory at an address, in NumPy's array interface."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


class BoundCall:
    """A host call of a plan: what it computes, and where its operands and its result are found in each run."""

    __slots__ = ("into", "node", "operands", "reference", "result")

    def __init__(self, plan: Caller, call: HostCall) -> None:
        self.node = node = plan.lowered.nodes[call.node]
        row = PRIMITIVES[node.op]
        assert row.reference is not None
        self.reference, self.into = row.reference, row.into
        self.operands = [_Place(plan, base, layout) for base, layout in call.operands]
        self.result = _Place(plan, call.node, contiguous_layout(node.shape))

    def run(self, slots: Sequence[Any]) -> None:
        """Compute in the memory of the host."""
        operands, out = [place.array(slots) for place in self.operands], self.result.array(slots)
        if self.into is None:
            out[...] = self.reference(self.node, *operands)
        else:
            self.into(self.node, out, *operands)

    def run_apart(self, slots: Sequence[Any], device: Device) -> None:
        """Compute what lies in the memory of a device, and copy the result there."""
        result = self.reference(self.node, *[place.fetched(slots, device) for place in self.operands])
        whole = np.ascontiguousarray(np.broadcast_to(result, self.node.shape), self.node.dtype.numpy)
        device.memory.write(slots[self.result.slot] + self.result.offset, whole)
