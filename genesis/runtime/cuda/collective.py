"""Collectives of GPUs among the programs of a plan: ranks agree on the host, and the GPU goes on by itself."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.dtypes import DType
from genesis.runtime import collective_ir as ir
from genesis.runtime.collectives import Collective, CollectiveError, Group
from genesis.runtime.cuda.gpu import Mark
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.cuda.nccl import Communicator
from genesis.runtime.native import Completion, Fault, Slot


class CollectiveProgram:
    """A collective of a group, on memory that slots say; `node` is what it reports a fault of.

    Before each run ranks compare what they are about to do, as they do before one of the CPU: other calls of NCCL's would never
    end. The GPU goes on meanwhile with what it has. It runs in a stream of its own, behind what programs have begun before it;
    programs go on, until an `AwaitingProgram` has them wait for it. `awaits` has that happen at once.
    """

    refused = "NCCL wants the same calls captured on all ranks"

    def __init__(
        self, group: Group, engine: Communicator, what: Collective, dtype: DType, node: int, operand: Slot, result: Slot,
        nbytes: int, awaits: bool,
    ) -> None:
        self.sources = [f"# NCCL: {what.op} {what.said}\n"]
        self._group, self._engine, self._what, self._dtype, self._node = group, engine, what, dtype, node
        self._places, self._nbytes, self._awaits = (operand, result), nbytes, awaits
        self._meet = group.meeting(what._replace(said=f"{what.said} on cuda"))
        # What other ranks than the root are left with is what they gave.
        self._copies = what.op in ("reduce_to", "gather_to") and group.rank != what.root
        self._marks: tuple[Mark, Mark] | None = None

    def run(self, values: Sequence[int | float], completion: Completion | None = None) -> Fault | None:
        """Begin it, once all ranks are here; what went wrong, if something did. The group is of no use after an interrupt."""
        try:
            flag, value = self._meet()
            if not flag and not self._begin(values):
                flag = ir.FAILED
        except BaseException:
            self._group.close(ir.UNUSABLE)
            raise
        if flag:
            return Fault(flag, self._node, value, 0)
        if completion is not None:
            completion.note()
        return None

    def seconds(self) -> list[float]:
        """The seconds that the GPU took for it in the latest run."""
        if self._marks is None:
            return [0.0]
        self._engine.memory.wait(self._marks[1])
        return [self._engine.memory.gpu.seconds_between(*self._marks)]

    def _begin(self, values: Sequence[int | float]) -> bool:
        memory, gpu = self._engine.memory, self._engine.memory.gpu
        operand, result = [int(values[place.number]) + place.offset for place in self._places]
        with memory.lock:
            gpu.hold(gpu.mark(), communicates=True)
            began = gpu.mark(timed=True, communicates=True)
            if self._copies:
                gpu.copy(result, operand, self._nbytes, communicates=True)
            dtype = self._dtype
            well = self._engine.submit(self._engine.commands(self._what, dtype.name, dtype.itemsize, operand, result))
            self._marks = began, gpu.mark(timed=True, communicates=True)
            self._engine.latest = self._what, self._marks[1]
            memory.under_way[self] = self._marks[1]
            if self._awaits:
                memory.await_under_way(self)
        return well


class AwaitingProgram:
    """Has programs wait for a collective that is under way."""

    refused = CollectiveProgram.refused

    def __init__(self, memory: GpuMemory, begun: CollectiveProgram) -> None:
        self._memory, self._begun = memory, begun
        self.sources = [f"# wait for {source[2:]}" for source in begun.sources]

    def run(self, values: Sequence[int | float], completion: Completion | None = None) -> Fault | None:
        """Submit the wait; nothing goes wrong."""
        self._memory.await_under_way(self._begun)
        if completion is not None:
            completion.note()
        return None

    def seconds(self) -> list[float]:
        """None: the time is the collective's."""
        return [0.0]


def watch(group: Group, engine: Communicator, waited: float) -> None:
    """While somebody waits for the GPU: raise CollectiveError where a collective of the group has failed, or takes too long."""
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
