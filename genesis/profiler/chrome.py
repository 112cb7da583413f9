"""A trace for Perfetto and chrome://tracing: a track for Python, one for each worker."""

from __future__ import annotations

import bisect
import json
import os
from pathlib import Path
from typing import Any

from genesis.profiler.measured import KINDS, TRACING, Measured, ProgramRuns, Run

PYTHON, FIRST_WORKER = 0, 1000  # numbers of tracks: other threads of Python follow the first

Event = dict[str, Any]


def write_chrome_trace(measured: Measured, file: str | os.PathLike[str]) -> None:
    """Write the trace event format (Google, 2016) to `file`. Times are microseconds since the first event."""
    start = min((start for start, _ in measured.windows), default=0)
    events = _python(measured, start)
    for program in measured.programs:
        for run in program.runs:
            events += _stages(program, run, start)
    tracks = {event["tid"] for event in events}
    names = {track: _track(track) for track in sorted(tracks)}
    head = [{"ph": "M", "pid": os.getpid(), "tid": track, "name": "thread_name", "args": {"name": name}}
            for track, name in names.items()]
    head += [{"ph": "M", "pid": os.getpid(), "tid": track, "name": "thread_sort_index", "args": {"sort_index": track}}
             for track in names]
    Path(file).write_text(json.dumps({"traceEvents": [*head, *events], "displayTimeUnit": "ms"}), encoding="utf-8")


def _track(number: int) -> str:
    if number < FIRST_WORKER:
        return "Python" + f", thread {number}" * bool(number)
    return f"worker {number - FIRST_WORKER}" + " (the caller)" * (number == FIRST_WORKER)


def _python(measured: Measured, origin: int) -> list[Event]:
    """The spans of Python's threads, and the gaps of the profiled thread, in which it traces."""
    threads = {measured.thread: PYTHON}
    events = [_event(f"step {number}", PYTHON, begin, end, origin) for number, (begin, end) in enumerate(measured.windows)]
    for span in measured.spans:
        track = threads.setdefault(span.thread, len(threads))
        name = str(span.what) if span.kind in ("user", "replay", "record") else ""
        shown = name if span.kind == "user" else KINDS[span.kind] + f" {name}" * bool(name)
        events.append(_event(shown, track, span.start, span.end, origin))
    for begin, end in measured.windows:
        inside = [s for s in measured.spans if s.thread == measured.thread and begin <= s.start and s.end <= end]
        busy = [(s.start, s.end) for s in inside if s.kind in KINDS]
        cuts = [(time, time) for s in inside if s.kind == "user" for time in (s.start, s.end)]  # cut gaps there
        reached = begin
        for start, stop in sorted([*busy, *cuts, (end, end)]):
            if start > reached:
                events.append(_event(TRACING, PYTHON, reached, start, origin))
            reached = max(reached, stop)
    return events


def _stages(program: ProgramRuns, run: Run, origin: int) -> list[Event]:
    """The stages of a run on the caller's track, and on those of the workers that took part."""
    events, starts = [], [start for _, (start, _) in run.stages]
    for number, (start, end) in run.stages:
        stage = program.stages[number]
        seconds = max(end - start, 1) * 1e-9
        lines = dict.fromkeys(share.site.line for share in stage.shares if share.site.line)
        details = {
            "stage": stage.text, "GB/s": round(stage.nbytes / seconds * 1e-9, 2), "bytes": stage.nbytes,
            "GFlop/s": round(stage.flops / seconds * 1e-9, 2),
            "lines": [f"{file}:{line}" for file, line in lines],
            "modules": sorted({share.site.module for share in stage.shares if share.site.module}),
        }
        events.append(_event(stage.kernel, FIRST_WORKER, start, end, origin) | {"args": details})
    for worker, intervals in enumerate(run.workers, 1):
        for start, end in intervals:
            number = run.stages[max(bisect.bisect_right(starts, start) - 1, 0)][0]
            events.append(_event(program.stages[number].kernel, FIRST_WORKER + worker, start, end, origin))
    return events


def _event(name: str, track: int, start: int, end: int, origin: int) -> Event:
    return {"ph": "X", "pid": os.getpid(), "tid": track, "name": name, "ts": (start - origin) / 1e3, "dur": (end - start) / 1e3}
