"""Realizing: the memory of an array, computed by a flush of its trace if pending, or by a twin of it while that is BUSY."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from genesis.execution.failure import LOSSES, lost
from genesis.execution.flush import flush
from genesis.execution.interrupted_run import go_on, has_overwritten
from genesis.execution.plan import collectives_of, held_arrays
from genesis.runtime.groups import GROUPS
from genesis.tracing.memory import Memory
from genesis.tracing.trace import BUSY, LOCK, Array, Trace


def realize(array: Array) -> Memory:
    """The memory of `array`, computed now if pending.

    Raises RuntimeError if it was lost: it depended on an index that was out of range.
    """
    memory = array.memory
    if memory is None:
        trace: Any = array.trace
        if trace is None:  # another thread has computed it since
            return realize(array)
        if trace.closed is BUSY:  # in this thread, or in another one, for which we wait
            with LOCK:
                if is_interrupted(array):
                    return _read_while_busy(trace, array)
        flush(trace)
        memory = array.memory
        if memory is None:
            raise lost(trace)
    return memory


def realize_by_twin(array: Array) -> Memory:
    """As `realize`, but the pending value's trace stays open, and computes it again when it is flushed."""
    with LOCK:
        trace = array.trace
        is_open = array.memory is None and trace is not None and not (trace.closed or trace.eager)
        if is_open and not (GROUPS and collectives_of(trace)):  # type: ignore[arg-type]
            memory = _computed_by_twin(trace, [array]).get(array.index)  # type: ignore[arg-type]
            if memory is not None:
                return memory
        return realize(array)


def readable(array: Array) -> Array:
    """`array`, realized; or a realized copy, if interrupted code of this thread has yet to compute it."""
    memory = realize(array)
    return array if array.memory is not None else Array(array.trace, array.index, array.node, memory)


def is_interrupted(array: Array) -> bool:
    """Whether `array` is pending in a trace that this thread, which has LOCK, was working on when a signal handler or finalizer
    interrupted it."""
    return array.memory is None and array.trace is not None and array.trace.closed is BUSY


def _read_while_busy(trace: Trace, array: Array) -> Memory:
    """The memory of a value whose trace is BUSY: already computed by its run, or computed separately from unchanged inputs,
    without an effect on the trace. If that fails, so will the trace, and what a tensor is to keep then is read in its place."""
    run, index = trace.run, array.index
    if has_overwritten(run):
        go_on(run, trace)  # its inputs are gone, so finish the run: the interrupted code will find it done
    if run is not None and run.completion and run.plan is not None:
        found = {at: run.memories[number] for at, number in run.plan.number_of.items()}
    else:
        if trace.read_while_busy is None or index not in trace.read_while_busy:
            # Values that a checkpoint reads come first: the other live handles vary from time to time, and so would the plan.
            written = [new for tensor, before, _ in trace.written
                       if not isinstance(before, int) and (new := tensor._array).trace is trace]
            trace.read_while_busy = _computed_by_twin(trace, written if array in written else [*held_arrays(trace), array])
        found = trace.read_while_busy
    memory: Memory | None = found.get(index) or _kept(trace, array)
    if memory is None:
        raise lost(trace)
    return memory


def _kept(trace: Trace, array: Array) -> Memory | None:
    """What a tensor that holds `array`, which is lost, had before, and gets back; None if no tensor does."""
    former = [before for tensor, before, _ in reversed(trace.written) if not isinstance(before, int) and tensor._array is array]
    pending = [before for before in former if before.memory is None]
    computed = _computed_by_twin(trace, pending) if pending else {}
    return next(filter(None, [before.memory or computed.get(before.index) for before in former]), None)


def _computed_by_twin(trace: Trace, arrays: Sequence[Array]) -> dict[int, Memory]:
    """The values at some positions, by a twin of the trace up to the last of them: the rest may be incomplete."""
    wanted = sorted({array.index for array in arrays} - trace.lost)
    nodes = trace.nodes[: max(wanted, default=-1) + 1]
    inputs = {index: array for index, array in trace.input_at.items() if index < len(nodes)}
    twin = trace.twin(("prefix", len(nodes)), nodes, inputs)
    twin.is_interrupting = True
    if GROUPS and collectives_of(twin):
        raise RuntimeError("what other processes compute too cannot be read by a signal handler that came in between")
    twin.released = frozenset(range(len(nodes)))  # save nothing for backward
    handles = twin.handles(wanted)
    with contextlib.suppress(*LOSSES):  # readers of lost values get the error
        flush(twin)
    trace.failure = trace.failure or twin.failure
    return {handle.index: handle.memory for handle in handles if handle.memory is not None}
