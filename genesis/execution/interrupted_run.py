"""Runs of the host's programs in the middle: left between two launches by an interrupt, or met there by a signal handler.

Until a launch writes over an input, the run can be begun again and is. From then on what it was computed from is no more:
whoever needs one of its values has it go on from where it is.
"""

from __future__ import annotations

import numpy as np

from genesis.execution.plan import Plan
from genesis.execution.result_pool import Run
from genesis.runtime.memory import Buffer
from genesis.runtime.scratch import scratch


def has_overwritten(run: Run | None) -> bool:
    """Whether a run that has not come to its end has written over inputs."""
    if run is None or run.overwriting is None or not isinstance(run.plan, Plan) or not run.completion.launches:
        return False
    schedule = run.plan.lowered.schedule
    _, numbers = run.overwriting
    for stage in {*run.plan.segments[-1].stages[: run.completion.launches]}:
        for value in [value for call in schedule.stages[stage] for value in call.writes]:
            place = schedule.locations.get(value)
            if place is not None and place.kind == "output" and place.place in numbers:
                return True
    return False


def go_on(run: Run) -> None:
    """Run the launches that are left."""
    assert run.overwriting is not None and isinstance(run.plan, Plan)
    program = run.plan.segments[-1].program
    assert program is not None
    fault = program.run(run.overwriting[0], run.completion)
    assert fault is None  # indices are looked at before the first write over an input: see `donations`


def leave_scratch(run: Run) -> None:
    """Have temporaries in memory of their own: other programs will use what all have in common."""
    plan, arena = run.plan, run.arena
    if arena is not None and scratch.is_shared(arena) and run.overwriting is not None and isinstance(plan, Plan):
        own = Buffer(plan.arena_bytes, run.device)
        own.numpy(np.uint8, (plan.arena_bytes,))[:] = arena.numpy(np.uint8, (plan.arena_bytes,))
        run.overwriting[0][len(plan.inputs) + len(plan.sizes)] = own.ptr
        run.arena = own
