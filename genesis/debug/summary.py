"""Summaries of long programs: where the time goes, and what is furthest from the machine's peak."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from genesis.ir.graph import Node, format_node
from genesis.lower.stages import Estimate
from genesis.lower.target import HOST
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.installation import readable
from genesis.runtime.number_of_threads import get_num_threads
from genesis.tracing.source_line import line_name

Line = tuple[str, int]  # file, line
LONG = 40  # from this many lines of detail on, a summary is printed
FURTHEST = 3
_MOST = 6  # operations, lines or modules that a summary of a graph names
_SAME_VALUE = ("variable", "detach", "with_value")
_LAUNCH = 5e-6  # seconds: shorter stages are mostly launch overhead


class Spent(NamedTuple):
    """A stage: its first call as text, the user's lines, the modules, the cost model's estimate, and its measured or estimated
    seconds."""

    text: str
    lines: Sequence[Line]
    modules: Sequence[str]
    estimate: Estimate
    seconds: float

    @property
    def lost(self) -> float:
        """Seconds above the estimate."""
        return self.seconds - self.estimate.seconds

    @property
    def origin(self) -> str:
        """The first line and module."""
        line = "".join(line_name(line, short=True) for line in self.lines[:1])
        return " ".join(filter(None, (line, *self.modules[:1])))


def shortened(head: Sequence[str], detail: Sequence[str], whole: bool | None) -> str:
    """`detail` if it is short or `whole` is wanted; otherwise `head` and how to see the detail."""
    if whole or (whole is None and len(detail) <= LONG):
        return "\n".join(detail)
    return "\n".join([*head, f"{len(detail)} lines of detail: text(detail=True)"])


def time_summary(programs: Sequence[Sequence[Spent]], measured: bool = True) -> list[str]:
    """The number of programs, the time by kind of stage, and the stages that exceed the cost model most; if nothing was
    `measured`, those with the longest estimates."""
    stages = [stage for program in programs for stage in program]
    total = sum(stage.seconds for stage in stages) or 1e-30
    kinds: dict[str, float] = defaultdict(float)
    for stage in stages:
        kinds[stage.text.split()[0]] += stage.seconds
    shares = ", ".join(f"{kind} {seconds / total:.0%}" for kind, seconds in sorted(kinds.items(), key=lambda item: -item[1]))
    took = "took" if measured else "by the cost model"
    lines = [f"{counted(len(programs), 'program')}, {counted(len(stages), 'stage')}, {took} {total * 1e3:.3f} ms: {shares}"]
    chosen = sorted(stages, key=lambda stage: -(stage.lost if measured else stage.seconds))[:FURTHEST]
    lines.append("furthest from what the machine can do:" if measured else "longest:")
    for stage in chosen:
        lost = f", {stage.lost * 1e3:.3f} ms above the estimate" if measured else ""
        reason = why(stage) if measured else f"{stage.estimate.nbytes / 1e6:.2f} MB, {stage.estimate.flops / 1e6:.2f} MFlop"
        lines.append(f"  {stage.seconds * 1e3:9.3f} ms ({stage.seconds / total:.0%}){lost}: {reason}")
        lines.append(f"               {stage.text.splitlines()[0]:.80}  {stage.origin}".rstrip())
    return lines


def why(stage: Spent) -> str:
    """The bound of a stage, in numbers."""
    kind, (nbytes, flops, _), seconds = stage.text.split()[0], stage.estimate, max(stage.seconds, 1e-12)
    if kind == "host":
        return "Python computes it"
    if seconds < _LAUNCH:
        return "too small: a launch takes most of it"
    machine, threads = HOST, get_num_threads()
    compute = machine.products if kind == "product" else machine.operations
    reached, moved = flops / seconds, nbytes / seconds
    if reached / (compute * threads) >= moved / machine.memory:
        one = ", no more than one thread's" if threads > 1 and reached < compute else ""
        return f"{reached * 1e-9:.1f} of {compute * threads * 1e-9:.0f} GFlop/s{one}"
    return f"{moved * 1e-9:.1f} of {machine.memory * 1e-9:.0f} GB/s"


def refusal_summary(refusals: Sequence[str]) -> list[str]:
    """The number of rejected fusions, by reason."""
    if not refusals:
        return []
    reasons: dict[str, int] = defaultdict(int)
    for refusal in refusals:
        reasons[refusal.rpartition(": ")[2]] += 1
    most = sorted(reasons.items(), key=lambda item: -item[1])[:2]
    return [f"{counted(len(refusals), 'fusion')} refused: " + "; ".join(f"{count} as {reason}" for reason, count in most)]


def graph_summary(
    nodes: Sequence[Node], indices: Sequence[int], lines: Mapping[int, Line], modules: Mapping[int, str],
    phases: Mapping[int, str],
) -> list[str]:
    """The number of values by phase and operation, the lines and modules with most of them, and the largest values.

    Inputs, constants and views are counted separately from computed values.
    """
    kinds = {i: _kind(nodes[i]) for i in indices}
    read = [i for i in indices if kinds[i] == "input"]
    computed = [i for i in indices if kinds[i] not in ("input", "source", "view")]
    by_phase, by_kind = Counter(phases[i] for i in computed if i in phases), Counter(kinds.values())
    rows = [f"{counted(len(indices), 'value')}: {len(computed)} computed{f' ({_most(by_phase)})' if by_phase else ''}, "
            f"{counted(by_kind['view'], 'view')}, {counted(by_kind['source'], 'constant')}, "
            f"{counted(len(read), 'input')} of {readable(sum(nodes[i].nbytes for i in read))}"]
    for title, names in (
        ("operations", (nodes[i].op for i in computed)),
        ("lines with most", (line_name(lines[i], short=True) for i in computed if i in lines)),
        ("modules with most", (modules[i] for i in computed if modules.get(i))),
    ):
        most = _most(Counter(names))
        rows += [f"{title}: {most}"] if most else []
    rows.append("largest:")
    for i in sorted(computed, key=lambda i: -nodes[i].nbytes)[:FURTHEST]:
        origin = " ".join(filter(None, (line_name(lines[i], short=True) if i in lines else "", modules.get(i))))
        rows.append(f"  {readable(nodes[i].nbytes):>9}  {format_node(i, nodes[i]):.80}  {origin}".rstrip())
    return rows


def _kind(node: Node) -> str:
    """The kind of a primitive; inputs and no-ops are kinds of their own."""
    if node.op == "input" or node.op in _SAME_VALUE:
        return "input" if node.op == "input" else "view"
    return PRIMITIVES[node.op].kind


def _most(found: Counter[str]) -> str:
    """The most frequent names with their counts, and the number of the others."""
    named = ", ".join(f"{name} {count}" for name, count in found.most_common(_MOST))
    return f"{named}, and {len(found) - _MOST} more" if len(found) > _MOST else named


def counted(count: int, what: str) -> str:
    """A number of things: "1 stage", "2 stages"."""
    return f"{count} {what}{'s' * (count != 1)}"
