"""Interrupted runs of host programs: left between two launches by an interrupt, or observed there by a signal handler.

Until a launch writes over an input, or a collective begins, the run is simply restarted. After that its inputs are gone, or
other processes depend on it: whoever needs one of its values resumes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from genesis.execution.plan import Plan
from genesis.execution.result_pool import Run
from genesis.runtime.completion import Fault
from genesis.runtime.groups import GROUPS, Collective, CollectiveError
from genesis.runtime.memory import Buffer
from genesis.runtime.scratch import scratch
from genesis.tracing.source_line import line_name
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Trace

if TYPE_CHECKING:
    from genesis.runtime.collectives import Group


def has_overwritten(run: Run | None) -> bool:
    """Whether an unfinished run has written over inputs, or has launched something among collectives."""
    if run is None or run.overwriting is None or not isinstance(run.plan, Plan):
        return False
    begun = run.completion.launches or any(group.is_busy for group in groups_of(run.plan))
    if run.plan.collectives and len(run.plan.segments) == 1 and begun:
        return True
    if not run.completion.launches:
        return False
    schedule = run.plan.lowered.schedule
    _, numbers = run.overwriting
    for stage in {*run.plan.segments[-1].stages[: run.completion.launches]}:
        for value in [value for call in schedule.stages[stage] for value in call.writes]:
            location = schedule.locations.get(value)
            if location is not None and location.kind == "output" and location.position in numbers:
                return True
    return False


def go_on(run: Run, trace: Trace) -> None:
    """Run the remaining launches of a trace's run."""
    assert run.overwriting is not None and isinstance(run.plan, Plan)
    program = run.plan.segments[-1].program
    assert program is not None
    fault = program.run(run.overwriting[0], run.completion)
    if fault is not None:  # indices are checked before the first write over an input: see `donations`
        raise collective_failure(run, fault, trace.line_of(run.plan.lowered.origins[fault.site]))


def collective_failure(run: Run, fault: Fault, line: tuple[str, int] | None = None) -> CollectiveError:
    """The error for a collective's fault; `line` is the user's line."""
    assert isinstance(run.plan, Plan)
    node = run.plan.lowered.nodes[fault.site]
    what, where = Collective.of(node.op, node.attrs), f" at {line_name(line)}" if line else ""
    group = GROUPS[node.attrs["group"]]
    for other in groups_of(run.plan) - {group}:
        if other.is_busy:
            other.abandon(*_memory_of(run))
    return group.failure(what, where, fault.flag, fault.value, *_memory_of(run))


def groups_of(plan: Plan) -> set[Group]:
    """The process groups of a plan's collectives."""
    return {GROUPS[node.attrs["group"]] for node in plan.collectives}


def give_up(run: Run) -> None:
    """Abandon a run. It must not be restarted if other ranks have taken part in, or wait for, its collectives."""
    assert isinstance(run.plan, Plan)
    for group in groups_of(run.plan):
        if len(run.plan.segments) > 1 or group.is_busy:
            group.abandon(*_memory_of(run))


def close_group(run: Run, number: int) -> None:
    """Forbid further collectives in a group, because its state after the run is unknown."""
    GROUPS[number].abandon(*_memory_of(run))


def _memory_of(run: Run) -> tuple[object, ...]:
    """The memory that an unfinished collective may write to."""
    return run.arena, run.memories, run.plan


def leave(trace: Trace, raised: BaseException) -> None:
    """Suspend a run, to be resumed: other processes may wait for its collectives. Move its scratch memory, because other
    programs will use the shared one.
    """
    left = thread_state.left
    if isinstance(raised, CollectiveError):  # it will not be resumed
        thread_state.left = tuple([other for other in left if other is not trace])
    elif trace.run.plan.collectives and trace not in left:
        thread_state.left = (*left, trace)
    _leave_scratch(trace.run)


def _leave_scratch(run: Run) -> None:
    """Move temporaries to memory of their own."""
    plan, arena = run.plan, run.arena
    if arena is not None and scratch.is_shared(arena) and run.overwriting is not None and isinstance(plan, Plan):
        own = Buffer(plan.arena_bytes, run.device)
        own.numpy(np.uint8, (plan.arena_bytes,))[:] = arena.numpy(np.uint8, (plan.arena_bytes,))
        run.overwriting[0][len(plan.inputs) + len(plan.sizes)] = own.ptr
        run.arena = own
