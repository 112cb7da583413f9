"""`torch.utils.benchmark.Timer` and `torch.profiler.profile`: how long statements and steps take, by the clock."""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Callable, Iterable
from typing import Any

from genesis.as_torch.stand_ins.engine import ProfilerActivity
from genesis.as_torch.stand_ins.settings import no_effect, nothing

record_function = no_effect


class Measurement:
    """Times of runs, in seconds each."""

    def __init__(self, number_per_run: int, raw_times: list[float], title: str) -> None:
        self.number_per_run, self.raw_times, self.title = number_per_run, raw_times, title
        self.times = [raw / number_per_run for raw in raw_times]

    @property
    def mean(self) -> float:
        """The mean."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.times)

    def __repr__(self) -> str:
        count = f"{len(self.times)} measurements, {self.number_per_run} runs per measurement"
        return f"{self.title}\n  Median: {self.median * 1e6:.2f} us\n  {count}"


class Timer:
    """Times a statement. Values are computed when they are looked at: have the statement look, as by `.item()`."""

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = time.perf_counter,
        globals: dict[str, Any] | None = None, label: str | None = None, **ignored: Any,
    ) -> None:
        self._timer = timeit.Timer(stmt, setup, timer, globals)
        self._title = label or stmt

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement, of so many runs."""
        self._timer.timeit(max(number // 100, 2))
        return Measurement(number, [self._timer.timeit(number)], self._title)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Measurements until they have taken so many seconds."""
        number, _ = self._timer.autorange()
        number = max(1, number // 10)
        raw = [self._timer.timeit(number)]
        while sum(raw) < min_run_time:
            raw.append(self._timer.timeit(number))
        return Measurement(number, raw, self._title)

    adaptive_autorange = blocked_autorange


class _Averages(list[tuple[str, float]]):
    """Names and seconds."""

    def table(self, **ignored: Any) -> str:
        """The steps and how long they took."""
        rows = [f"{name:<24}{seconds * 1e3:12.3f} ms" for name, seconds in self]
        return "\n".join([f"{'Name':<24}{'CPU total':>15}", *rows])

    def total_average(self) -> float:
        """All seconds."""
        return sum(seconds for _, seconds in self)


class profile:
    """How long the steps took that are made within it; kernels are not told apart (`genesis.debug` does)."""

    def __init__(
        self, *, activities: Iterable[Any] | None = None, schedule: Any = None,
        on_trace_ready: Callable[[Any], Any] | None = None, **ignored: Any,
    ) -> None:
        self._ready = on_trace_ready
        self._steps = _Averages()
        self._since = 0.0

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self._since = time.perf_counter()

    def step(self) -> None:
        """A step has ended."""
        now = time.perf_counter()
        self._steps.append((f"ProfilerStep#{len(self._steps)}", now - self._since))
        self._since = now

    def stop(self) -> None:
        """End."""
        if not self._steps:
            self.step()
        if self._ready is not None:
            self._ready(self)

    def key_averages(self, **ignored: Any) -> _Averages:
        """The steps."""
        return self._steps

    def events(self) -> _Averages:
        """The steps."""
        return self._steps

    def export_chrome_trace(self, path: str) -> None:
        """Writes the steps as a trace that browsers show."""
        begin, rows = 0.0, []
        for name, seconds in self._steps:
            rows.append(f'{{"name": "{name}", "ph": "X", "ts": {begin * 1e6}, "dur": {seconds * 1e6}, "pid": 0, "tid": 0}}')
            begin += seconds
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"traceEvents": [' + ", ".join(rows) + "]}")


def schedule(*, wait: int = 0, warmup: int = 0, active: int = 1, repeat: int = 0, skip_first: int = 0, **ignored: Any) -> Any:
    """Accepted: all steps are measured."""
    return nothing


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable[[Any], None]:
    """A handler that does nothing."""
    return nothing


def supported_activities() -> set[ProfilerActivity]:
    """What can be measured."""
    return {ProfilerActivity.CPU}
