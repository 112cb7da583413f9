"""Tables of measurements by line, module, kernel or operation, with the machine's peaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from genesis.profiler.measured import Measured, ProgramRuns
from genesis.profiler.peaks import peaks
from genesis.profiler.sites import Site, StageInfo
from genesis.runtime.number_of_threads import get_num_threads
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
