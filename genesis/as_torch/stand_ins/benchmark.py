"""`torch.utils.benchmark`: times of statements."""

from __future__ import annotations

import ast
import enum
import math
import statistics
import sys
import textwrap
import time
import timeit
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

import genesis

_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1.0, "second")}
Language = enum.Enum("Language", {"PYTHON": 0, "CPP": 1})
Callback = Callable[[int, float], Any] | None


def timer() -> float:
    """The time in seconds, once pending work has been done."""
    genesis.synchronize()
    return time.perf_counter()


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A context in which genesis computes with `n` threads."""
    before = genesis.get_num_threads()
    genesis.set_num_threads(n)
    try:
        yield
    finally:
        genesis.set_num_threads(before)


def select_unit(t: float) -> tuple[str, float]:
    """(the name of a unit in which a time is 1 to 1000, its seconds)."""
    name = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3), "s") if t > 0 else "s"
    return name, _UNITS[name][0]


def unit_to_english(u: str) -> str:
    """The whole name of a unit."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to so many significant digits."""
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The different elements, in order."""
    return [*dict.fromkeys(elements)]


# ---- measurements ----
@dataclass(frozen=True)
class TaskSpec:
    """What is measured, and how tables call it: `label` a table, `sub_label` and `env` a row, `description` a column."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is None and "\n" in self.stmt:
            return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"
        return (self.stmt if self.label is None else self.label) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """The setup statements as text; empty if there are none."""
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """The title, the description and the setup as text."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join([f"{part}\n" if "\n" in part else part for part in parts if part])


@dataclass(repr=False)
class Measurement:
    """Times of a statement: `raw_times` are seconds of `number_per_run` runs each."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in TaskSpec.__dataclass_fields__:
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds of one run."""
        return [raw / self.number_per_run for raw in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """The range of the middle half."""
        low, high = np.quantile(self.times, (0.25, 0.75))
        return float(high - low)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median are certain, as far as the middle half of the times tells."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), 25e-9)
        return min(max(math.floor(math.log10(self.median / interval)), 1), 4)

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether the middle half is within this part of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether it is not within a tenth."""
        return not self.meets_confidence()

    @property
    def title(self) -> str:
        """The label, or the statement."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        low, high = np.quantile(self.times, (0.25, 0.75)) / scale
        count, several = len(self.times), len(self.times) > 1
        lines = [object.__repr__(self), self.task_spec.summarize(),
                 f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}",
                 f"  IQR:    {high - low:.2f} {unit} ({low:.2f} to {high:.2f})" if count >= 4 else "",
                 f"  {count} measurement{'s' if several else ''}, {self.number_per_run} runs "
                 f"{'per measurement,' if several else ','} {self.num_threads} thread{'s' if self.num_threads > 1 else ''}"]
        if self.has_warnings:
            told = "This could indicate system fluctuation." if self.meets_confidence(0.25) else (
                "This suggests significant environmental influence.")
            lines.append(f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n"
                         f"           {told}")
        return "\n".join([line for line in lines if line])

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One for each different task, with all its times."""
        groups: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            groups.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


class Timer:
    """Times a statement. What it computes is part of it: pending work, and the value of a last expression.

    Raises ValueError for a statement that is no text, and for C++.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1, language: Any = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python") or global_setup:
            raise ValueError(f"Timer: language {language!r}, global_setup {global_setup!r}; want Python alone")
        stmt, setup = (textwrap.dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup))
        own = {"torch": sys.modules.get("torch", genesis), "_synchronize": genesis.synchronize, **(globals or {})}
        self._timer = timeit.Timer(_computed(stmt), setup, timer, own)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measurement(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """As in PyTorch: raises NotImplementedError."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    autorange = repeat

    def _block(self, min_run_time: float) -> int:
        """A number of runs beside which reading the clock takes no time."""
        overhead, number = statistics.median([self._timeit(0) for _ in range(5)]), 1
        while True:
            taken = self._timeit(number)
            if (overhead <= 1e-4 * taken and taken >= min_run_time / 1000) or taken > min_run_time:
                return number
            number *= 10

    def _measured(
        self, block_time: float, min_run_time: float, max_run_time: float, done: Callable[[Measurement], bool],
        callback: Callback,
    ) -> Measurement:
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(block_time)
            while sum(times) < min_run_time or (not done(self._measurement(number, times)) and sum(times) <= max_run_time):
                times.append(self._timeit(number))
                if callback:
                    callback(number, times[-1])
        return self._measurement(number, times)

    def blocked_autorange(self, callback: Callback = None, min_run_time: float = 0.2) -> Measurement:
        """Measurements until they have taken so many seconds; each is told to `callback(number of runs, seconds)`."""
        return self._measured(min_run_time, min_run_time, math.inf, lambda found: True, callback)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Callback = None
    ) -> Measurement:
        """Measurements until their middle half is within `threshold` of the median, or have taken `max_run_time`."""
        return self._measured(0.05, min_run_time, max_run_time, lambda found: len(found.times) > 3 and (
            found.meets_confidence(threshold)), callback)


def _computed(statement: str) -> str:
    """The statement, so that it ends when all is computed. A value that nobody keeps would not be."""
    try:
        parsed = ast.parse(statement)
    except SyntaxError:
        return statement  # timeit says so
    if parsed.body and isinstance(last := parsed.body[-1], ast.Expr):
        parsed.body[-1] = ast.Assign([ast.Name("_value", ast.Store())], last.value, lineno=last.lineno)
    return f"{ast.unparse(parsed)}\n_synchronize()"
