"""Graphs as text, both ways: a test shows a pass what it is given, and says what it gives."""

import ast
import re
from textwrap import dedent

from genesis.ir.dtypes import DTYPES
from genesis.ir.graph import Node, format_nodes
from genesis.lower.rewriting import Simplified
from genesis.ops.registry import PRIMITIVES

_NODE = re.compile(r"%(?P<index>\d+) = (?P<op>\w+)\((?P<arguments>.*)\) : (?P<dtype>\w+)(?P<shape>\[.*\])")


def parsed(text: str) -> Simplified:
    """The graph that `shown` writes so; blanks are free."""
    *lines, last = dedent(text).strip().splitlines()
    nodes: list[Node] = []
    for line in lines:
        found = _NODE.fullmatch(re.sub(" +", " ", line))
        assert found is not None and int(found["index"]) == len(nodes), f"want node %{len(nodes)}, not {line}"
        call = ast.parse(f"f({found['arguments'].replace('%', '_')})", mode="eval").body
        assert isinstance(call, ast.Call)
        inputs = tuple(int(argument.id[1:]) for argument in call.args if isinstance(argument, ast.Name))
        attrs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        op = found["op"]
        if op not in PRIMITIVES:  # a view goes by the name of the operation that made it
            op, attrs = "view", {**attrs, "label": op}
        nodes.append(Node(op, inputs, attrs, tuple(ast.literal_eval(found["shape"])), DTYPES[found["dtype"]]))
    outputs = [int(number) for number in re.findall(r"%(\d+)", last.removeprefix("return"))]
    return Simplified(nodes, outputs, list(range(len(nodes))))


def shown(graph: Simplified) -> str:
    """A line a node, then the outputs."""
    return f"{format_nodes(graph.nodes)}\nreturn {', '.join(f'%{o}' for o in graph.outputs)}"


def plain(text: str) -> str:
    """As `shown` writes it."""
    return re.sub(" +", " ", dedent(text).strip())


def cases(table: str) -> dict[str, tuple[str, str]]:
    """claim -> the graphs before and after, of a table of `# claim`, a graph and, where it changes, `becomes` and another."""
    found: dict[str, tuple[str, str]] = {}
    for case in table.split("\n# ")[1:]:
        claim, _, graphs = case.partition("\n---- ")[0].partition("\n")
        before, _, after = graphs.partition("\nbecomes\n")
        assert claim not in found, claim
        found[claim] = before, plain(after or before)
    return found
