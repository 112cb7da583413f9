"""`torch.utils.benchmark.Timer`: measures the time of statements."""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any


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
    """Times a statement. Values are computed when they are read, so the statement should read one, as by `.item()`."""

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = time.perf_counter,
        globals: dict[str, Any] | None = None, label: str | None = None, **ignored: Any,
    ) -> None:
        self._timer = timeit.Timer(stmt, setup, timer, globals)
        self._title = label or stmt

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs."""
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
