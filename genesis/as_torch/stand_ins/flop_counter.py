"""`torch.utils.flop_counter`: counts the floating-point operations of products by module."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any, Self

from genesis.execution.flush import FLUSH_HOOKS
from genesis.execution.plan import held_arrays
from genesis.ops.loop_body import multiplications
from genesis.tracing.scopes import ScopeNames
from genesis.tracing.state import unflushed
from genesis.tracing.trace import Trace

SUFFIXES = ("", "K", "M", "B", "T", "P", "E", "Z", "Y")


def get_suffix_str(number: int) -> str:
    """The suffix with which a number has at most four digits."""
    return SUFFIXES[max(0, min(len(SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in units of a suffix."""
    return f"{number / 1000 ** SUFFIXES.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """A fraction as a percentage."""
    return f"{num / denom if denom else 0:.2%}" if denom else "0%"


class FlopCounterMode:
    """A context that counts the multiplications and additions of products, of convolutions and of backward too.

    `flop_counts` has a dict for "Global" and for the path of each module, from "mm" or "bmm" to a number. Calls that are
    compiled are counted where they are recorded, not where they are replayed. `mods` has no effect, as in PyTorch. Raises
    ValueError for a `custom_mapping`.
    """

    def __init__(self, mods: Any = None, depth: int | None = 2, display: bool = True, custom_mapping: Any = None) -> None:
        if custom_mapping:
            raise ValueError("FlopCounterMode: custom_mapping; want None, as products within operations are counted")
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self._thread, self._starts = 0, dict[float, int]()
        self._names = ScopeNames()

    def get_total_flops(self) -> int:
        """All of them."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The counts as plain dicts."""
        return {path: dict(counts) for path, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, of modules down to a depth."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        suffix, rows = get_suffix_str(total), [("Module", "FLOP", "% Total")]
        for path, counts in sorted(self.flop_counts.items(), key=lambda item: (item[0] != "Global", item[0])):
            level = 0 if path == "Global" else path.count(".") + 1
            if depth is None or level <= depth:
                rows += [(" " * level + name, convert_num_with_suffix(count, suffix), convert_to_percent_str(count, total))
                         for name, count in [(path, sum(counts.values())), *[(f" - {op}", n) for op, n in counts.items()]]]
        wide = [max(len(row[k]) for row in rows) for k in range(3)]
        lines = [f"{name:<{wide[0]}}  {flop:>{wide[1]}}  {share:>{wide[2]}}" for name, flop, share in rows]
        return "\n".join([lines[0], "  ".join(["-" * width for width in wide]), *lines[1:]])

    def __enter__(self) -> Self:
        self.flop_counts.clear()
        self._thread = threading.get_ident()
        self._starts = {trace.number: len(trace.nodes) for trace in unflushed()}
        FLUSH_HOOKS.append(self._flushed)
        return self

    def __exit__(self, *problem: object) -> None:
        FLUSH_HOOKS.remove(self._flushed)
        for trace in unflushed():
            self._count(trace, {array.index for array in held_arrays(trace)})
        if self.display:
            print(self.get_table())

    def _flushed(self, trace: Trace, plan: object) -> None:
        if threading.get_ident() == self._thread:
            self._count(trace, {array.index for array in trace.run.handles} if trace.run is not None else set())

    def _count(self, trace: Trace, held: set[int]) -> None:
        """Count the products of a trace since the block began; a gradient that nobody reads is not computed."""
        read = {*held}
        for index in range(len(trace.nodes) - 1, self._starts.get(trace.number, 0) - 1, -1):
            node = trace.nodes[index]
            if index not in read and trace.derived_from(index) != (trace, index):
                continue
            read.update(node.inputs)
            flops = 2 * multiplications(trace.nodes, node)
            if not flops:
                continue
            parts = self._names.path(trace.scope_of(index)).split(".")
            for path in {"Global", *[".".join(parts[: k + 1]) for k in range(len(parts)) if parts[0]]}:
                self.flop_counts[path]["bmm" if len(node.shape) > 2 else "mm"] += flops
