"""A self-contained web page that draws recorded programs: nodes in layers, edges pointing down, few crossings, straight lines.

The layout is that of Sugiyama, Tagawa and Toda (1981): long edges are cut by unseen waypoints, one a layer; layers are ordered
by the mean place of their neighbours, in sweeps; then every layer is moved as near below its neighbours as its order and
widths allow, which is an isotonic regression.
"""

from __future__ import annotations

import json
import linecache
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from genesis.debug.graph import RecordedGraph
from genesis.debug.program import Flushed
from genesis.ir.annotations import Attributes, Key
from genesis.ir.graph import format_node
from genesis.lower.rewriting import base_of
from genesis.ops.registry import PRIMITIVES

CHARACTER = 7.6  # pixels, about


def page(programs: Sequence[Flushed], script: str, lowered: bool = False) -> str:
    """HTML that draws `programs`, as recorded or as `lowered`.

    Nodes carry shape, dtype, user line and kernel, kernels their source.

    >>> with genesis.debug.Recording() as recording:
    ...     value = genesis.arange(3).sum().item()
    >>> "sum" in page(recording.programs, "example.py")
    True
    """
    drawn = [_program(number, flushed, lowered) for number, flushed in enumerate(programs)]
    data = {"script": script, "programs": drawn}
    text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    return Path(__file__).with_name("page.html").read_text(encoding="utf-8").replace("/*DATA*/", text)


def _program(number: int, flushed: Flushed, lowered: bool) -> Attributes:
    program = flushed.program
    graph, kernel_of = program.graph, program.kernel_of
    if not lowered:
        graph, kernel_of = flushed.graph, {program.origins[i]: name for i, name in kernel_of.items()}
    drawn = [_node(graph, i, kernel_of.get(i)) for i in graph.indices if not _is_literal(graph, i)]
    shown = {node["id"] for node in drawn}
    edges = [(i, j) for j in shown for i in graph.nodes[j].inputs if i in shown]
    centres, corners = place({node["id"]: node["width"] for node in drawn}, sorted(edges))
    for node in drawn:
        node["x"], node["y"] = (round(c, 1) for c in centres[node["id"]])
    return {
        "title": f"program {number + 1} · {len(drawn)} nodes, ran {flushed.runs} times",
        "runs": flushed.runs, "nodes": drawn,
        "edges": [{"from": a, "to": b, "corners": [[round(x, 1), round(y, 1)] for x, y in points]}
                  for (a, b), points in corners.items()],
        "kernels": {k.name: {"source": k.source, **{part: ", ".join(getattr(k, part)) for part in ("ops", "reads", "writes")}}
                    for k in program.kernels},
        "instructions": repr(program), "text": repr(graph),
    }


def _is_literal(graph: RecordedGraph, index: int) -> bool:
    """Numbers, spread over a shape or not, are written into their readers instead of being drawn."""
    return index not in graph.outputs and graph.nodes[base_of(graph.nodes, index)].op in ("scalar", "constant")


def _node(graph: RecordedGraph, index: int, kernel: str | None) -> Attributes:
    node = graph.nodes[index]
    numbers = [_literal(graph, i) for i in node.inputs if _is_literal(graph, i)]
    label = " ".join([node.attrs.get("label", node.op), *numbers])
    kind = f"{node.dtype.name}{list(node.shape)}"
    where = graph.lines.get(index)
    primitive = PRIMITIVES.get(node.op)
    details = {"position": f"%{index}", "shape": str(list(node.shape)), "dtype": node.dtype.name}
    details |= {name: repr(value) for name, value in node.attrs.items() if name not in ("label", "weak", "dtype")}
    if where is not None:
        details["line"] = f"{where[0]}:{where[1]}"
    return {
        "id": index, "label": label, "type": kind, "line": graph.note(index), "kernel": kernel, "details": details,
        "kind": primitive.kind if primitive is not None else "other", "output": index in graph.outputs,
        "width": 30 + CHARACTER * max(map(len, (label, kind, graph.note(index)))), "text": format_node(index, node),
        "source": linecache.getline(*where).strip() if where is not None and os.path.exists(where[0]) else "",
    }


def _literal(graph: RecordedGraph, index: int) -> str:
    node = graph.nodes[base_of(graph.nodes, index)]
    return f"{node.attrs['value']:g}" if node.op == "constant" else "●"


# ---- layout ----


