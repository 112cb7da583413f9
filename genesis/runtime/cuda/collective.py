"""Collectives of GPUs among the programs of a plan: ranks agree on the host, and the GPU runs asynchronously."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.dtypes import DType
from genesis.runtime import collective_ir as ir
from genesis.runtime.collectives import Group
from genesis.runtime.completion import Completion, Fault
from genesis.runtime.cuda.gpu import Mark
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.cuda.nccl import Communicator
from genesis.runtime.groups import Collective, CollectiveError
from genesis.runtime.native import Slot

_PAIR = "a message is between two ranks, and a graph is all ranks'"


class CollectiveProgram:
    """A collective of a group, on memory given by slots; its faults are those of `node`.

    Before each run ranks compare what they are about to run, as on the CPU, because mismatched calls of NCCL would hang. The
    GPU keeps working meanwhile. The collective runs on a separate stream, after the programs submitted before it. Later
    programs run concurrently until an `AwaitingProgram` makes them wait; with `awaits` they wait at once.
    """

    def __init__(
        self, group: Group, engine: Communicator, what: Collective, dtype: DType, node: int, operand: Slot, result: Slot,
        nbytes: int, awaits: bool,
    ) -> None:
        self.sources = [f"# NCCL: {what.op} {what.said}\n"]
        self.group, self.engine, self.what = group, engine, what
        self.refused = _PAIR if what.between is not None else ""
        self._dtype, self._node = dtype, node
        self._slots, self._nbytes, self._awaits = (operand, result), nbytes, awaits
        self.meet = group.meeting(what._replace(said=f"{what.said} on cuda"))
        # What other ranks than the root are left with is what they gave.
        self._copies = what.op in ("reduce_to", "gather_to") and group.rank != what.root
        self._marks: tuple[Mark, Mark] | None = None

    def run(self, values: Sequence[int | float], completion: Completion | None = None) -> Fault | None:
        """Start it once all ranks have arrived; returns the fault, if any. After an interrupt the group is unusable."""
        try:
            flag, value, _ = self.meet()
            fault = self.fault(flag, value) if flag else self.begin(values)
        except BaseException:
            self.group.close(ir.UNUSABLE)
            raise
        if fault is None and completion is not None:
            completion.note()
        return fault

    def fault(self, flag: int, value: int = 0) -> Fault:
        """The fault of a failure."""
        return Fault(flag, self._node, value, 0)

    def seconds(self) -> list[float]:
        """The seconds that the GPU took for it in the latest run."""
        if self._marks is None:
            return [0.0]
        self.engine.memory.wait(self._marks[1])
        return [self.engine.memory.gpu.seconds_between(*self._marks)]

    def begin(self, values: Sequence[int | float]) -> Fault | None:
        """Start it; all ranks have arrived."""
        memory, gpu = self.engine.memory, self.engine.memory.gpu
        with memory.lock:
            gpu.hold(gpu.mark(), communicates=True)
            began = gpu.mark(timed=True, communicates=True)
            is_begun = self._submit(values)
            self._marks = began, gpu.mark(timed=True, communicates=True)
            self.engine.latest = self.what, self._marks[1]
            memory.under_way[self] = self._marks[1]
            if self._awaits:
                memory.await_under_way(self)
        return None if is_begun else self.fault(ir.FAILED)

    def capture(self, values: Sequence[int | float], under_way: dict[object, Mark]) -> None:
        """As `begin`, into the graph that is being captured from the programs' stream: `under_way` gets the mark after it."""
        gpu = self.engine.memory.gpu
        gpu.hold(gpu.mark(), communicates=True)
        if not self._submit(values):
            raise RuntimeError(self.engine.problem)
        under_way[self] = gpu.mark(communicates=True)
        if self._awaits:
            gpu.hold(under_way.pop(self))

    def _submit(self, values: Sequence[int | float]) -> bool:
        """Submit it to the communication stream; returns whether NCCL started it."""
        engine, dtype = self.engine, self._dtype
        operand, result = [int(values[slot.number]) + slot.offset for slot in self._slots]
        if self._copies:
            engine.memory.gpu.copy(result, operand, self._nbytes, communicates=True)
        return engine.submit(engine.commands(self.what, dtype.name, dtype.itemsize, operand, result))


class AwaitingProgram:
    """Makes programs wait for a collective in flight."""

    refused = ""

    def __init__(self, memory: GpuMemory, begun: CollectiveProgram) -> None:
        self._memory, self.begun = memory, begun
        self.sources = [f"# wait for {source[2:]}" for source in begun.sources]

    def run(self, values: Sequence[int | float], completion: Completion | None = None) -> Fault | None:
        """Submit the wait; nothing goes wrong."""
        self._memory.await_under_way(self.begun)
        if completion is not None:
            completion.note()
        return None

    def seconds(self) -> list[float]:
        """None: the time is the collective's."""
        return [0.0]


def watch(group: Group, engine: Communicator, waited: float) -> None:
    """While a thread waits for the GPU: raise CollectiveError if a collective of the group has failed or takes too long."""
    if engine.lost:
        raise CollectiveError(engine.lost)
    if engine.latest is None or not group.is_usable:
        return
    what, mark = engine.latest
    if engine.memory.gpu.has_passed(mark):
        engine.latest = None
    elif engine.has_failed():
        raise group.failure(what, "", ir.FAILED, 0)
    elif waited > group.timeout:
        engine.patience = 0.0
        raise group.failure(what, "", ir.LATE, 0)
