"""Writes in place: the operands of writes into a large input (`scatter`, `put`) are computed before the first write.

Before: a legal graph. After: the operands of such writes that may fail or that read the input are values in memory. So from the
first write on nothing fails and nothing else reads the input, and `donations` may put the result in its memory: 512 rows of a
table of 25 MB are then written instead of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from genesis.ir.graph import Node
from genesis.lower.build import KernelCall
from genesis.lower.group import WRITES
from genesis.lower.rewriting import Rewriting, Simplified, base_of
from genesis.lower.stages import Call, Stage, may_fail
from genesis.ops import indexing
from genesis.ops.registry import PRIMITIVES


def prepare_writes(graph: Simplified) -> Simplified:
    """The graph with operands of writes into inputs in memory, where they take less traffic than a copy of the input."""
    nodes, materialized = graph.nodes, set[int]()
    for output in graph.outputs:
        base, writes = _written_into(nodes, output)
        if nodes[base].op != "input" or not writes or nodes[base].nbytes < indexing.LARGE:
            continue
        operands = {i for write in writes for i in nodes[write].inputs[1:]}
        found = {min(_views(nodes, i), key=lambda i: nodes[i].numel) for i in operands if _waits(nodes, i, base)}
        # Of a chain of views the smallest: an index is not copied for each column.
        if 2 * sum([nodes[i].nbytes for i in found]) <= nodes[base].nbytes:
            materialized |= found
    return _with_copies(graph, materialized) if materialized else graph


def _written_into(nodes: Sequence[Node], output: int) -> tuple[int, list[int]]:
    """The base of a chain of writes that ends in `output`, and the writes."""
    at, writes = base_of(nodes, output), []
    while PRIMITIVES[nodes[at].op].kind in WRITES:
        writes.append(at)
        at = base_of(nodes, nodes[at].inputs[0])
    return at, writes


def _waits(nodes: Sequence[Node], index: int, base: int) -> bool:
    """Whether a value, if inlined into its reader, may fail or read `base`."""
    stack, seen = [index], {index}
    while stack:
        at = stack.pop()
        if at == base or PRIMITIVES[nodes[at].op].fault is not None:
            return True
        if PRIMITIVES[nodes[at].op].kind in ("elementwise", "gather", "view"):
            stack += [i for i in nodes[at].inputs if i not in seen]
            seen.update(nodes[at].inputs)
    return False


def _views(nodes: Sequence[Node], index: int) -> Iterator[int]:
    """A value, and the values that it is a view of."""
    yield index
    while nodes[index].op == "view":
        index = nodes[index].inputs[0]
        yield index


def _with_copies(graph: Simplified, materialized: set[int]) -> Simplified:
    """The graph with the values `materialized`, or copies of them for the writes, in memory, each by a kernel of its own."""
    result, copies = Rewriting(graph), dict[int, int]()

    def ready(index: int) -> int:
        """The node that a write reads instead of `index`."""
        node = graph.nodes[index]
        if index in copies:
            return copies[index]
        if index in materialized:
            clone = Node("clone", (result.new_index[index],), {"materialize": True}, node.shape, node.dtype)
            copies[index] = result.append(clone)
            return copies[index]
        if node.op == "view" and not materialized.isdisjoint(_views(graph.nodes, index)):
            return result.append(node.renumbered((ready(node.inputs[0]),)))
        return result.new_index[index]

    for index, node in enumerate(graph.nodes):
        kind, moved = PRIMITIVES[node.op].kind, result.moved(node)
        if index in materialized and kind in ("elementwise", "gather"):
            attrs = {**node.attrs, "materialize": True}
            copies[index] = result.append(Node(node.op, moved.inputs, attrs, node.shape, node.dtype))
            result.put(copies[index])
        elif kind in WRITES:
            operands = [ready(i) for i in node.inputs[1:]]
            result.put(result.append(node.renumbered((moved.inputs[0], *operands))))
        else:
            result.copy(node)
    return result.finished()


def check_early(nodes: Sequence[Node], stages: Sequence[Stage]) -> list[Stage]:
    """The stages, with checks of writes' operands as early as possible: no write waits for another's checks."""
    result: list[Stage] = []
    for stage in stages:
        if all(_only_checks(nodes, call) for call in stage):
            read = {value for call in stage for value in call.reads}
            before = [n for n, other in enumerate(result) if any(not read.isdisjoint(call.writes) for call in other)]
            result.insert(max(before, default=-1) + 1, stage)
        else:
            result.append(stage)
    return result


def _only_checks(nodes: Sequence[Node], call: Call) -> bool:
    are_copies = all(nodes[value].attrs.get("materialize") for value in call.writes)
    return are_copies and isinstance(call, KernelCall) and may_fail(call)
