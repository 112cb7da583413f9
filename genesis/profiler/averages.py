"""PyTorch's `key_averages()`: rows under PyTorch's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from genesis.debug.summary import counted
from genesis.profiler.measured import Measured
from genesis.profiler.tables import SORTS, Text, rows_of, table

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
