"""Tables of measurements by line, module, kernel or operation, with the machine's peaks; and the user's source with times."""

from __future__ import annotations

import functools
import linecache
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from genesis.debug.costs import timing
from genesis.debug.summary import counted
from genesis.execution.flush import flush_all
from genesis.functions.creation import ones
from genesis.profiler.measured import Measured, ProgramRuns, Site, StageInfo
from genesis.runtime.notebook import cell_name
from genesis.runtime.number_of_threads import get_num_threads
from genesis.tensor.handle import Tensor
from genesis.tracing.source_line import line_name

BY = ("line", "module", "kernel", "operation")
SORTS: dict[str, Callable[[Row], float | str]] = {
    "time": lambda row: -row.seconds, "calls": lambda row: -row.calls, "bytes": lambda row: -row.nbytes,
    "flops": lambda row: -row.flops, "name": lambda row: row.name,
}


class Text(str):
    """A string that interactive sessions show as printed."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(slots=True)
class Row:
    """The totals of one line, module, kernel or operation."""

    name: str
    seconds: float = 0.0
    gradient_seconds: float = 0.0  # the part for gradients
    calls: int = 0
    nbytes: float = 0.0
    flops: float = 0.0


def rows_of(measured: Measured, by: str) -> list[Row]:
    """A row per line, module, kernel or operation of the stages that ran, longest time first.

    A stage's time and bytes are split over the operations it fuses: see `sites`. A call is a run of a stage.
    """
    if by not in BY:
        raise ValueError(f"table: by={by!r}; want one of {', '.join(BY)}")
    found: dict[object, Row] = {}
    for program in measured.programs:
        _add(found, program, by)
    return sorted(found.values(), key=lambda row: -row.seconds)


def _add(found: dict[object, Row], program: ProgramRuns, by: str) -> None:
    times = len(program.runs)
    for stage, seconds in zip(program.stages, program.seconds(), strict=True):
        for key, name, fraction, flops, gradient in _parts(stage, by):
            row = found.get(key)
            if row is None:
                row = found[key] = Row(name)
            row.seconds += seconds * fraction
            row.gradient_seconds += seconds * gradient
            row.calls += times
            row.nbytes += stage.nbytes * fraction * times
            row.flops += flops * times


def _parts(stage: StageInfo, by: str) -> Iterable[tuple[object, str, float, float, float]]:
    """(key, name, fraction, flops, fraction that is for gradients) of a stage."""
    if by == "kernel":
        ops = ", ".join(dict.fromkeys(share.site.operation for share in stage.shares if share.site.operation))
        return [(stage.kernel, f"{stage.kernel}: {ops}", 1.0, stage.flops,
                 sum(share.fraction for share in stage.shares if share.site.is_gradient))]
    parts: dict[object, tuple[object, str, float, float, float]] = {}
    for site, fraction, flops in stage.shares:
        key = name_of(site, by)
        _, _, before, flops_before, gradient = parts.get(key, (key, key, 0.0, 0.0, 0.0))
        parts[key] = key, key, before + fraction, flops_before + flops, gradient + fraction * site.is_gradient
    return parts.values()


def name_of(site: Site, by: str) -> str:
    """A site's name as a line, module or operation."""
    if by == "line":
        return line_name(site.line, short=True) if site.line else "(no line)"
    if by == "module":
        return site.module or "(no module)"
    return (site.operation or "(none)") + " (backward)" * site.is_gradient


