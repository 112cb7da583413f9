"""When a long trace is flushed: a loop that reads nothing at one of its calls, so that the next rounds repeat the program."""

from __future__ import annotations

from types import CodeType

from genesis.execution.flush import flush
from genesis.ops.registry import Operation
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Trace
from genesis.tracing.trie import BYTE_LIMIT, LOOP_LIMIT, LOOP_NODES


def flush_if_long(trace: Trace, operation: Operation, code: CodeType | None, offset: int) -> None:
    """Flush a trace above its limit if it is time to."""
    if is_time_to_flush(trace, operation, code, offset):
        flush(trace)


def is_time_to_flush(trace: Trace, operation: Operation, code: CodeType | None, offset: int) -> bool:
    """Whether to flush a trace above its limit after a call of `operation` at a place of the script.

    Above BYTE_LIMIT always, unless calls are to stay in one trace. Before, a trace of many nodes of which none has a gradient,
    as backward prefers whole programs: at the call that ended the thread's last long trace. If that does not come, this trace
    chooses another.
    """
    if trace.weight > BYTE_LIMIT:
        return not thread_state.undivided
    if trace.limit:  # not known yet to be a loop
        if len(trace.nodes) < LOOP_NODES:  # large values weigh as much
            trace.limit = min(trace.limit + LOOP_LIMIT, BYTE_LIMIT)
            return False
        whole = thread_state.recorder is not None or thread_state.deferred or any([n.differentiable for n in trace.nodes])
        trace.limit = BYTE_LIMIT if whole else 0
        if whole:
            return False
    (known, where, at), chosen_by = thread_state.loop
    if known is operation and where is code and at == offset:
        return not trace.nodes[-1].differentiable
    if known is None or (len(trace.nodes) > 2 * LOOP_NODES and chosen_by is not trace.reference):
        thread_state.loop = (operation, code, offset), trace.reference
    return False
