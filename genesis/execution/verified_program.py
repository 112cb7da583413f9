"""Programs under `GENESIS_VERIFY=1`: each new program is verified, and each run is checked against the verifier's assumptions.

The verifier assumes that inputs, outputs and the arena do not overlap, except for donations. Before each run this is checked:
from the addresses, their allocators and, for the first runs that write over memory, from who can reach it. `reusable` and the
pool count references; here the holders are searched.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from genesis.codegen.segment import DeviceProgram, Segment
from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides, reach
from genesis.lower import Lowered
from genesis.lower.verifier import MemoryPlanError, verify
from genesis.runtime.completion import Completion, Fault
from genesis.runtime.devices import Device
from genesis.runtime.memory import Buffer, host_pool
from genesis.tracing.backward_state import BackwardState
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Array, Trace

VERIFY = [os.environ.get("GENESIS_VERIFY", "0") not in ("", "0")]
SEARCHES = [1]  # per program, this many runs that write over memory search its holders, which walks all objects
KNOWN = 2  # tensors that may share a result's memory during a replay: the replaced one and the returned one


def verified(
    lower: Callable[[], Lowered], saved: int, segments: Sequence[Segment], arena_bytes: int, device: Device
) -> list[Segment]:
    """The segments; under VERIFY, of a program that has been verified, and wrapped so that each run is checked.

    Raises MemoryPlanError.
    """
    if not VERIFY[0]:
        return [*segments]
    lowered = lower()
    verify(lowered, saved)
    if arena_bytes < lowered.schedule.arena_bytes:
        raise MemoryPlanError(f"an arena of {lowered.schedule.arena_bytes} bytes is to lie in {arena_bytes}")
    slots = _Slots(lowered, arena_bytes, device)
    return [segment if segment.program is None else segment._replace(program=_VerifiedProgram(segment.program, slots))
            for segment in segments]


def verify_inputs(nodes: Sequence[Node], arrays: Sequence[Array]) -> None:
    """Raise MemoryPlanError unless each array has the layout that the program assumes."""
    for node, array in zip(nodes, arrays, strict=False):
        assert array.memory is not None
        found, wanted = (array.node.shape, array.node.dtype, array.memory.strides), (
            node.shape, node.dtype, node.attrs.get("strides"))
        if found != wanted:
            raise MemoryPlanError(f"an input is {found}; the program was made for {wanted}")


class _VerifiedProgram:
    """A program that checks its memory before each run."""

    def __init__(self, program: DeviceProgram, slots: _Slots) -> None:
        self._program, self._slots = program, slots

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def verify_filled(self, known: int, words: bytes) -> None:
        """Check the slots in a copy of the program's words before a run; so many tensors may share a result's memory."""
        program: Any = self._program
        self._slots.check(program.filled(words), known)

    def run(self, values: Sequence[int | float], *completion: Completion) -> Fault | None:
        self._slots.check(values, known=0)
        return self._program.run(values, *completion)


class _Slots:
    """A program's requirements on its addresses: the bytes of each, and which may be equal."""

    def __init__(self, lowered: Lowered, arena_bytes: int, device: Device) -> None:
        nodes, locations = lowered.nodes, lowered.schedule.locations
        outputs = {where.position: nodes[value].nbytes for value, where in locations.items() if where.kind == "output"}
        self.inputs = [_bytes_of(nodes[value]) for value in lowered.inputs]
        self.outputs = [outputs[k] for k in range(len(outputs))]
        self.arena_bytes = arena_bytes
        self.donations = {output: k for k, output in lowered.donations}
        self.is_host = device.memory.is_host
        self.runs = self.searches = 0

    def check(self, values: Sequence[int | float], known: int) -> None:
        """Raise MemoryPlanError if a run with these slots would write over other data.

        `known` is the number of tensors that may share overwritten memory: they will have the result.
        """
        addresses = [int(value) for value in values[: len(self.inputs) + len(self.outputs) + 1]]
        starts = addresses[len(self.inputs) :]
        spans = [(start, start + size, True, f"output {k}")
                 for k, (start, size) in enumerate(zip(starts, self.outputs, strict=False))]
        spans.append((starts[-1], starts[-1] + self.arena_bytes, True, "the arena"))
        given = {k for output, k in self.donations.items() if starts[output] == addresses[k]}
        spans += [(addresses[k] + low, addresses[k] + high, False, f"input {k}")
                  for k, (low, high) in enumerate(self.inputs) if k not in given]
        end = end_of_written = 0
        for low, high, is_written, name in sorted(spans):
            if low < high and low < (end if is_written else end_of_written):
                raise MemoryPlanError(f"{name}, bytes {low:#x} to {high:#x}, lies in what else the program reads or writes: "
                                      f"{[(n, hex(a), hex(b)) for a, b, _, n in spans if a < high and low < b]}")
            end, end_of_written = max(end, high), max(end_of_written, high if is_written else 0)
        if self.is_host:
            self._check_holders([start for start, size in zip(starts, self.outputs, strict=False) if size], known, bool(given))

    def _check_holders(self, starts: Sequence[int], known: int, over_inputs: bool) -> None:
        """Check that nobody can read overwritten memory: no outside array, no tensor, autograd graph or pending program."""
        buffers = [host_pool.owner(start) for start in starts]
        for start, size, buffer in zip(starts, filter(None, self.outputs), buffers, strict=True):
            if not isinstance(buffer, Buffer) or buffer.nbytes < size:
                raise MemoryPlanError(f"a result of {size} bytes is to lie at {start:#x}: nobody's memory of that size")
            if buffer.shared:
                raise MemoryPlanError(f"a result of {size} bytes is to lie at {start:#x}, which arrays outside see")
        self.runs += 1
        if buffers and (self.runs > 1 or over_inputs) and self.searches < SEARCHES[0]:
            self.searches += 1
            found = holders(buffers)
            for address, count in Counter([address for address, _ in found]).items():
                if count > known:
                    raise MemoryPlanError(f"a result is to lie at {address:#x}, where others hold a value: "
                                          f"{[name for at, name in found if at == address]}")


def holders(buffers: Sequence[object]) -> list[tuple[int, str]]:
    """(address, description) of each tensor, autograd graph and pending program that can read one of these buffers."""
    memories = [found for found in gc.get_referrers(*buffers) if isinstance(found, Memory)]
    arrays = {id(found): found for found in gc.get_referrers(*memories) if isinstance(found, Array)} if memories else {}
    found: list[tuple[int, str]] = []
    for holder in gc.get_referrers(*arrays.values()) if arrays else ():
        inside: Sequence[object] = ()
        if isinstance(holder, list | dict) and holder is not arrays:  # the data of a pending trace, or what its backward reads
            if any([isinstance(trace, BackwardState) or (isinstance(trace, Trace) and (
                    trace.done or not trace.closed)) for trace in gc.get_referrers(holder)]):
                inside = [*(holder.values() if isinstance(holder, dict) else holder)]
        elif hasattr(holder, "_array"):
            inside = [holder._array]
        found += [(arrays[id(array)].memory.buffer.ptr, type(holder).__name__)  # type: ignore[union-attr]
                  for array in inside if id(array) in arrays]
    return found


def _bytes_of(node: Node) -> tuple[int, int]:
    """The byte range of an input, relative to its first element."""
    low, high = reach(node.shape, node.attrs.get("strides") or contiguous_strides(node.shape))
    return low * node.dtype.itemsize, high * node.dtype.itemsize