def table(measured: Measured, by: str = "line", sort: str = "time", limit: int | None = 25) -> Text:
    """The rows as text, after a summary."""
    if sort not in SORTS:
        raise ValueError(f"table: sort={sort!r}; want one of {', '.join(SORTS)}")
    rows = sorted(rows_of(measured, by), key=SORTS[sort])
    whole = sum(row.seconds for row in rows) or 1.0
    shown = rows if limit is None else rows[:limit]
    peak = peaks(get_num_threads())
    lines = [*summary(measured), "", f"{'share':>6} {'ms':>10} {'backward':>8} {'calls':>6} {'MB':>8} {'GB/s':>6} "
             f"{'GFlop/s':>8} {'of peak':>7}  {by}"]
    for row in shown:
        seconds = row.seconds or 1.0
        backward = f"{row.gradient_seconds / row.seconds:.0%}" if row.gradient_seconds and row.seconds else ""
        lines.append(
            f"{row.seconds / whole:6.1%} {row.seconds * 1e3:10.3f} {backward:>8} {row.calls:6d} "
            f"{row.nbytes / 1e6:8.1f} {row.nbytes / seconds * 1e-9:6.1f} {row.flops / seconds * 1e-9:8.1f} "
            f"{max(row.nbytes / seconds / peak.memory, row.flops / seconds / peak.products):7.0%}  {row.name}")
    if len(shown) < len(rows):
        rest = sum(row.seconds for row in rows[len(shown):])
        lines.append(f"{rest / whole:6.1%} {rest * 1e3:10.3f}  in {len(rows) - len(shown)} more; limit=None shows all")
    return Text("\n".join(lines))


def summary(measured: Measured) -> list[str]:
    """The time by part, the number of programs and runs, and the machine's peaks."""
    wall, count = measured.wall, len(measured.windows)
    runs = sum(len(program.runs) for program in measured.programs)
    peak = peaks(get_num_threads())
    parts = ", ".join(f"{name} {seconds / wall:.1%}" for name, seconds in measured.parts.items()) if wall else ""
    each = f", {wall / count * 1e3:.2f} ms each" if count > 1 else ""
    return [
        f"{count} step{'s' * (count != 1)} in {wall * 1e3:.2f} ms{each}: {parts}",
        f"{len(measured.programs)} program{'s' * (len(measured.programs) != 1)}, {runs} runs; "
        f"this machine's peaks: {peak.memory * 1e-9:.1f} GB/s, {peak.products * 1e-9:.1f} GFlop/s",
    ]


_SORTS: dict[str | None, str] = {
    None: "time", "count": "calls", "flops": "flops", "name": "name",
    **{f"{own}{device}_time{total}": "time" for own in ("self_", "") for device in ("cpu", "cuda", "device")
       for total in ("_total", "")},
}


@dataclass(frozen=True, slots=True)
class Average:
    """An operation: its number of runs and microseconds. Operations do not nest, so own time equals time.

    Or a `record_function`, with the time of the kernels recorded in it and no own time.
    """

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    cpu_time: float
    flops: float


