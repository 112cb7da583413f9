"""Runs a program with collectives, in a replay by instructions.

Other ranks may make it wait; other threads and signal handlers run meanwhile. So tensors get its results only at its end. If a
handler raises, the interrupted run is left to a trace: as after an interrupted flush, the call has been made, and whoever needs
one of its values continues the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from genesis.capture.record.results import build_tensor
from genesis.capture.replay.changing_program import TensorChanges, assign
from genesis.capture.replay.host_program import HostProgram
from genesis.capture.replay.taken_steps import PythonCalls
from genesis.execution.interrupted_run import collective_failure, has_overwritten, leave
from genesis.execution.plan import Plan
from genesis.execution.result_pool import ResultPool, Run
from genesis.ir.graph import Node
from genesis.lower.stages import Call, HostCall, may_fail
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.completion import Completion
from genesis.runtime.counters import counts
from genesis.runtime.memory import Buffer
from genesis.tensor.handle import Tensor
from genesis.tracing.trace import Array, Trace

_pointer = attrgetter("memory.pointer")


def is_replayable(plan: Plan, pool: ResultPool) -> bool:
    """Whether an unfinished run has changed nothing, and a failed one has started no collective."""
    if pool.has_large:  # these may overwrite inputs
        return False
    nodes, stages = plan.lowered.nodes, plan.lowered.schedule.stages
    calls = [(number, call) for number, stage in enumerate(stages) for call in stage]
    first = min(number for number, call in calls if _is_collective(nodes, call))
    return not any(may_fail(call) for number, call in calls if number > first and not _is_collective(nodes, call))


def _is_collective(nodes: Sequence[Node], call: Call) -> bool:
    return isinstance(call, HostCall) and PRIMITIVES[nodes[call.node].op].kind == "collective"


class CollectiveRun:
    """Runs such a program in the memory of `run`."""

    def __init__(
        self, program: HostProgram, changes: TensorChanges, computes: bool, calls: PythonCalls, run: Run
    ) -> None:
        self._program, self._plan = program.recorded, program.recorded.plan
        self._native = program.program
        self._changes, self._computes, self._calls, self._run = changes, computes, calls, run
        self._completion = Completion()

    def __call__(self, *given: Any) -> bool | None:
        """Run on these arrays and leaves. Returns True, or None if an index is out of range or a step would differ. Raises
        CollectiveError.
        """
        plan, program, count = self._plan, self._program, len(self._program.inputs)
        changing = self._calls.compute(*given[count:]) if self._computes else given[count:]
        if changing is None:
            return None
        arena: Buffer | None = None
        arrays, numbers = [*given[:count]], [*program.numbers]
        words: list[int | float] = []
        try:
            any(map(numbers.__setitem__, [k for k, _ in program.slots], changing))
            arena = Buffer(plan.arena_bytes) if plan.arena_bytes else None  # not the shared one, as MPI reads and writes there
            inputs = map(_pointer, map(arrays.__getitem__, plan.inputs))
            words = [*inputs, *self._run.addresses, arena.ptr if arena else 0, *numbers]
            self._completion.clear()
            counts["flushes"] += 1
            counts["plan_hits"] += 1
            counts["collective_bytes"] += plan.collective_bytes
            fault = self._native.run(words, self._completion)
        except BaseException as raised:
            self._leave(arrays, numbers, words, arena, raised)
            raise
        if fault is None:
            return True
        nodes, origins = plan.lowered.nodes, plan.lowered.origins
        if PRIMITIVES[nodes[fault.site].op].kind != "collective":
            self._calls.take_back()
            return None
        trace, run = self._put_down(arrays, numbers, words, arena)
        raise collective_failure(run, fault, trace.line_of(origins[fault.site]))

    def _put_down(
        self, arrays: list[Array], numbers: list[float], words: list[int | float], arena: Buffer | None
    ) -> tuple[Trace, Run]:
        """Create the trace that would have been flushed, with the interrupted run."""
        trace, handles = self._program.put_down(arrays, numbers)
        run = Run(trace.device)
        run.plan, run.handles, run.arena, run.overwriting = self._plan, handles, arena, (words, [])
        run.memories, run.addresses = [*self._run.memories], [*self._run.addresses]
        run.completion, self._completion = self._completion, Completion()
        return trace, run

    def _leave(
        self, arrays: list[Array], numbers: list[float], words: list[int | float], arena: Buffer | None, raised: BaseException
    ) -> None:
        """After a failure: either undo everything, or the call has been made."""
        trace, run = self._put_down(arrays, numbers, words, arena)
        if not (words and (run.completion or has_overwritten(run))):
            return
        self._calls.done[0] = 1
        self._commit(trace, run.handles)
        trace.run, trace.closed = run, True
        leave(trace, raised)

    def _commit(self, trace: Trace, handles: Sequence[Array]) -> None:
        """Give tensors their new arrays, which are pending."""
        changed = self._changes.roots
        roots = [root for root, _ in changed]
        trace.written += [(root, root._array, root._changes) for root in roots]
        values, made = {(0, one.index): one for one in handles}, dict[int, Tensor]()
        graded = [(tensor, None if recipe is None else build_tensor(recipe, values, (), made))
                  for tensor, recipe in self._changes.gradients]
        assign(roots, [handles[write.output] for _, write in changed], [write.versions for _, write in changed], graded)
