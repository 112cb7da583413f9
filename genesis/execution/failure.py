"""Failed flushes: tensors keep their previous values; values that depend on an index out of range are lost."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np

from genesis.execution.plan import Plan, collectives_of
from genesis.ir.errors import OutOfRangeError, SingularError, also_runtime_error
from genesis.runtime.completion import UnfinishedError
from genesis.runtime.groups import CollectiveError
from genesis.runtime.memory import Buffer
from genesis.tracing.memory import Memory
from genesis.tracing.tensor_state import UNTRACKED, Versions, gradient_holders
from genesis.tracing.trace import Array, Change, Trace

LOSSES = IndexError, np.linalg.LinAlgError, UnfinishedError, CollectiveError  # exceptions of flushes that lost values


def lose(trace: Trace, failed: int, found: Exception) -> Exception:
    """Give up the values that depend on the failed one, and undo later writes."""
    where = trace.location_of(failed)
    named = not where or isinstance(found, CollectiveError)  # its message has the lines of all ranks
    error = also_runtime_error(found if named else type(found)(f"{found} (at {where})"))
    trace.failure = copy(error)  # whose traceback, once it is raised, leads to the trace
    lost = {failed, *trace.lost}
    if isinstance(found, CollectiveError):  # later collectives must not begin: other processes may be anywhere
        lost.update(index for index in collectives_of(trace) if index > failed)
    for index, node in enumerate(trace.nodes):
        if not lost.isdisjoint(node.inputs):
            lost.add(index)
    trace.lost = frozenset(lost)
    take_back_writes(trace, range(failed, len(trace.nodes)))
    trace.run = None
    return error


def take_back_writes(trace: Trace, positions: range) -> None:
    """Undo the writes of the values at `positions`: tensors get their previous values and versions back, and a tensor whose
    first gradient was one of these gets none.
    """
    found: dict[Any, tuple[Array | int, int]] = {}
    for tensor, before, changes in reversed(trace.written):
        if isinstance(tensor, Versions):
            tensor.count = changes if before in positions else tensor.count
            continue
        if isinstance(before, int) and (tensor := tensor()) is None:
            continue
        now = found[tensor][0] if tensor in found else tensor._array
        if (now if isinstance(now, int) else now.index if now.trace is trace else -1) in positions:
            found[tensor] = before, changes
    versions = {array: trace.versions.get(index) for index, array in trace.input_at.items()}
    held: dict[Any, tuple[Array, int]] = {}
    for tensor, (before, changes) in found.items():
        if not isinstance(before, int):
            held[tensor] = before, changes
            _returned(before)
            take_back_notes(before, versions.get(before), trace=trace)
        elif before not in positions:  # otherwise it was created there, and stays pending
            held[tensor] = trace.handle(before), changes
    without: list[Any] = []
    for tensor in gradient_holders():
        array = getattr(tensor._grad, "derived_part", tensor._grad)._array
        if array.trace is trace and array.memory is None and tensor._grad not in held and array.index in positions:
            without.append(tensor)
    tensors, arrays = [*held], [before for before, _ in held.values()]
    # A new number makes views reload; the version that it means is the old one.
    changed = [tensor._changes - (tensor._changes - before) % UNTRACKED + UNTRACKED for tensor, (_, before) in held.items()]
    # A leaf that requires a gradient never takes a differentiable value: before that write it required none.
    wants = [array.node.differentiable or (tensor._requires_grad and not tensor._array.node.differentiable)
             for tensor, array in zip(tensors, arrays, strict=True)]
    names = [name for name in ("_array", "_changes", "_requires_grad") for _ in held]
    any(map(setattr, [*tensors, *tensors, *tensors, *without], [*names, *["_grad"] * len(without)],
            [*arrays, *changed, *wants, *[None] * len(without)]))


def take_back_notes(array: Array, version: int | None, change: Change | None = None, trace: Trace | None = None) -> None:
    """Undo the record that `change` or `trace` wrote over the memory of `array`, so that a later backward may read it.

    Its version is again the one before the writes.
    """
    assert array.memory is not None
    buffer = array.memory.buffer
    if version is not None:
        buffer.version = version
    if buffer.origin is not None and not buffer.shared and (source := buffer.origin[0]()) is not None:
        noted = source.changed.get(buffer.origin[1])
        if noted is not None and (noted is change or noted.trace() is trace is not None):
            del source.changed[buffer.origin[1]]


def _returned(array: Array) -> None:
    """If a recorded call has given away the memory of `array`, return it to the array."""
    assert array.memory is not None
    former = array.memory.buffer
    buffer = former._owner
    if isinstance(buffer, Buffer):
        buffer.version, buffer.change, buffer.origin = former.version, former.change, former.origin
        array.memory = Memory(buffer, array.memory.layout, array.node.dtype)


def lost(trace: Trace) -> RuntimeError:
    """The error for values that a failed flush has lost: of the failure's class, as other code may have met that one first."""
    kind = next(filter(partial(isinstance, trace.failure), (OutOfRangeError, SingularError)), RuntimeError)
    error = kind(f"this value was lost, for what it depends on failed: {trace.failure}")
    error.__cause__ = trace.failure
    return error


def lose_all(trace: Trace, plan: Plan, problem: UnfinishedError) -> Exception:
    """Give up all values of a trace whose program stopped after writing over inputs.

    Written tensors have lost values from then on, because their previous values may be gone.
    """
    lowered = plan.lowered
    first, *_ = lowered.schedule.stages[plan.segments[-1].stages[problem.launch]]
    where = trace.location_of(lowered.origins[first.writes[0]])
    at = f" (at {where})" if where else ""
    said = f"{problem}{at}; launches before it may have written over tensors, so what was recorded with them is lost"
    trace.failure, error = UnfinishedError(said, problem.launch), UnfinishedError(said, problem.launch)
    trace.lost = frozenset(range(len(trace.nodes)))
    trace.run = None
    return error
