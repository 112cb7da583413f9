"""Host operations: Python runs an operation's NumPy reference between two native programs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.reference import widened_arrays
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.devices import Device
from genesis.runtime.memory import fetched
from genesis.tracing.recording_hooks import unwatched

if TYPE_CHECKING:
    from genesis.lower import Lowered
    from genesis.lower.stages import HostCall


class Caller(Protocol):
    """A plan, as far as host calls need it."""

    inputs: list[int]
    sizes: list[int]
    host_calls: dict[int, BoundCall]  # by node, since their first run

    @property
    def lowered(self) -> Lowered: ...


@unwatched
def call_host(plan: Caller, call: HostCall, slots: Sequence[Any], device: Device) -> None:
    """Compute a host operation on the memory that a run's slots point to, on `device`."""
    bound = plan.host_calls.get(call.node)
    if bound is None:
        bound = plan.host_calls[call.node] = BoundCall(plan, call)
    if device.memory.is_host:
        bound.run(slots)
    else:
        bound.run_on_copies(slots, device)


class _BoundArray:
    """An operand or result of a host call, bound to a slot: its address there, dtype and layout."""

    __slots__ = ("dtype", "first", "layout", "lowest", "memory", "slot", "strides")

    def __init__(self, plan: Caller, value: int, layout: Layout) -> None:
        lowered, outputs_at = plan.lowered, len(plan.inputs)
        node, location = lowered.nodes[value], lowered.schedule.locations[value]
        size, self.dtype, self.layout = node.dtype.itemsize, node.dtype.numpy, layout
        slots = {"input": location.position, "output": outputs_at + location.position, "arena": outputs_at + len(plan.sizes)}
        self.slot = slots[location.kind]
        self.strides = tuple([s * size for s in layout.strides])
        steps = [(e - 1) * s for e, s in zip(layout.shape, self.strides, strict=True)] if 0 not in layout.shape else []
        self.first = -sum([min(step, 0) for step in steps])  # bytes from the lowest element
        self.memory = ctypes.c_char * (self.first + sum([max(step, 0) for step in steps]) + size)
        self.lowest = layout.offset * size - self.first + (location.position if location.kind == "arena" else 0)

    def array(self, slots: Sequence[Any]) -> np.ndarray:
        """The array in host memory in this run."""
        memory = self.memory.from_address(slots[self.slot] + self.lowest)
        return np.ndarray(self.layout.shape, self.dtype, memory, self.first, self.strides)  # type: ignore[arg-type]

    def fetched(self, slots: Sequence[Any], device: Device) -> np.ndarray:
        """A host copy of the array in a device's memory."""
        address = slots[self.slot] + self.lowest + self.first
        return fetched(device, address, self.dtype, self.layout.shape, self.strides)


class BoundCall:
    """A host call of a plan: its operation, and its operands and result bound to slots."""

    __slots__ = ("into", "node", "operands", "reference", "result")

    def __init__(self, plan: Caller, call: HostCall) -> None:
        self.node = node = plan.lowered.nodes[call.node]
        row = PRIMITIVES[node.op]
        assert row.reference is not None
        self.reference, self.into = row.reference, row.into
        self.operands = [_BoundArray(plan, base, layout) for base, layout in call.operands]
        self.result = _BoundArray(plan, call.node, contiguous_layout(node.shape))

    def run(self, slots: Sequence[Any]) -> None:
        """Compute in host memory."""
        operands, out = widened_arrays([operand.array(slots) for operand in self.operands]), self.result.array(slots)
        if self.into is not None:
            self.into(self.node, out, *operands)
            return
        with np.errstate(all="ignore"):
            out[...] = self.reference(self.node, *operands)

    def run_on_copies(self, slots: Sequence[Any], device: Device) -> None:
        """Compute on copies of a device's memory, and copy the result back."""
        with np.errstate(all="ignore"):
            result = self.reference(self.node, *widened_arrays([operand.fetched(slots, device) for operand in self.operands]))
        whole = np.ascontiguousarray(np.broadcast_to(result, self.node.shape), self.node.dtype.numpy)
        device.memory.write(slots[self.result.slot] + self.result.lowest, whole)
