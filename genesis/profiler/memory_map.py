"""The memory of a program while it runs: inputs, results and temporaries, stage by stage."""

from __future__ import annotations

from typing import NamedTuple

from genesis.profiler.measured import Measured, ProgramRuns
from genesis.profiler.tables import Text
from genesis.runtime.installation import readable
from genesis.tracing.source_line import line_name

ROWS, WIDTH, LARGEST = 24, 40, 12  # of the drawing; and how many values are listed


class Held(NamedTuple):
    """A value in memory: its first and last stage (None: before the first, after the last), its bytes, its kind ("input",
    "result" or "temporary"), dtype and shape, the user's line and the module that made it."""

    first: int
    last: int
    nbytes: int
    kind: str
    shape: str
    line: str
    module: str


class MemoryMap:
    """The values of the program with the largest peak, and their lifetimes. Prints as a drawing over time and a list of the
    largest values at the peak.

    Attributes:
        values: a `Held` each.
        bytes_at: per stage, the bytes in memory while it runs.
        starts: per stage, the seconds since the program's start.
    """

    def __init__(self, measured: Measured) -> None:
        self.values: list[Held] = []
        self.bytes_at: list[int] = []
        self.starts: list[float] = []
        self._texts: list[str] = []
        for program in measured.programs:
            values = _values(program)
            count = len(program.stages)
            live = [sum(v.nbytes for v in values if v.first <= stage <= v.last) for stage in range(count)]
            if max(live, default=0) > max(self.bytes_at, default=0):
                self.values, self.bytes_at = values, live
                begins = dict(program.runs[-1].stages)
                origin = min(start for start, _ in begins.values())
                self.starts = [1e-9 * (begins[stage][0] - origin) if stage in begins else 0.0 for stage in range(count)]
                self._texts = [_lines(program, stage) for stage in range(count)]

    @property
    def peak(self) -> int:
        """The most bytes in memory at once."""
        return max(self.bytes_at, default=0)

    def at_peak(self) -> list[Held]:
        """The values in memory at the peak, largest first."""
        if not self.bytes_at:
            return []
        stage = self.bytes_at.index(self.peak)
        return sorted((v for v in self.values if v.first <= stage <= v.last), key=lambda v: -v.nbytes)

    def __repr__(self) -> str:
        if not self.bytes_at:
            return "no program ran"
        count, peak_stage = len(self.bytes_at), self.bytes_at.index(self.peak)
        shown = sorted({*range(0, count, max(1, -(-count // ROWS))), peak_stage})
        lines = [f"peak {readable(self.peak)} in the program with the largest, at stage {peak_stage} of {count}", "",
                 f"{'ms':>9}  {'stage':>5}  {'in memory':>10}"]
        for stage in shown:
            bar = "█" * round(WIDTH * self.bytes_at[stage] / max(self.peak, 1))
            mark = "  peak" * (stage == peak_stage)
            lines.append(f"{1e3 * self.starts[stage]:9.3f}  {stage:5d}  {readable(self.bytes_at[stage]):>10}  {bar:<{WIDTH}}"
                         f"  {self._texts[stage]}{mark}".rstrip())
        live = self.at_peak()
        lines += ["", "at the peak, largest first:"]
        lines += [f"{readable(v.nbytes):>10}  {v.kind:<9}  {v.shape:<24}  {v.line:<20} {v.module}".rstrip()
                  for v in live[:LARGEST]]
        if len(live) > LARGEST:
            lines.append(f"{readable(sum(v.nbytes for v in live[LARGEST:])):>10}  in {len(live) - LARGEST} more")
        return "\n".join(lines)

    def __str__(self) -> str:
        return Text(repr(self))


def _values(program: ProgramRuns) -> list[Held]:
    """A program's inputs, outputs and temporaries. Outputs written over inputs take no memory of their own."""
    lowered = program.plan.lowered
    nodes, schedule = lowered.nodes, lowered.schedule
    touched: dict[int, list[int]] = {}
    for number, stage in enumerate(schedule.stages):
        for call in stage:
            for value in (*call.reads, *call.writes):
                touched.setdefault(value, []).append(number)
    over = {output for _, output in lowered.donations}
    last = len(schedule.stages) - 1
    found = []
    for value, location in schedule.locations.items():
        stages = touched.get(value)
        if stages is None or (location.kind == "output" and location.position in over):
            continue
        first, until, kind = {
            "input": (0, last, "input"), "output": (stages[0], last, "result"), "arena": (stages[0], stages[-1], "temporary"),
        }[location.kind]
        site, node = program.sites.get(value), nodes[value]
        line = line_name(site.line, short=True) if site and site.line else ""
        found.append(Held(first, until, node.nbytes, kind, f"{node.dtype.name}{list(node.shape)}", line,
                          site.module if site else ""))
    return found


def _lines(program: ProgramRuns, stage: int) -> str:
    """The line and module with the largest share of a stage's time."""
    shares = program.stages[stage].shares
    if not shares:
        return ""
    site = max(shares, key=lambda share: share.fraction).site
    line = line_name(site.line, short=True) if site.line else ""
    return f"{line} {site.module}".strip() + " (backward)" * site.is_gradient
