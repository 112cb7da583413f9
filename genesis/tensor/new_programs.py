"""Programs of ever new sizes, as masks, growing sequences, ragged batches and routed experts make them, are flushed in parts.

What has the sizes of before then finds its plan of before: what was recorded until the first new size, the backward of that,
and what follows backward, such as an optimizer's step. And what comes again within a program, as layers and steps in time do,
is planned once: the program is flushed where its calls return to a place of the script, and so is its backward.
"""

from __future__ import annotations

from types import CodeType
from weakref import WeakKeyDictionary

from genesis.execution.flush import flush
from genesis.ops.registry import Operation
from genesis.runtime.groups import GROUPS
from genesis.runtime.plan_cache import REPLAY
from genesis.tracing.recording_hooks import reads_forbidden
from genesis.tracing.scopes import Scope, innermost
from genesis.tracing.source_line import user_line
from genesis.tracing.state import open_trace, thread_state, unflushed
from genesis.tracing.trace import LOCK, Trace

MOST_WHOLE = 8  # programs that a place leaves whole: a few sizes that recur run faster so
RECURRING = 8  # flushes of a part before what follows joins it: AdamW then finds gradients in the cache (a GPT 14 ms, not 18)
LEAST_NODES = 16  # of a part: smaller ones save less than a flush more costs
LEAST_ROUNDS = 256  # nodes of a part that is some rounds of a loop within one call of a module, as over time

Place = tuple[CodeType | None, int, type | None, Operation]  # of a call: the user's instruction, the module's class, which call

_met: WeakKeyDictionary[CodeType, dict[int, int]] = WeakKeyDictionary()  # new programs that each line's backwards led to
_returns: WeakKeyDictionary[CodeType, dict[Place, int]] = WeakKeyDictionary()  # new programs that returned to each place


class _Part:
    """What is known of a trace with new steps: the scope of the last call at each place, whether one has `returned` to a place,
    whether the trace continues another (`follows`) and another continues it (`goes_on`), and whether it stays `whole`."""

    __slots__ = ("follows", "goes_on", "places", "returned", "whole")

    def __init__(self, trace: Trace, follows: bool = False) -> None:
        self.places = {_place(code, offset, scope, key[0]): scope for _, code, offset, scope, key in trace.lines}
        self.follows = follows
        self.returned = self.goes_on = self.whole = False


_parts: WeakKeyDictionary[Trace, _Part] = WeakKeyDictionary()


def _place(code: CodeType | None, offset: int, scope: Scope | None, operation: Operation) -> Place:
    return code, offset, None if scope is None else scope[2], operation


def ended_before(trace: Trace, operation: Operation, code: CodeType | None, offset: int) -> bool:
    """Flush `trace` before a call that is new after it, if too many programs were new there; returns whether it did. The call
    is then made again.
    """
    return ended_at_fork(trace) or _ended_at_return(trace, _place(code, offset, innermost.scope, operation), innermost.scope)


def ended_at_fork(trace: Trace) -> bool:
    """`ended_before`, after too many other steps. A call whose own inputs are all that there is would never end."""
    if len(trace.step.children) <= MOST_WHOLE or len(trace.nodes) < LEAST_NODES or not trace.lines or not _may_flush():
        return False
    trace.closed = True
    flush(trace)
    return True


def _ended_at_return(trace: Trace, place: Place, scope: Scope | None) -> bool:
    """`ended_before`, at a place to which too many other programs returned; or where other parts have ended."""
    part = _parts.get(trace)
    if part is None:
        part = _parts[trace] = _Part(trace)
    code, before = place[0], part.places.get(place, part)
    part.places[place] = scope
    if code is None or part.whole or not trace.lines or len(trace.nodes) < (LEAST_ROUNDS if before is scope else LEAST_NODES):
        return False
    returns = _returns.setdefault(code, {})
    if returns.get(place, 0) <= MOST_WHOLE and not (part.follows and trace.step.plans):
        if before is not part and not part.returned:
            part.returned = True
            returns[place] = returns.get(place, 0) + 1
        return False
    if not part.follows and _recurs(trace):
        part.whole = True
        return False
    if not _may_flush():
        return False
    trace.closed = part.goes_on = True
    flush(trace)
    following = open_trace(trace.device)
    _parts[following] = _Part(following, follows=True)
    return True


def flush_part(following: Trace | None = None) -> None:
    """Within or after a backward: flush what this thread has recorded, if nothing has followed that so far, too many programs
    were new here before, and this one does not recur; or if the backward of a part is `following`.
    """
    if _may_flush():
        part = None if following is None else _parts.get(following)
        with LOCK:
            for trace in unflushed():
                if trace.nodes and ((part is not None and part.goes_on) or (
                        not trace.step.children and _is_one_of_many(trace))):
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
    return counts.get(offset, 0) > MOST_WHOLE and not _recurs(trace)


def _recurs(trace: Trace) -> bool:
    """Whether programs have ended where `trace` is now often enough for what follows to join them."""
    return any([plan.flushes >= RECURRING for key, plan in trace.step.plans.items() if key is not REPLAY])
