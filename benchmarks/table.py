"""All results in one table, in Markdown and as a picture: everyone's time beside the promises and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import PEERS, Result, format_seconds

__all__ = ["draw", "table"]

CONTESTANTS = {
    "genesis compiled": "#2f6fde", "genesis": "#7fb0f5", "torch eager": "#c4512d", "torch.compile": "#e3a13f",
    "jax.jit": "#5f9e6e",
}


def table(results: Sequence[Result]) -> str:
    """A row for each result that has rivals, then one for each promise."""
    lines = [f"| work | {' | '.join(CONTESTANTS)} |", "|---" * (1 + len(CONTESTANTS)) + "|"]
    for result in _compared(results):
        times = (format_seconds(result.medians[name]).strip() if name in result.medians else "" for name in CONTESTANTS)
        lines.append(f"| {result.title} | {' | '.join(times)} |")
    lines += ["", "| work | promise | measured | |", "|---|---|---|---|"]
    for result in results:
        lines += [f"| {result.title} | {bar.text} | {bar.value:.3g} | {bar.outcome} |" for bar in result.bars]
    return "\n".join(lines)


def draw(results: Sequence[Result], path: Path) -> None:
    """Times over that of the fastest rival, a line for each result: left of 1 is faster than all of them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = _compared(results)[::-1]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.33 * len(rows)), layout="constrained")
    for name, colour in CONTESTANTS.items():
        found = [(r.medians[name] / _best(r), y) for y, r in enumerate(rows) if name in r.medians]
        size, marker = (60, "D") if name.startswith("genesis") else (28, "o")
        xs, ys = [x for x, _ in found], [y for _, y in found]  # empty for who takes no part
        axes.scatter(xs, ys, label=name, color=colour, s=size, marker=marker, zorder=3)
    axes.axvline(1, color="#8b8f99", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(rows)), [result.title.removeprefix("training step, ") for result in rows], fontsize=8)
    axes.set(xscale="log", xlabel="time / time of the fastest of torch eager, torch.compile and jax.jit")
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    figure.legend(loc="outside upper center", ncols=len(CONTESTANTS), fontsize=8, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _compared(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if any(name in result.medians for name in PEERS)]


def _best(result: Result) -> float:
    return min(result.medians[name] for name in PEERS if name in result.medians)
