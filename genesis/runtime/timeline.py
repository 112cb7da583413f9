"""Spans of time for profilers, recorded by all floors while a profiler listens.

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
    """An activity of a thread; `what` depends on the kind."""

    kind: str
    start: int
    end: int
    thread: int
    what: Any = None


class Launches(NamedTuple):
    """The times of a native program's run: the start of each launch, as alternating seconds and nanoseconds, and the end of the
    last; and for each worker but the caller, the starts and ends of its participation, in the same form."""

    clock: array[int]
    workers: Sequence[array[int]]


class Timeline:
    """The process's list of spans, as tuples; None without a profiler."""

    __slots__ = ("known", "spans")

    def __init__(self) -> None:
        self.spans: list[tuple[str, int, int, int, Any]] | None = None
        self.known: set[int] = set()  # ids of the plans whose calls the list has

    def listen(self) -> None:
        """Begin a new list."""
        self.spans, self.known = [], set()

    def start(self) -> int:
        """The time, or 0 without a profiler."""
        return 0 if self.spans is None else now()

    def note(self, kind: str, start: int, what: Any = None) -> None:
        """Record a span from `start` until now, if a profiler listens and did so at its start."""
        spans = self.spans
        if spans is not None and start:
            spans.append((kind, start, now(), get_ident(), what))

    def note_programs(self, start: int, plan: object, calls: Callable[[], object]) -> None:
        """Record that the preceding runs were of `plan`; and, the first time, the `calls` that it was made for."""
        if id(plan) in self.known:
            self.note("programs", start, (plan, None))
        else:
            self.known.add(id(plan))
            self.note("programs", start, (plan, calls()))


timeline = Timeline()
