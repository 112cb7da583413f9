"""The trie of earlier calls: below the path of the calls so far, a call's key leads to the nodes that it adds to the graph.

A repeated program follows the same path, and finds at its end the plans that ran there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.ir.dtypes import DType
from genesis.ir.graph import Graph, Node, Value
from genesis.runtime.system import machine_memory

Key = tuple[Any, ...]  # a call's operation, mode, positions of its tensors and static arguments
NODE_LIMIT = 20_000
BYTE_LIMIT = max(1 << 30, machine_memory() // 4)
STEP_LIMIT = 250_000  # maximal number of steps, about 1 KB each
_NODE_WEIGHT = BYTE_LIMIT // NODE_LIMIT  # a weight is in bytes, and counts nodes as bytes: one comparison checks both limits
LOOP_NODES = 1_000  # a loop that reads nothing is flushed where it repeats, to repeat its program
LOOP_LIMIT = LOOP_NODES * _NODE_WEIGHT


class TrieNode:
    """One call in the trie: its nodes, the positions of its results, and the steps seen after it."""

    __slots__ = (
        "__weakref__", "children", "collectives", "elements", "nodes", "offsets", "plans", "result", "strides",
        "weight",
    )

    def __init__(self, nodes: Sequence[Node], result: Any) -> None:
        self.nodes = tuple(nodes)
        self.result = result
        self.children: dict[Key, TrieNode] = {}
        self.plans: dict[Any, Any] = {}
        self.collectives: Sequence[int] | None = None  # positions of collectives on the path; computed lazily
        self.elements: tuple[str, ...] = ()  # arguments whose numbers must be in range of the result's dtype
        self.offsets: dict[Any, dict[Key, int]] | None = None  # of views after it (`tensor/varying_offsets.py`)
        self.strides: Any = None  # PyTorch's, of the results so far (`functions/memory_order.py`)
        self.weight = len(self.nodes) * _NODE_WEIGHT

    def grow(self, key: Key, nodes: list[Node], build: Callable[[Graph], Any], grad: bool = True) -> TrieNode:
        """A new step `key` after this one, whose path has `nodes`: `build(graph)` adds its own nodes and returns its
        results."""
        start = len(nodes)
        try:
            result = build(Graph(nodes, grad))
            step = TrieNode(nodes[start:], _positions(result))
        finally:
            del nodes[start:]
        self.children[key] = step
        _known[0] += 1
        if _known[0] > STEP_LIMIT:
            fresh_roots()
        return step

    def grow_input(self, key: Key, nodes: list[Node]) -> TrieNode:
        """A new step (shape, dtype, strides, whether differentiable, whether a leaf's), which weighs what the input holds."""
        shape, dtype, strides, differentiable, is_leaf = key

        def build(graph: Graph) -> Value:
            source = graph.add("input", (), shape, dtype, {"strides": strides}, differentiable)
            return variable_of(graph, source.index) if is_leaf else source

        step = self.grow(key, nodes, build)
        step.weight += step.nodes[0].nbytes
        return step

    def grow_scalar(self, key: Key, nodes: list[Node], slot: int) -> TrieNode:
        """A new step ("scalar", dtype, class) after this one, for the number in a slot of the program's."""
        return self.grow(key, nodes, lambda graph: graph.add("scalar", (), (), key[1], {"slot": slot, "weak": True}))


def variable_of(graph: Graph, source: int) -> Value:
    """A leaf's variable, at which its gradient ends; its value is at `source`."""
    node = graph.nodes[source]
    return graph.add("variable", (source,), node.shape, node.dtype, differentiable=True)


roots: dict[DType, TrieNode] = {}  # default dtype -> the root of its paths
_known = [0]  # the number of steps below them


def new_root(dtype: DType) -> TrieNode:
    """The root for a default dtype that has none yet."""
    return roots.setdefault(dtype, TrieNode((), None))


def fresh_roots() -> None:
    """Drop all paths, as where there are too many steps: traces start from new roots (kernels stay cached)."""
    roots.clear()
    _known[0] = 0


def _positions(result: Any) -> Any:
    """Values as positions, in the tuple (or named tuple) they came in."""
    if isinstance(result, Value):
        return result.index
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(_positions, result))
    if isinstance(result, tuple | list):
        return type(result)(map(_positions, result))
    return result
