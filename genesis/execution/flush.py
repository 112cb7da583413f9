"""Flushing: a trace's pending values become realized arrays, by the plan found where the trace ends."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from genesis.execution.failure import lose, lose_all, take_back_writes
from genesis.execution.host_call import call_host
from genesis.execution.interrupted_run import collective_failure, give_up, go_on, has_overwritten, leave
from genesis.execution.plan import Plan, collectives_of, find_plan, held_arrays
from genesis.execution.reference_mode import interpreted, without_values
from genesis.execution.result_pool import Computation, ResultPool, Run
from genesis.execution.reused_inputs import reused_inputs
from genesis.ir.errors import ArgumentError, also_runtime_error
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.completion import Completion, Fault, UnfinishedError
from genesis.runtime.counters import counts
from genesis.runtime.deferred import deferred
from genesis.runtime.devices import CPU, META
from genesis.runtime.groups import GROUPS
from genesis.runtime.memory import Buffer
from genesis.runtime.plan_cache import REPLAY
from genesis.runtime.scratch import scratch
from genesis.runtime.timeline import timeline
from genesis.tracing.state import leave as leave_trace, thread_state, unflushed
from genesis.tracing.trace import BUSY, LOCK, Array, Trace, critical

if TYPE_CHECKING:
    from genesis.execution.native_flush import settle
    from genesis.execution.ran_collectives import from_results, keep_results
else:  # for runs that fail
    from_results = deferred("genesis.execution.ran_collectives", "from_results")
    keep_results = deferred("genesis.execution.ran_collectives", "keep_results")
    settle = deferred("genesis.execution.native_flush", "settle")

FLUSH_HOOKS: list[Callable[[Trace, Any], None]] = []  # called at the end of a flush, with the trace and its plan

OFTEN = 32  # flushes by a plan, before instructions do the next

_NONE: dict[int, Array] = {}


class Task(NamedTuple):
    """A plan, the pool of its results, the handles that they become, and whether all of it happens or nothing."""

    plan: Plan
    pool: ResultPool
    handles: Sequence[Array]
    is_whole: bool


class NothingDoneError(Exception):
    """A task of which all happens or nothing would have lost values; nothing has happened."""


def flush(trace: Trace, task: Task | None = None, is_in_turn: bool = False) -> None:
    """Compute every live pending value of `trace`, by `task` if the caller knows it.

    Raises IndexError for an index out of range and LinAlgError for a matrix without the inverse or factors asked for, naming
    the user's line. Values that depend on it are lost, tensors written to after it keep their previous values, and all other
    values are computed. Raises UnfinishedError if a GPU refuses a launch after others may have written over inputs: then all
    values are lost, see `lose_all`. If memory does not suffice, a kernel does not compile or an interrupt comes, tensors keep
    the values from before this trace: a model is what it was before the step. The trace then takes no more calls, and a reader
    of one of its values resumes the flush. Errors of hooks are raised after the flush.

    An interrupting signal handler or finalizer reads pending values by `realize`, which computes them separately; `flush`
    itself raises RuntimeError there. Collectives of other traces run first, unless it `is_in_turn`.
    """
    with LOCK:
        if trace.done:
            return
        if task is None and not FLUSH_HOOKS:
            for replay in trace.step.plans.get(REPLAY, ()):
                if replay(trace) is None:
                    return
        if GROUPS and not is_in_turn and collectives_of(trace):
            flush_collectives(trace)
        if trace.closed is BUSY:
            raise RuntimeError(
                "flush: a signal handler or finalizer has interrupted the call that computes this; it can read the values "
                "of tensors, but neither derive them nor share their memory"
            )
        began = timeline.spans is not None and timeline.start()
        opened, was_running = thread_state.trace, critical.running
        if opened is trace or opened is None or opened.closed:
            opened = None
        else:
            opened.closed = BUSY
        if was_running and task is None:  # an interrupting replay runs its function instead
            trace.is_interrupting = True
        trace.closed, critical.running = BUSY, True
        try:
            if trace.done:  # by a signal handler since this was asked
                return
            failure = _compute(trace, task)
            for hook in FLUSH_HOOKS:  # before the trace drops its nodes
                try:
                    hook(trace, trace.run.plan)
                except BaseException as raised:
                    failure = failure or raised
            if began:
                timeline.note_programs(began, trace.run.plan, trace.without_data)
            _finish(trace, trace.run)
        finally:
            trace.closed, critical.running = True, was_running
            if opened is not None:
                opened.closed = False
            if began:
                timeline.note("flush", began)
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # its traceback leads to this frame, which leads to the values


def flush_all() -> None:
    """Flush this thread's traces, device by device."""
    state = thread_state.__dict__
    opened = state["trace"]
    if opened is not None and not opened.closed and not state["left"]:  # the thread's only one
        flush(opened)
    elif state["traces"] or state["left"]:
        for trace in unflushed():
            flush(trace)


