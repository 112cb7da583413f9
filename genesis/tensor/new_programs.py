"""Programs of ever new sizes, as masks, growing sequences, ragged batches and routed experts make them, are flushed in parts.

What has the sizes of before then finds its plan of before: what was recorded until the first new size, the backward of that,
and what follows backward, such as an optimizer's step. And what comes again within a program, as layers and steps in time do,
is planned once: the program is flushed where its calls return to a place of the script, and so is its backward.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from types import CodeType
from weakref import WeakKeyDictionary

from genesis.execution.flush import flush
from genesis.runtime.groups import GROUPS
from genesis.runtime.plan_cache import REPLAY
from genesis.runtime.references import owned_elsewhere
from genesis.tracing.pytorch_strides import is_row_major
from genesis.tracing.recording_hooks import reads_forbidden
from genesis.tracing.scopes import Scope
from genesis.tracing.source_line import user_line
from genesis.tracing.state import open_trace, thread_state, unflushed
from genesis.tracing.trace import LOCK, Trace

MOST_WHOLE = 3  # programs that a place leaves whole: a few sizes that recur run faster so
RECURRING = 8  # flushes of a part before what follows joins it: AdamW then finds gradients in the cache (a GPT 14 ms, not 18)
PLANNED = 2  # nodes for which a part within a backward is flushed once more before what follows joins it
RETURNING = 64  # flushes of a first part before a program that returns to places is planned whole; fewer where others are fewer
LEAST_NODES = 8  # of a part: smaller ones save less than a flush more costs; an embedding before equal layers has more
LEAST_KNOWN = 64  # nodes that another program begins with too, for them to be a part

WHOLE = "planned whole"  # counts
Place = tuple[CodeType | None, int, str]  # of a call: the user's instruction, and the module's class or the scope by name

# How many new programs returned to each place of a code, and how many the backwards at an instruction (None) led to.
_met: WeakKeyDictionary[CodeType, Counter[tuple[int, str | None]]] = WeakKeyDictionary()


def _counts(code: CodeType) -> Counter[tuple[int, str | None]]:
    """What has been counted at `code`: nothing any more once an equal one is gone under which it was kept."""
    return _met.setdefault(code, Counter())


class _Part:
    """What is known of a trace with new steps.

    Attributes:
        calls: place -> the numbers of the first call there and the last.
        loops: place where rounds of a loop begin -> the number of the call that began the last.
        returned: the places that calls have returned to, also in the parts before.
        asked: the number of calls before the last new one, -1 before the first, infinite once the trace is not ended any more.
        follows: whether the trace continues another one, and
        goes_on: whether another continues it.
    """

    __slots__ = ("asked", "calls", "follows", "goes_on", "loops", "returned")

    def __init__(self, trace: Trace, before: _Part | None = None) -> None:
        self.calls: dict[Place, tuple[int, int]] = {}
        self.loops: dict[Place, int] = {}
        for number, (_, code, offset, scope, _) in enumerate(trace.lines):
            self.meet(_place(code, offset, scope), number)
        self.returned: set[Place] = set() if before is None else before.returned
        self.asked: float = -1
        self.follows, self.goes_on = before is not None, False

    def meet(self, place: Place, number: int) -> tuple[int, int] | None:
        """Note a call at `place`; returns what was known of calls there."""
        before = self.calls.get(place)
        self.calls[place] = number if before is None else before[0], number
        if place in self.loops:
            self.loops[place] = number
        return before


def _place(code: CodeType | None, offset: int, scope: Scope | None) -> Place:
    if scope is None:
        return code, offset, ""
    _, name, kind = scope
    return code, offset, name if kind is None else kind.__qualname__  # the class would keep its code alive


def ended_before(trace: Trace) -> bool:
    """Flush `trace` before a call that is new after it, or has a new input, if too many programs were new there; returns
    whether it did. The call is then made again: one whose own inputs are all that there is would never end.
    """
    if trace.part is None:
        trace.part = _Part(trace)
    part: _Part = trace.part
    if part.asked >= len(trace.lines):
        return False
    code, offset = user_line(1)
    forks, returns = _forks(trace, part), _returns_too_often(trace, part, code, offset)
    part.asked = len(trace.lines)
    if not (forks or returns) or len(trace.nodes) < LEAST_NODES or not (trace.lines and _may_flush() and _keeps_orders(trace)):
        return False
    if returns and not (forks or part.follows) and code is not None:
        counts = _counts(code)
        if _recurs(trace, min(returns, RETURNING) * (1 + counts[offset, WHOLE])):
            counts[offset, WHOLE] += 1
            part.asked = inf
            return False
    _end(trace, part if returns or part.follows else None)
    return True


def _forks(trace: Trace, part: _Part) -> bool:
    """Whether too many other steps follow where `trace` is; or a known part of a program ends here, or others have."""
    is_known = part.asked < 0 and len(trace.nodes) >= LEAST_KNOWN
    return len(trace.step.children) > MOST_WHOLE or (part.follows and (is_known or bool(trace.step.plans)))


def _returns_too_often(trace: Trace, part: _Part, code: CodeType | None, offset: int) -> int:
    """How many other programs have returned to the place of the new call, if too many; else 0."""
    place = _place(code, offset, thread_state.scope)
    before = part.meet(place, len(trace.lines))
    if code is None or len(trace.nodes) < LEAST_NODES:
        return 0
    counts, at = _counts(code), place[1:]
    if before is not None and place not in part.returned and not trace.step.plans:  # a part that has ended here is no new one
        part.returned.add(place)
        counts[at] += 1
        _tell_rounds(part, place, before[1])
    return counts[at] if counts[at] > MOST_WHOLE else 0


def _tell_rounds(part: _Part, place: Place, last: int) -> None:
    """Count no return that is within a round of a loop which began earlier: layers end where the first call of each is."""
    within = [other for other, number in part.loops.items() if number > last]
    part.loops[place] = part.calls[place][1]
    if any([part.calls[other][0] < part.calls[place][0] for other in within]):
        within = [place]
    for inner in within:
        _counts(inner[0])[inner[1:]] -= 1  # type: ignore[arg-type]
        del part.loops[inner]


def _end(trace: Trace, part: _Part | None) -> None:
    """Flush `trace` within a program; as a `part`, which another continues."""
    trace.closed = True
    if part is not None:
        part.goes_on = True
    flush(trace)
    if part is not None:
        following = open_trace(trace.device)
        following.part = _Part(following, part)


def flush_part(following: Trace | None = None) -> None:
    """Within or after a backward: flush what this thread has recorded, if too many programs were new here before, and this one
    does not recur; or if the backward of a part is `following`. After it, only what nothing has followed so far.
    """
    if _may_flush():
        part = None if following is None else following.part
        with LOCK:
            for trace in unflushed():
                often = RECURRING if following is None else max(RECURRING, len(trace.nodes) // PLANNED)
                goes_on = part is not None and part.goes_on
                if trace.nodes and _keeps_orders(trace) and (goes_on or (
                        not (following is None and trace.step.children) and _is_one_of_many(trace, often))):
                    flush(trace)


def _may_flush() -> bool:
    together = any([group.size > 1 for group in GROUPS.values()])  # processes flush alike
    return not (together or reads_forbidden() or thread_state.observers or thread_state.undivided)


def _keeps_orders(trace: Trace) -> bool:
    """Whether random numbers for values of `trace` are drawn in the same order once these are computed."""
    return is_row_major(trace, owned_elsewhere(trace.arrays))


def _is_one_of_many(trace: Trace, often: int) -> bool:
    code, offset = user_line(1)
    if code is None or (trace.part is not None and trace.part.asked == inf):
        return False
    counts = _counts(code)
    if not (trace.step.plans or trace.step.children):  # one that ends here each time, as before a look, is no new one
        counts[offset, None] += 1
    return counts[offset, None] > MOST_WHOLE and not _recurs(trace, often)


def _recurs(trace: Trace, times: int) -> bool:
    """Whether programs have ended where `trace` is now often enough for what follows to join them, unless that differs."""
    if not any([plan.flushes >= times for key, plan in trace.step.plans.items() if key is not REPLAY]):
        return False
    following = [*trace.step.children.values()]
    while len(following) == 1:
        following = [*following[0].children.values()]
    return not following
