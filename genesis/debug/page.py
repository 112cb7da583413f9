"""A self-contained web page that draws recorded programs."""

from __future__ import annotations

import json
import linecache
import os
from collections.abc import Sequence
from pathlib import Path

from genesis.debug.graph import RecordedGraph
from genesis.debug.layout import place
from genesis.debug.recording import Flushed
from genesis.ir.annotations import Attributes
from genesis.ir.graph import Node
from genesis.ir.printer import format_node
from genesis.ops.registry import PRIMITIVES

__all__ = ["page"]

CHARACTER = 7.6  # pixels, about


def page(programs: Sequence[Flushed], script: str, lowered: bool = False) -> str:
    """HTML that draws `programs`, as recorded or as `lowered`.

    Nodes carry shape, dtype, user line and kernel, kernels their source.

    >>> import genesis
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
        "runs": flushed.runs,
        "nodes": drawn,
        "edges": [
            {"from": a, "to": b, "corners": [[round(x, 1), round(y, 1)] for x, y in points]}
            for (a, b), points in corners.items()
        ],
        "kernels": {
            k.name: {
                "source": k.source, "ops": ", ".join(k.ops), "reads": ", ".join(k.reads), "writes": ", ".join(k.writes),
            }
            for k in program.kernels
        },
        "instructions": repr(program),
        "text": repr(graph),
    }


def _is_literal(graph: RecordedGraph, index: int) -> bool:
    """Numbers, spread over a shape or not, are written into their readers instead of being drawn."""
    return index not in graph.outputs and _number(graph, index).op in ("scalar", "constant")


def _number(graph: RecordedGraph, index: int) -> Node:
    """The node that a chain of views starts from."""
    node = graph.nodes[index]
    while node.op == "view":
        node = graph.nodes[node.inputs[0]]
    return node


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
        "id": index,
        "label": label,
        "type": kind,
        "line": graph.note(index),
        "kind": primitive.kind if primitive is not None else "other",
        "kernel": kernel,
        "output": index in graph.outputs,
        "width": 30 + CHARACTER * max(map(len, (label, kind, graph.note(index)))),
        "details": details,
        "text": format_node(index, node),
        "source": linecache.getline(*where).strip() if where is not None and os.path.exists(where[0]) else "",
    }


def _literal(graph: RecordedGraph, index: int) -> str:
    node = _number(graph, index)
    return f"{node.attrs['value']:g}" if node.op == "constant" else "●"
