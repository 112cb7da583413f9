"""Complex arithmetic becomes arithmetic of real and imaginary parts.

Before: any graph. After: complex values are inputs, views, data movement (gathers, concatenations, host calls), and
`complex(x, y)` where parts become an output or are moved. All arithmetic is real and fuses as usual; kernels split complex
elements when they load them and join them when they store them.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.dtypes import float16, float32
from genesis.ir.graph import Node, Value
from genesis.lower.rewriting import Rewriting, Simplified
from genesis.ops.complex_primitives import complex_value, imag_value, real_value
from genesis.ops.complex_rules import RULES, Parts
from genesis.ops.registry import PRIMITIVES, cast
from genesis.ops.transient import FORWARDED

# Kinds of primitives that move elements without looking at them.
_MOVED = frozenset(("gather", "put", "cat", "host", "collective", "source"))


def split_complex(nodes: Sequence[Node], outputs: Sequence[int]) -> Simplified:
    """The graph with complex arithmetic split; a real graph is returned unchanged."""
    graph = Simplified([*nodes], [*outputs], [*range(len(nodes))])
    if not any([node.dtype.category == 3 for node in nodes]):
        return graph
    split = _Split(graph)
    for node in nodes:
        split.put(split.added(node))
    return split.finished([split.whole(o) for o in outputs])


class _Split(Rewriting):
    """The graph under construction. A complex value of the source has a node (in `new_index`), or `parts`, or both."""

    __slots__ = ("parts",)

    def __init__(self, source: Simplified) -> None:
        super().__init__(source)
        self.parts: dict[int, Parts] = {}

    def whole(self, index: int) -> int:
        """The node of source value `index` as one value."""
        if self.new_index[index] < 0:
            self.new_index[index] = complex_value(*self.parts[index]).index
            self.came_from(index)
        return self.new_index[index]

    def split(self, index: int) -> Value | Parts:
        """Source value `index`, or its parts if it is complex."""
        if not self.source.nodes[index].dtype.is_complex:
            return self.value(self.new_index[index])
        if index not in self.parts:
            z = self.value(self.new_index[index])
            self.parts[index] = Parts(real_value(z), imag_value(z))
        return self.parts[index]

    def added(self, node: Node) -> int:
        """The node of the next source node's value; -1 if it has only parts."""
        here = len(self.new_index)
        if not (node.dtype.is_complex or any([self.source.nodes[i].dtype.is_complex for i in node.inputs])):
            return self.append(self.moved(node))
        if node.op in FORWARDED:
            same = node.inputs[FORWARDED[node.op]]
            if same in self.parts:
                self.parts[here] = self.parts[same]
            return self.new_index[same]
        kind = PRIMITIVES[node.op].kind
        if node.op in ("constant", "scalar"):
            self.parts[here] = self._number(node)
            return -1
        if node.op == "view" and self.new_index[node.inputs[0]] < 0:
            self.parts[here] = Parts(*[
                self.add("view", (part,), node.shape, part.dtype, node.attrs) for part in self.parts[node.inputs[0]]])
            return -1
        if node.op == "view" or (kind in _MOVED and node.op not in RULES):
            return self.append(node.renumbered(tuple([self.whole(i) for i in node.inputs])))
        if node.op not in RULES:
            raise TypeError(f"{node.op}: takes real numbers, got complex ones")
        result = self._computed(node, [self.split(i) for i in node.inputs])
        if isinstance(result, Parts):
            self.parts[here] = result
            return -1
        return result.index

    def _computed(self, node: Node, given: list[Value | Parts]) -> Value | Parts:
        """A rule's result. Parts of float16 are computed in float32 and rounded at the end."""
        if not any([isinstance(z, Parts) and z.x.dtype is float16 for z in given]):
            return RULES[node.op](node, *given)
        wide = [Parts(*[cast(part, float32) for part in z]) if isinstance(z, Parts) else z for z in given]
        result = RULES[node.op](Node(node.op, node.inputs, node.attrs, node.shape, node.dtype.compute), *wide)
        if isinstance(result, Parts):
            return Parts(*[cast(part, node.dtype.real) for part in result])
        return cast(result, node.dtype)

    def _number(self, node: Node) -> Parts:
        """The parts of a literal, or of a Python number, which is real."""
        real = node.dtype.real
        if node.op == "scalar":
            return Parts(self.add("scalar", (), (), real, {"slot": node.attrs["slot"]}), self.constant(0.0, real))
        number = complex(node.attrs["value"])
        return Parts(self.constant(number.real, real), self.constant(number.imag, real))
