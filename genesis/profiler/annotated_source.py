"""The user's source with times in the margin."""

from __future__ import annotations

import linecache
import os
from collections import defaultdict

from genesis.profiler.measured import Measured
from genesis.profiler.tables import Text, summary
from genesis.runtime.notebook import cell_name

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
