"""Runs of the host's programs in the middle: left between two launches by an interrupt, or met there by a signal handler.

Until a launch writes over an input, or a collective begins, the run can be begun again and is. From then on what it was
computed from is no more, or other processes have been told: whoever needs one of its values has it go on from where it is.
"""

from __future__ import annotations

import numpy as np

from genesis.execution.plan import Plan
from genesis.execution.result_pool import Run
from genesis.runtime.collective_ir import UNUSABLE
from genesis.runtime.collectives import GROUPS, Collective, CollectiveError, Group
from genesis.runtime.memory import Buffer
from genesis.runtime.native import Fault
from genesis.runtime.scratch import scratch
from genesis.tracing.source_line import line_name
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Trace


def has_overwritten(run: Run | None) -> bool:
    """Whether a run that has not come to its end has written over inputs, or has launched something among collectives."""
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
    """Run the launches that are left of a trace's run."""
    assert run.overwriting is not None and isinstance(run.plan, Plan)
    program = run.plan.segments[-1].program
    assert program is not None
    fault = program.run(run.overwriting[0], run.completion)
    if fault is not None:  # indices are looked at before the first write over an input: see `donations`
        raise collective_failure(run, fault, trace.line_of(run.plan.lowered.origins[fault.site]))


def collective_failure(run: Run, fault: Fault, line: tuple[str, int] | None = None) -> CollectiveError:
    """What to say of the collective that reported a fault, which the user wrote at `line`."""
    assert isinstance(run.plan, Plan)
    node = run.plan.lowered.nodes[fault.site]
    what, where = Collective.of(node.op, node.attrs), f" at {line_name(line)}" if line else ""
    group = GROUPS[node.attrs["group"]]
    for other in groups_of(run.plan) - {group}:
        if other.is_busy:
            other.close(UNUSABLE, *_memory_of(run))
    return group.failure(what, where, fault.flag, fault.value, *_memory_of(run))


def groups_of(plan: Plan) -> set[Group]:
    """The groups whose ranks a plan communicates with."""
    return {GROUPS[node.attrs["group"]] for node in plan.collectives}


def give_up(run: Run) -> None:
    """A run is left for good: it is not to be begun again where others have seen, or wait for, some of its collectives."""
    assert isinstance(run.plan, Plan)
    for group in groups_of(run.plan):
        if len(run.plan.segments) > 1 or group.is_busy:
            group.close(UNUSABLE, *_memory_of(run))


def close_group(run: Run, number: int) -> None:
    """Have nothing more be begun in a group, of which nobody knows what a run has done there."""
    GROUPS[number].close(UNUSABLE, *_memory_of(run))


def _memory_of(run: Run) -> tuple[object, ...]:
    """What a collective that is still under way may write to."""
    return run.arena, run.memories, run.plan


def leave(trace: Trace, raised: BaseException) -> None:
    """A run is left, and will go on: other processes may wait for its collectives, and other programs will use memory that it
    has in common with them.
    """
    left = thread_state.left
    if isinstance(raised, CollectiveError):  # it will not
        thread_state.left = tuple([other for other in left if other is not trace])
    elif trace.run.plan.collectives and trace not in left:
        thread_state.left = (*left, trace)
    _leave_scratch(trace.run)


def _leave_scratch(run: Run) -> None:
    """Have temporaries in memory of their own."""
    plan, arena = run.plan, run.arena
    if arena is not None and scratch.is_shared(arena) and run.overwriting is not None and isinstance(plan, Plan):
        own = Buffer(plan.arena_bytes, run.device)
        own.numpy(np.uint8, (plan.arena_bytes,))[:] = arena.numpy(np.uint8, (plan.arena_bytes,))
        run.overwriting[0][len(plan.inputs) + len(plan.sizes)] = own.ptr
        run.arena = own
