"""What takes time, told to profilers: spans that floors note while somebody listens.

Kinds, outermost first: "guards" and "replay" of a compiled call, "record" of a call that is recorded anew, "flush", "plan",
"compile", "run" of a native program and "host" for a call back into Python. `programs` says what the runs before it were of.
Times are nanoseconds of the clock that native code reads.
"""

from __future__ import annotations

from _thread import get_ident
from array import array
from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import Any, NamedTuple

now = monotonic_ns


class Span(NamedTuple):
    """Something that a thread did; `what` depends on the kind."""

    kind: str
    start: int
    end: int
    thread: int
    what: Any = None


class Launches(NamedTuple):
    """What a run of a native program tells: when each launch began, as seconds and nanoseconds in turn, and when the last
    ended; and of each worker but the caller, the times that it began and ended to take part, in the same form."""

    clock: array[int]
    workers: Sequence[array[int]]


class Timeline:
    """The process's one list of spans, as tuples; None while nobody listens."""

    __slots__ = ("known", "spans")

    def __init__(self) -> None:
        self.spans: list[tuple[str, int, int, int, Any]] | None = None
        self.known: set[int] = set()  # ids of the plans whose calls the list has

    def listen(self) -> None:
        """Begin a new list."""
        self.spans, self.known = [], set()

    def start(self) -> int:
        """The time, or 0 if nobody listens."""
        return 0 if self.spans is None else now()

    def note(self, kind: str, start: int, what: Any = None) -> None:
        """Note what began at `start` and ends now, if somebody listens and did so then."""
        spans = self.spans
        if spans is not None and start:
            spans.append((kind, start, now(), get_ident(), what))

    def note_programs(self, start: int, plan: object, calls: Callable[[], object]) -> None:
        """Note that the runs before were of `plan`; and, the first time, the `calls` that it was made for."""
        if id(plan) in self.known:
            self.note("programs", start, (plan, None))
        else:
            self.known.add(id(plan))
            self.note("programs", start, (plan, calls()))


timeline = Timeline()