Edge = tuple[Key, Key]

GAP = 26.0  # between neighbours in a layer
STEP = 92.0  # from layer to layer
SWEEPS = 8
WAYPOINT_LIMIT = 20_000  # beyond this, long edges are drawn straight


class Placement(NamedTuple):
    """Centres of nodes, and the corners that each edge passes between its ends."""

    centres: dict[Key, tuple[float, float]]
    corners: dict[Edge, list[tuple[float, float]]]


def place(widths: Mapping[Key, float], edges: Sequence[Edge]) -> Placement:
    """Centres for nodes of the given widths, in topological order, under edges (from, to).

    >>> place({"a": 10, "b": 10}, [("a", "b")]).centres
    {'a': (0.0, 0.0), 'b': (0.0, 92.0)}
    """
    edges = list(dict.fromkeys(edges))
    layer = _layers(list(widths), edges)
    chains = _chains(edges, layer)
    width: dict[Key, float] = defaultdict(float, widths)
    above: dict[Key, list[Key]] = defaultdict(list)
    below: dict[Key, list[Key]] = defaultdict(list)
    rows: list[list[Key]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name, depth in layer.items():
        rows[depth].append(name)
    for chain in chains.values():
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    _order(rows, above, below)
    x = _abscissas(rows, above, below, width)
    points = {name: (x[name], layer[name] * STEP) for name in layer}
    corners = {edge: [points[p] for p in chain[1:-1]] for edge, chain in chains.items()}
    return Placement({name: points[name] for name in widths}, corners)


def _layers(names: Sequence[Key], edges: Sequence[Edge]) -> dict[Key, int]:
    """A layer below every predecessor's, but as late as its readers allow for what has no more inputs than readers."""
    before: dict[Key, list[Key]] = defaultdict(list)
    after: dict[Key, list[Key]] = defaultdict(list)
    for source, target in edges:
        before[target].append(source)
        after[source].append(target)
    layer: dict[Key, int] = {}
    for name in names:
        layer[name] = max((layer[p] + 1 for p in before[name]), default=0)
    for name in reversed(names):
        if after[name] and len(before[name]) <= len(after[name]):
            layer[name] = min(layer[s] for s in after[name]) - 1
    return layer


def _chains(edges: Sequence[Edge], layer: dict[Key, int]) -> dict[Edge, list[Key]]:
    """Each edge's ends with the waypoints between; the waypoints are given their layers."""
    long = sum(layer[t] - layer[s] - 1 for s, t in edges)
    chains: dict[Edge, list[Key]] = {}
    for source, target in edges:
        between = range(layer[source] + 1, layer[target]) if long <= WAYPOINT_LIMIT else ()
        waypoints = [("waypoint", source, target, depth) for depth in between]
        layer.update(zip(waypoints, between, strict=True))
        chains[source, target] = [source, *waypoints, target]
    return chains


def _order(rows: list[list[Key]], above: Mapping[Key, list[Key]], below: Mapping[Key, list[Key]]) -> None:
    """Sort every row by the mean place of its neighbours in the row before, down and up in turn."""
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        ordered = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for depth in ordered:
            place_of = {name: i for i, name in enumerate(rows[depth - 1 if down else depth + 1])}
            wanted = {name: _mean([place_of.get(n, 0) for n in neighbours[name]], i) for i, name in enumerate(rows[depth])}
            rows[depth].sort(key=wanted.__getitem__)


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _abscissas(
    rows: list[list[Key]], above: Mapping[Key, list[Key]], below: Mapping[Key, list[Key]], width: Mapping[Key, float]
) -> dict[Key, float]:
    x: dict[Key, float] = {}
    for row in rows:
        x.update(zip(row, _spaced([0.0] * len(row), [width[n] for n in row]), strict=True))
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            neighbours = above if down else below
            wanted = [_mean([x[n] for n in neighbours[name]], x[name]) for name in row]
            x.update(zip(row, _spaced(wanted, [width[n] for n in row]), strict=True))
    return x


def _spaced(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Centres as near to those wanted as keeps their order and a gap between."""
    offsets, offset = [], 0.0
    for i, width in enumerate(widths):
        offset += 0.0 if i == 0 else (widths[i - 1] + width) / 2 + GAP
        offsets.append(offset)
    own = np.array(offsets)
    found: list[float] = (isotonic_regression(wanted - own).x + own).tolist() if wanted else []
    return found
