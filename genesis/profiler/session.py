"""Profiles of a block, or of scheduled steps."""

from __future__ import annotations

import enum
import functools
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

from genesis.execution.flush import flush_all
from genesis.profiler.chrome import write_chrome_trace
from genesis.profiler.measured import Interval, Measured
from genesis.profiler.memory_map import MemoryMap
from genesis.profiler.tables import Averages, Row, Text, annotate, rows_of, table
from genesis.runtime.team import team
from genesis.runtime.timeline import Span, now, timeline
from genesis.tracing.scopes import named_scope

P = ParamSpec("P")
R = TypeVar("R")
_LOG_ENTRIES = 1 << 14  # log entries per worker and run of a program, one per launch it takes part in
_open: list[profile] = []  # at most one: there is a single timeline


class ProfilerActivity(enum.Enum):
    """Kinds of devices. Profiles always cover all."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(enum.Enum):
    """The treatment of a step by a profile."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities() -> set[ProfilerActivity]:
    """Those of this machine: the CPU's.

    >>> genesis.profiler.ProfilerActivity.CPU in genesis.profiler.supported_activities()
    True
    """
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Maps the number of a step to a `ProfilerAction`: after `skip_first` steps, cycles of `wait` unprofiled steps, `warmup`
    discarded steps and `active` recorded steps; `repeat` cycles, without end if 0.
    With `skip_first_wait` the first cycle does not wait.

    Raises ValueError for numbers below 0, and for no active step.

    >>> plan = genesis.profiler.schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError(f"schedule: wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, skip_first={skip_first}; "
                         "want none below 0, and active=1 or more")

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        step += wait * bool(skip_first_wait)
        cycle, phase = divmod(step, wait + warmup + active)
        if (repeat and cycle >= repeat) or phase < wait:
            return ProfilerAction.NONE
        if phase < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if phase == wait + warmup + active - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An `on_trace_ready` that writes each recorded cycle as `WORKER.NUMBER.pt.trace.json` into a folder."""
    if use_gzip:
        raise ValueError("tensorboard_trace_handler: use_gzip=True is not there; compress the files")

    def handler(done: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        done.export_chrome_trace(folder / f"{worker_name or f'genesis_{os.getpid()}'}.{done.step_num}.pt.trace.json")

    return handler


class profile:
    """A context that measures the stages of programs, and Python between them.

    Programs run the same code as without it. Pending work runs at both ends. Only one may be open at a time.

    Args:
        activities: any of `ProfilerActivity`; without effect, all that runs on the CPU is measured.
        schedule: number of a step -> `ProfilerAction`: see `schedule`. Steps end with `step()`. None records all.
        on_trace_ready: called with the profile when a cycle of the schedule has ended, or all.
        record_shapes, profile_memory, with_stack, with_flops, with_modules: without effect: shapes, memory, lines, flops and
            modules are known of all that ran.

    Raises RuntimeError where another is open.

    >>> x = genesis.ones(64, 64)
    >>> with genesis.profiler.profile() as p:
    ...     y = (x @ x).exp().sum().item()
    >>> {row.name for row in p.rows(by="operation")} == {"matmul", "exp", "sum"}
    True
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None, record_shapes: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_flops: bool = False, with_modules: bool = False, **others: Any,
    ) -> None:
        if unknown := others.keys() - {"experimental_config", "execution_trace_observer", "acc_events", "use_cuda",
                                       "custom_trace_id_callback", "post_processing_timeout_s"}:
            raise TypeError(f"profile: got unexpected arguments {', '.join(sorted(unknown))}")
        self.activities = set(activities or supported_activities())
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self._action()
        self._spans: list[Span] = []
        self._windows: list[Interval] = []
        self._began, self._thread = 0, threading.get_ident()
        self._is_seen = False  # whether `on_trace_ready` has been called for the current steps
        self._measured: Measured | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to measure."""
        if _open:
            raise RuntimeError("profile: another profile is open; one at a time can measure")
        _open.append(self)
        self.current_action = self._action()
        flush_all()
        self._switch()

    def stop(self) -> None:
        """Run pending work and stop; `on_trace_ready` is called if there are recorded steps that it has not seen."""
        if self not in _open:
            return
        try:
            flush_all()
        finally:
            last, seen = len(self._windows), len(self._spans)
            self._end_step()
            if last and not any(span.kind == "programs" for span in self._spans[seen:]):  # between a `step()` and the end
                del self._windows[last:], self._spans[seen:]
            timeline.spans = None
            team.log(0)
            _open.remove(self)
        if self._windows and self.on_trace_ready is not None and not self._is_seen:
            self.on_trace_ready(self)

    def step(self) -> None:
        """Mark the end of a step. Its pending work runs first."""
        before = self.current_action
        flush_all()
        self._end_step()
        self.step_num += 1
        self.current_action = self._action()
        if before is ProfilerAction.RECORD_AND_SAVE and self.schedule is not None:
            timeline.spans = None
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._is_seen |= before is ProfilerAction.RECORD_AND_SAVE
        self._switch()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def _switch(self) -> None:
        """Start or stop listening, as the next step requires."""
        self._measured = None
        listens = self.current_action is not ProfilerAction.NONE
        if self._is_seen and self._is_recording():  # left from an earlier cycle
            self._spans, self._windows, self._is_seen = [], [], False
        team.log(_LOG_ENTRIES if listens else 0)
        timeline.spans = None
        if listens:
            timeline.listen()
        self._began = now() if listens else 0

    def _is_recording(self) -> bool:
        return self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _end_step(self) -> None:
        """Collect the step's spans."""
        ended, spans = now(), timeline.spans
        if self._is_recording() and self._began and spans is not None:
            self._spans += map(Span._make, spans)
            self._windows.append((self._began, ended))
        self._began, self._measured = 0, None

    # ---- results ----
    @property
    def measured(self) -> Measured:
        """The recorded steps, for tools: programs with the times of their stages, and spans of Python."""
        if self._measured is None:
            self._measured = Measured(self._spans, self._windows, self._thread)
        return self._measured

    def rows(self, by: str = "line") -> list[Row]:
        """A row for each "line", "module", "kernel" or "operation", longest first. Raises ValueError for another."""
        return rows_of(self.measured, by)

    def table(self, by: str = "line", sort: str = "time", limit: int | None = 25) -> Text:
        """The rows as text, with shares of the kernels' time, after a summary of all time.

        Args:
            by: "line", "module", "kernel" or "operation". What a kernel fuses shares its time, by the cost model.
            sort: "time", "calls", "bytes", "flops" or "name".
            limit: how many rows, None for all.

        Backward's time counts for the line and module whose gradient it computes; a column shows this part.
        """
        return table(self.measured, by, sort, limit)

    def annotate(self, file: str | None = None, whole: bool = False) -> Text:
        """The user's source with milliseconds of forward and backward before its lines; of one file if it is named.

        Lines far from any with a time are left out, unless the `whole` is wanted. Raises ValueError for a file without.
        """
        return annotate(self.measured, file, whole)

    def chrome_trace(self, file: str | os.PathLike[str]) -> None:
        """Write what https://ui.perfetto.dev shows: a track for Python, and one for each worker."""
        write_chrome_trace(self.measured, file)

    export_chrome_trace = chrome_trace

    def memory(self) -> MemoryMap:
        """The memory of the program with the largest peak, with the lines that allocated it."""
        return MemoryMap(self.measured)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Averages:
        """PyTorch's view: a row for each operation, with `.table()`; for each line with `group_by_stack_n`.

        Operations of several shapes share a row: `group_by_input_shape` has no effect.
        """
        return Averages(self.measured, "line" if group_by_stack_n else "operation")

    def __repr__(self) -> str:
        return self.table()


class record_function:
    """A context or decorator whose time is shown on Python's track; its name is in the path of kernels recorded in it.

    >>> with genesis.profiler.profile() as p, genesis.profiler.record_function("double"):
    ...     y = (genesis.ones(3) * 2).tolist()
    >>> [row.name for row in p.rows(by="module")]
    ['double']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._scope, self._began = named_scope(name), 0

    def __enter__(self) -> Self:
        self._scope.__enter__()
        self._began = timeline.start()
        return self

    def __exit__(self, *problem: object) -> None:
        timeline.note("user", self._began, self.name)
        self._scope.__exit__()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function` with each call recorded."""
        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with record_function(self.name):
                return function(*args, **kwargs)

        return inside
