"""A self-contained web page that explores the programs that ran: folded by module, unfolded to operations and kernels.

This file collects the page's data; `explorer/` has the page. It draws lowered graphs, so values have the numbers used by
kernels, instructions and `genesis.debug.program`, and stages their line numbers there.
"""

from __future__ import annotations

import html
import json
import linecache
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from genesis.debug.graph import RecordedGraph
from genesis.debug.program import Flushed, LoweredProgram, Recording, TimedCall
from genesis.ir.annotations import Attributes
from genesis.ir.graph import Node, format_node
from genesis.lower.build import KernelCall
from genesis.lower.listing import listing
from genesis.lower.rewriting import base_of
from genesis.lower.stages import Product
from genesis.ops.registry import PRIMITIVES

EXPLORER = Path(__file__).with_name("explorer")


def page(programs: Sequence[Flushed], script: str) -> str:
    """HTML that explores `programs`; it opens on the slowest.

    Nodes carry their module, user line, shape, dtype, time and kernel, and each launch its code.

    >>> with genesis.debug.Recording() as recording:
    ...     value = genesis.arange(3).sum().item()
    >>> "sum" in page(recording.programs, "example.py")
    True
    """
    return _page(script, [_program(k, f.program.graph, f.program, f.seconds, f.runs) for k, f in enumerate(programs, 1)])


def frame(programs: Sequence[Flushed], graph: RecordedGraph | None = None, program: LoweredProgram | None = None) -> str:
    """The page in a frame, for notebooks: of programs that ran, of one that did not run, or of a graph."""
    if graph is None:
        text = page(programs, "")
    else:
        text = _page("", [_program(1, graph, program, [0.0] * (program.launches[-1].stage + 1) if program else [], 0)])
    return f'<iframe style="width: 100%; height: 600px; border: 0" srcdoc="{html.escape(text)}"></iframe>'


def _page(script: str, programs: Sequence[Attributes]) -> str:
    data = {"script": script, "programs": programs}
    parts = {name: (EXPLORER / name).read_text(encoding="utf-8") for name in ("style.css", "fold.js", "layout.js", "draw.js")}
    parts["data"] = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    text = (EXPLORER / "page.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"/*{name}*/", part)
    return text


def _program(
    number: int, graph: RecordedGraph, program: LoweredProgram | None, seconds: Sequence[float], runs: int
) -> Attributes:
    scopes: dict[tuple[str, ...], int] = {}
    lines: dict[tuple[str, str], int] = {}
    launches = program.launches if program else []
    launch_of = {i: k for k, launch in enumerate(launches) for i in launch.nodes}
    times = _times(graph, launches, seconds)
    nodes = []
    for i in graph.indices:
        if not _is_literal(graph, i):
            node = _node(graph, i)
            node["launch"] = launch_of.get(i, -1)
            node["ms"] = round(1e3 * times.get(i, 0.0), 9)
            node["scope"] = scopes.setdefault(_scope(graph, i), len(scopes))
            node["line"] = lines.setdefault((graph.note(i), _source(graph, i)), len(lines))
            nodes.append(node)
    return {
        "number": number, "runs": runs, "ms": 1e3 * sum(seconds),
        "nodes": nodes, "scopes": [*scopes], "lines": [*lines],
        "launches": [_launch(graph, launch, seconds) for launch in launches],
        "instructions": (program or graph).text(detail=True).splitlines(),
    }


def _scope(graph: RecordedGraph, index: int) -> tuple[str, ...]:
    """A node's scope: its phase, then its module, or its line outside of modules."""
    module = graph.modules.get(index)
    return (*filter(None, (graph.phases.get(index), *(module.split(".") if module else [graph.note(index)]))),)


def _times(graph: RecordedGraph, launches: Sequence[TimedCall], seconds: Sequence[float]) -> dict[int, float]:
    """Node -> its seconds: those of its launch, shared by the work of the launch's nodes."""
    times: dict[int, float] = {}
    for launch in launches:
        works = {i: _work(graph.nodes, i) for i in launch.nodes if not _is_literal(graph, i)}
        whole = sum(works.values()) or 1
        for i, work in works.items():
            times[i] = times.get(i, 0.0) + seconds[launch.stage] * launch.share * work / whole
    return times


def _work(nodes: Sequence[Node], index: int) -> int:
    node = nodes[index]
    return max(1, PRIMITIVES[node.op].cost) * max(node.numel, *(nodes[i].numel for i in node.inputs), 1)


def _launch(graph: RecordedGraph, launch: TimedCall, seconds: Sequence[float]) -> Attributes:
    stage, call, share = launch
    nodes = graph.nodes
    touched = [nodes[value].nbytes for value in dict.fromkeys(chain(call.reads, call.writes))]
    source = listing(call, graph.note) if isinstance(call, KernelCall) else format_node(call.node, nodes[call.node])
    return {
        "stage": stage, "kernel": launch.kernel, "source": source, "ms": round(1e3 * seconds[stage] * share, 6),
        "bytes": sum(touched), "flops": call.flops if isinstance(call, Product) else 0,
        "reads": call.reads, "writes": call.writes,
        "title": " ".join(dict.fromkeys(nodes[i].op for i in launch.nodes if not _is_literal(graph, i))),
    }


def _is_literal(graph: RecordedGraph, index: int) -> bool:
    """Whether a node is a constant, expanded or not: it is written into its readers instead of drawn."""
    return index not in graph.outputs and graph.nodes[base_of(graph.nodes, index)].op in ("scalar", "constant")


def _node(graph: RecordedGraph, index: int) -> Attributes:
    node = graph.nodes[index]
    numbers = [_literal(graph, i) for i in node.inputs if _is_literal(graph, i)]
    primitive = PRIMITIVES.get(node.op)
    return {
        "id": index, "label": " ".join([node.attrs.get("label", node.op), *numbers]), "text": format_node(index, node),
        "type": f"{node.dtype.name}[{', '.join(map(str, node.shape))}]", "bytes": node.nbytes,
        "inputs": [i for i in dict.fromkeys(node.inputs) if not _is_literal(graph, i)],
        "kind": primitive.kind if primitive is not None else "other", "output": index in graph.outputs,
    }


def _source(graph: RecordedGraph, index: int) -> str:
    where = graph.lines.get(index)
    return linecache.getline(*where).strip() if where is not None and os.path.exists(where[0]) else ""


def _literal(graph: RecordedGraph, index: int) -> str:
    node = graph.nodes[base_of(graph.nodes, index)]
    return f"{node.attrs['value']:g}" if node.op == "constant" else "●"


# Notebook representations.
setattr(RecordedGraph, "_repr_html_", lambda self: frame((), self))  # noqa: B010 - the page is above what it draws
setattr(LoweredProgram, "_repr_html_", lambda self: frame((), self.graph, self))  # noqa: B010
setattr(Recording, "_repr_html_", lambda self: frame(self.programs))  # noqa: B010