def is_held_up() -> bool:
    """Whether a program on the CPU has to wait for this thread's traces: for those of other devices, for collectives, and for
    one that is BUSY.
    """
    found = thread_state.traces.values()
    return has_pending_collectives() or any([
        trace.closed is BUSY or not (trace.done or trace.device is CPU or trace.device is META) for trace in found])


def flush_collectives(but: Trace | None = None) -> None:
    """Flush this thread's traces that have collectives, except `but`: these must run first.

    This gives collectives of several devices one order on all ranks: before one is recorded, those of other devices run.
    """
    for trace in unflushed():
        if trace is not but and collectives_of(trace):
            flush(trace, is_in_turn=True)


def has_pending_collectives() -> bool:
    """Whether this thread's traces, BUSY ones included, have collectives that have not run."""
    return any([collectives_of(trace) for trace in (*thread_state.left, *thread_state.traces.values()) if not trace.done])


def _compute(trace: Trace, task: Task | None) -> BaseException | None:
    """Run the plan for the live values; returns the error if some were lost. On a failure before inputs are overwritten, no
    state has changed; after that, the run waits until somebody needs its values.
    """
    failure = None
    try:
        while True:
            if trace.run is not None:  # left by an interrupt
                if trace.run.completion:
                    break
                if has_overwritten(trace.run):
                    go_on(trace.run, trace)
                    continue
                trace.run = None
            source = from_results(trace) if trace.ran else trace
            failed = _run(trace, source) if task is None else _execute(trace, source, *task)
            if failed is None:
                break
            failure, task = failed, None
    except BaseException as raised:
        if has_overwritten(trace.run):
            try:
                leave(trace, raised)
            finally:  # twice: an interrupt may have cut the first short
                leave(trace, raised)
        elif trace.run is None or not trace.run.completion:
            trace.run = None
            take_back_writes(trace, range(len(trace.nodes)))
        raise
    return failure


def _run(trace: Trace, source: Trace) -> Exception | None:
    """Compute the live values from the inputs of `source` by their plan, or by their references. Returns the error if values
    were lost.
    """
    handles = held_arrays(trace)
    if handles and not trace.eager:
        plan = find_plan(source, handles)
        return _execute(trace, source, plan, plan.pool, handles)
    run = Run(trace.device)
    if handles:
        run.plan = values = (without_values if trace.device is META else interpreted)(source, handles)
        if values.failure:
            return lose(trace, *values.failure)
        run.handles, run.memories = handles, values.memories
    run.completion.set()
    trace.run = run
    return None


def _execute(
    trace: Trace, source: Trace, plan: Plan, pool: ResultPool, handles: Sequence[Array], is_whole: bool = False
) -> Exception | None:
    """Run the plan on the inputs and scalars of `source`. Returns the error if values of `trace` were lost, which raises
    NothingDoneError if `is_whole` and no input is overwritten.

    Inputs are overwritten only in the last segment, if at all. Until that one has completed, everything can be rerun, except
    collectives: see `ran_collectives.py`.
    """
    reused = reused_inputs(plan, pool, source, trace.entered) if pool.donors else _NONE
    run = pool.take(trace.device, reused)
    run.completion.clear()
    run.pool, run.plan, run.handles = pool, plan, handles
    trace.run = run
    arena = 0
    if plan.arena_bytes:
        # Shared scratch memory may belong to an interrupted program, and memory used by MPI must not move.
        run.arena = (Buffer if trace.is_interrupting or plan.collectives else scratch.buffer)(plan.arena_bytes, trace.device)
        arena = run.arena.ptr
    if plan.views:
        run.place_views(plan.views, plan.first, source.inputs)
    slots: list[int | float] = []
    inputs = source.input_at
    for index in plan.reads:
        slots.append(inputs[index].memory.pointer)  # type: ignore[union-attr]
    slots += run.addresses
    slots.append(arena)
    slots += source.scalars
    if reused or plan.collectives:
        run.overwriting = slots, [*reused]
    try:
        for segment in plan.segments:
            if segment.host is not None:
                began = timeline.start()
                try:
                    call_host(plan, segment.host, slots, trace.device)
                    timeline.note("host", began)
                except (np.linalg.LinAlgError, ArgumentError) as error:
                    return _lost_at(run, trace, segment.host.node, error, is_whole)
            if segment.program is not None:
                is_last = segment is plan.segments[-1]
                try:
                    fault = segment.program.run(slots, run.completion if is_last else Completion())
                except UnfinishedError as problem:
                    if not (is_last and reused):
                        raise RuntimeError(str(problem)) from problem  # everything can be rerun
                    return lose_all(trace, plan, problem)
                if fault is not None:
                    return _lost_at(run, trace, fault.site, _refusal(run, plan, fault, trace), is_whole)
    except BaseException:
        if plan.collectives and not has_overwritten(run):
            give_up(run)
        raise
    finally:
        if plan.collectives:
            counts["collective_bytes"] += plan.collective_bytes
            trace.device.memory.await_under_way()  # if the plan's own waits were not reached
    run.completion.set()
    return None


