"""Programs of ever new sizes, as masks, ragged batches and routed experts make them, are flushed in parts.

What has the sizes of before then finds its plan of before: what was recorded until the first new size, the backward of that,
and what follows backward, such as an optimizer's step.
"""

from __future__ import annotations

from types import CodeType
from weakref import WeakKeyDictionary

from genesis.execution.flush import flush
from genesis.runtime.groups import GROUPS
from genesis.runtime.plan_cache import REPLAY
from genesis.tracing.recording_hooks import reads_forbidden
from genesis.tracing.source_line import user_line
from genesis.tracing.state import thread_state, unflushed
from genesis.tracing.trace import LOCK, Trace

MOST_WHOLE = 8  # programs that a place leaves whole: a few sizes that recur run faster so
RECURRING = 8  # flushes of a part before what follows joins it: AdamW then finds gradients in the cache (a GPT 14 ms, not 18)
LEAST_NODES = 16  # of a part: smaller ones save less than a flush more costs

_met: WeakKeyDictionary[CodeType, dict[int, int]] = WeakKeyDictionary()  # new programs that each line's backwards led to


def ended_at_fork(trace: Trace) -> bool:
    """Flush `trace` before a step that is new after it, if too many others were new there before; returns whether it did. The
    call is then made again: one whose own inputs are all that there is would never end.
    """
    if len(trace.step.children) <= MOST_WHOLE or len(trace.nodes) < LEAST_NODES or not trace.lines or not _may_flush():
        return False
    trace.closed = True
    flush(trace)
    return True


def flush_part() -> None:
    """Within or after a backward: flush what this thread has recorded, if nothing has followed that so far, too many programs
    were new here before, and this one does not recur.
    """
    if _may_flush():
        with LOCK:
            for trace in unflushed():
                if trace.nodes and not trace.step.children and _is_one_of_many(trace):
                    flush(trace)


def _may_flush() -> bool:
    together = any([group.size > 1 for group in GROUPS.values()])  # processes flush alike
    return not (together or reads_forbidden() or thread_state.observers or thread_state.undivided)


def _is_one_of_many(trace: Trace) -> bool:
    code, offset = user_line(1)
    if code is None:
        return False
    counts = _met.setdefault(code, {})
    if not trace.step.plans:  # one that ends here each time, as before a look, is no new one
        counts[offset] = counts.get(offset, 0) + 1
    return counts.get(offset, 0) > MOST_WHOLE and not any([
        plan.flushes >= RECURRING for key, plan in trace.step.plans.items() if key is not REPLAY])
