"""Failed flushes: values that depend on the failure are lost, all others are computed."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from genesis.execution.plan import Plan
from genesis.runtime.native import UnfinishedError
from genesis.tracing.trace import Trace

LOSSES = IndexError, np.linalg.LinAlgError, UnfinishedError  # what a flush raises when values were lost


def lose(trace: Trace, failed: int, found: Exception) -> Exception:
    """Give up the values that depend on the one that failed, and undo the writes that were to store them."""
    line = trace.line_of(failed)
    trace.failure = error = type(found)(f"{found} (at {line[0]}:{line[1]})") if line else found
    trace.lost = lost = {failed} | trace.lost
    for index, node in enumerate(trace.nodes):
        if not lost.isdisjoint(node.inputs):
            lost.add(index)
    take_back_writes(trace, lost)
    trace.run = None
    return error


def take_back_writes(trace: Trace, positions: Container[int]) -> None:
    """Have tensors that were to hold the values at `positions` hold what they held before."""
    for tensor, before in reversed(trace.written):
        if tensor._array.trace is trace and tensor._array.index in positions:
            tensor._array = before
            tensor._changes += 1


def lose_all(trace: Trace, plan: Plan, problem: UnfinishedError) -> Exception:
    """Give up all values of a trace whose program stopped after it had begun to write over inputs.

    Tensors that were written hold lost values from then on: what they held before may be gone.
    """
    lowered = plan.lowered
    first, *_ = lowered.schedule.stages[plan.segments[-1].stages[problem.launch]]
    line = trace.line_of(lowered.origins[first.writes[0]])
    where = f" (at {line[0]}:{line[1]})" if line else ""
    said = f"{problem}{where}; launches before it may have written over tensors, so what was recorded with them is lost"
    trace.failure = error = UnfinishedError(said, problem.launch)
    trace.lost = set(range(len(trace.nodes)))
    trace.run = None
    return error