def _refusal(run: Run, plan: Plan, fault: Fault, trace: Trace) -> Exception:
    """The error for what a kernel or a collective reports."""
    node = plan.lowered.nodes[fault.site]
    if PRIMITIVES[node.op].kind == "collective":
        return collective_failure(run, fault, trace.line_of(plan.lowered.origins[fault.site]))
    return cast(Callable[..., Exception], PRIMITIVES[node.op].fault)(node, fault.value, fault.extent)


def _lost_at(run: Run, trace: Trace, node: int, error: Exception, is_whole: bool) -> Exception:
    """Lose the values that depend on a node of the lowered graph, and keep the results of earlier collectives."""
    assert isinstance(run.plan, Plan)
    if is_whole and not run.plan.collectives and not has_overwritten(run):
        trace.arrays.clear()  # which lead back to it
        trace.failure = also_runtime_error(error)  # for a thread that waits for one of them
        raise NothingDoneError
    keep_results(run, trace, node)
    return lose(trace, run.plan.lowered.origins[node], error)


def _finish(trace: Trace, run: Run) -> None:
    """Give the handles their memory, save the values that backward may read, and drop the rest.

    It can be interrupted and restarted until it marks the trace as done.
    """
    plan: Any = run.plan
    pool, arrays, handles, keeps = run.pool, trace.arrays, run.handles, False
    if plan is not None:
        memories, number_of, keeps = run.memories, plan.number_of, plan.keeps
        for array in run.handles:
            array.memory = memory = memories[number_of[array.index]]
            if not array.node.differentiable:
                array.trace = None
                if keeps:
                    memory.buffer.origin = trace.reference, array.index
        if keeps:
            _save(trace, run, plan)
    trace.end(keeps)
    leave_trace(trace)
    counts["flushes"] += 1
    if trace.variables and not keeps and any([leaf._base is not None for leaf in trace.variables.values()]):
        trace.variables = weakref.WeakValueDictionary(trace.variables)  # it may be a detached result of an older trace
    if pool is not None:
        pool.give_back(run)
        if not trace.is_interrupting and pool is plan.pool:
            plan.flushes += 1
            if plan.native is not None or plan.flushes == OFTEN:
                settle(trace, plan, arrays, handles)


def _save(trace: Trace, run: Run, plan: Computation) -> None:
    """Save the values that backward may read; no others stay alive for it."""
    # Custom calls may read values that no gradient rule reads; after a failure the plan knows collectives only as inputs.
    if isinstance(plan, Plan) and not (trace.backward.custom_calls or trace.ran):
        for index in trace.input_at.keys() - plan.saved_inputs:
            del trace.input_at[index]
    memories, number_of, saved = run.memories, plan.number_of, trace.backward_state().saved
    saved.update(trace.input_at)
    saved.update(trace.ran)
    for index in plan.saved:
        saved[index] = Array(None, -1, trace.nodes[index], memories[number_of[index]])
        trace.versions[index] = memories[number_of[index]].buffer.version
    for array in run.handles:
        kept = array.node.differentiable or array.index in plan.read_collectives
        if kept and array.index not in trace.input_at:
            saved[array.index] = Array(None, -1, array.node, array.memory)