class Averages(list[Average]):
    """A list of `Average`: operations, longest time first, then `record_function` names."""

    def __init__(self, measured: Measured, by: str) -> None:
        self._measured, self._by = measured, by
        super().__init__(Average(row.name, row.calls, row.seconds * 1e6, row.seconds * 1e6,
                                 row.seconds * 1e6 / max(row.calls, 1), row.flops) for row in rows_of(measured, by))
        self._named = [Average(name, count, seconds * 1e6, 0.0, seconds * 1e6 / count, 0.0)
                       for name, count, seconds in _named(measured)]
        self.extend(self._named)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all."""
        return sum(row.self_cpu_time_total for row in self)

    def total_average(self) -> Average:
        """All operations in one row."""
        count = sum(row.count for row in self) - sum(row.count for row in self._named)
        total = self.self_cpu_time_total
        return Average("Total", count, total, total, total / max(count, 1), sum(row.flops for row in self))

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
        max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False,
    ) -> Text:
        """`profile.table`, sorted by one of PyTorch's names of columns, below `header`. Raises ValueError for an unknown one.

        Columns are as wide as they need, and no events nest: the other settings have no effect.
        """
        sort = _SORTS.get(sort_by, sort_by or "time")
        if sort not in SORTS:
            raise ValueError(f"table: sort_by={sort_by!r}; want one of {', '.join(name for name in _SORTS if name)}")
        text = table(self._measured, self._by, sort, None if row_limit < 0 else row_limit)
        named = [f"{one.key}: {one.cpu_time_total * 1e-3:.3f} ms of kernels, recorded in {counted(one.count, 'call')}"
                 for one in self._named]
        return Text("\n".join([*([header] if header else []), text, *[""] * bool(named), *named]))

    def __str__(self) -> str:
        return self.table()

    def names(self) -> Iterator[str]:
        """The keys."""
        return (row.key for row in self)


def _named(measured: Measured) -> list[tuple[str, int, float]]:
    """Each name of a `record_function`, how often it was entered, and the seconds of kernels that were recorded in it."""
    calls = Counter(span.what for span in measured.spans if span.kind == "user")
    taken = dict.fromkeys(calls, 0.0)
    for row in rows_of(measured, "module"):
        for name in taken:
            if f".{name}." in f".{row.name}.":
                taken[name] += row.seconds
    return [(name, count, taken[name]) for name, count in calls.items()]


CONTEXT = 2  # lines shown before and after a line with a time


def annotate(measured: Measured, file: str | None = None, whole: bool = False) -> Text:
    """Each file with a share of the time, or only `file`: milliseconds of forward and backward before its lines."""
    times: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    for program in measured.programs:
        for stage, seconds in zip(program.stages, program.seconds(), strict=True):
            for site, fraction, _ in stage.shares:
                if site.line is not None:
                    times[site.line[0]][site.line[1]][site.is_gradient] += seconds * fraction
    chosen = [name for name in times if file is None or os.path.realpath(name) == os.path.realpath(file)
              or file in (os.path.basename(name), cell_name(name))]
    if file is not None and not chosen:
        raise ValueError(f"annotate: no time was measured for lines of {file!r}; there is some for "
                         f"{', '.join(map(os.path.basename, times)) or 'none'}")
    chosen.sort(key=lambda name: -sum(map(sum, times[name].values())))
    total = sum(sum(map(sum, lines.values())) for lines in times.values()) or 1.0
    text = summary(measured)
    for name in chosen:
        text += ["", f"{cell_name(name) or name}: {sum(map(sum, times[name].values())) / total:.1%} of the time of kernels",
                 f"{'share':>6} {'forward ms':>11} {'backward':>10}"]
        text += _lines(name, times[name], total, whole)
    return Text("\n".join(text))


def _lines(name: str, times: dict[int, list[float]], total: float, whole: bool) -> list[str]:
    source = [line.rstrip("\n") for line in linecache.getlines(name)]
    if not source:
        return [f"{_margin(times[line], total)}  line {line}" for line in sorted(times)]
    near = {line + k for line in times for k in range(-CONTEXT, CONTEXT + 1)}
    shown, skipped = [], False
    for number, line in enumerate(source, 1):
        if whole or number in near:
            shown += ["   ..."] * skipped
            skipped = False
            margin = _margin(times[number], total) if number in times else " " * 29
            shown.append(f"{margin} {number:5d}  {line}".rstrip())
        else:
            skipped = True
    return shown


def _margin(spent: list[float], total: float) -> str:
    forward, backward = (f"{seconds * 1e3:.3f}" if seconds else "" for seconds in spent)
    return f"{sum(spent) / total:6.1%} {forward:>11} {backward:>10}"


# ---- this machine's peaks, measured ----
LARGE = 1 << 23  # elements of arrays in memory
ROUNDS = 5


class Peaks(NamedTuple):
    """Memory bytes per second and matrix product flops per second, of all threads together."""

    memory: float
    products: float


@functools.cache
def peaks(threads: int) -> Peaks:
    """The peaks of so many threads, the number in use: the best of a few rounds each."""
    far, square = ones(LARGE), ones(512, 512)
    return Peaks(8 * LARGE / _best(lambda: far + far * 2.0), 2.0 * 512**3 / _best(lambda: square @ square))


def _best(call: Callable[[], Tensor]) -> float:
    """The seconds of the single stage of `call`."""
    with timing() as times:
        for _ in range(ROUNDS):
            result = call()
            flush_all()
            del result
    return min(stage.seconds for stages in times.programs[-1:] for stage in stages) or 1e-9
