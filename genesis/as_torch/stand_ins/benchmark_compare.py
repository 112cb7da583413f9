"""`torch.utils.benchmark.Compare`: tables of times."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence

from genesis.as_torch.stand_ins.benchmark import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

_BEST, _GOOD, _VERY_BAD, _BAD, _BOLD, _PLAIN = "\033[92m", "\033[34m", "\033[31m", "\033[2m\033[91m", "\033[1m", "\033[0m"
Colorize = enum.Enum("Colorize", {"NONE": "none", "COLUMNWISE": "columnwise", "ROWWISE": "rowwise"})


class Compare:
    """A table of measurements: a row for each `sub_label`, `env` and number of threads, a column for each `description`."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trims = self._highlights = False
        self._colors = Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements. Raises ValueError for anything else."""
        for each in (listed := [*results]):
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
        self._results += listed

    def trim_significant_figures(self) -> None:
        """Show the digits that are certain."""
        self._trims = True

    def colorize(self, rowwise: bool = False) -> None:
        """Color times by their ratios to the best of a column, or of a row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that vary."""
        self._highlights = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[str | None, list[Measurement]] = {}
        for each in Measurement.merge(self._results):
            groups.setdefault(each.label, []).append(each)
        return "\n".join([self._table(group) for group in groups.values()])

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(each.median for each in results))
        keys = sorted(ordered_unique(map(_key, results)), key=lambda key: key[:2])
        columns = ordered_unique(m.description for m in results)
        at = {(_key(m), m.description): m for m in results}
        rows = [[at.get((key, column)) for column in columns] for key in keys]
        texts = [*zip(*[self._column([row[k] for row in rows], scale) for k in range(len(columns))], strict=True)]
        names = _names_of(keys)
        cells = [["", *[column or "" for column in columns]],
                 *[[name, *row] for name, row in zip(names, texts, strict=True)]]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  |  ".join([cell.center(width) for cell, width in zip(cells[0], widths, strict=True)])]
        last = None
        for number, (key, row) in enumerate(zip(keys, cells[1:], strict=True)):
            if key[0] != last:
                last = key[0]
                lines.append(f"{last} threads: ".ljust(len(lines[0]), "-"))
            shown_row = [row[0].ljust(widths[0])]
            for k, (cell, width) in enumerate(zip(row[1:], widths[1:], strict=True)):
                beside = [rows[n][k] for n in range(len(rows)) if keys[n][0] == key[0]]
                best = rows[number] if self._colors is Colorize.ROWWISE else beside
                shown_row.append(self._colored(cell.center(width), rows[number][k], best))
            lines.append("  |  ".join(shown_row))
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" if (
            self._highlights and any(each.has_warnings for each in results)) else ""
        title = f" {results[0].label or ''} ".center(len(lines[0]) - 2, "-")
        return "\n".join([f"[{title}]", *lines, "", f"Times are in {unit_to_english(unit)}s ({unit}).", note])

    def _column(self, results: Sequence[Measurement | None], scale: float) -> list[str]:
        """The times of a column as text, all of one length."""
        found = [each for each in results if each is not None]
        digits = [math.ceil(math.log10(each.median / scale)) for each in found]
        decimals = min([max(m.significant_figures - d, 0) for d, m in zip(digits, found, strict=True)]) if self._trims else 1
        marks = self._highlights and any(each.has_warnings for each in found)
        length = max(digits) + decimals + (1 if decimals else 0)

        def text(each: Measurement) -> str:
            value = each.median / scale
            value = trim_sigfig(value, each.significant_figures) if self._trims else value
            mark = f" (! {each.iqr / each.median * 100:.0f}%)" if marks and each.has_warnings else ""
            return f"{value:>{length}.{decimals}f}{mark:>{7 if marks else 0}}"

        blank = " " * len(f"{1:>{length}.{decimals}f}{'':>{7 if marks else 0}}")
        return [blank if each is None else text(each) for each in results]

    def _colored(self, cell: str, result: Measurement | None, beside: Sequence[Measurement | None]) -> str:
        if self._colors is Colorize.NONE or result is None:
            return cell
        time, best = result.median, min(each.median for each in beside if each is not None)
        for holds, color in (
            (time <= best * 1.01 or time <= best + 100e-9, _BEST + _BOLD), (time <= best * 1.1, _GOOD + _BOLD),
            (time >= best * 5, _VERY_BAD + _BOLD), (time >= best * 2, _BAD),
        ):
            if holds:
                return color + cell + _PLAIN * 2
        return cell


_Key = tuple[int, str, str]  # of a row: its number of threads, environment and name


def _key(result: Measurement) -> _Key:
    return result.num_threads, result.env or "Unspecified env", result.as_row_name


def _names_of(keys: Sequence[_Key]) -> list[str]:
    """The rows' names; the first of several environments' rows has that before it."""
    envs = {env for _, env, _ in keys}
    names, before = [], (0, "")
    for threads, env, name in keys:
        shown = f"({env})" if len(envs) > 1 and (threads, env) != before else ""
        names.append(f"  {shown.ljust(max(map(len, envs)) + 4 if len(envs) > 1 else 4)}{name}")
        before = threads, env
    return names
