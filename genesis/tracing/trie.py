"""The trie of earlier calls: below the path of the calls so far, a call's key leads to the nodes that it adds to the graph.

A repeated program follows the same path, and finds at its end the plans that ran there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.ir.dtypes import DType
from genesis.ir.graph import Graph, Node, Value
from genesis.runtime.system import machine_memory
from genesis.tracing.families import Build, Family, Form, Step, positions_of

Key = tuple[Any, ...]  # a call's operation, mode, positions of its tensors and static arguments
NODE_LIMIT = 20_000
BYTE_LIMIT = max(1 << 30, machine_memory() // 4)
STEP_LIMIT = 250_000  # maximal number of steps, 2 to 3 KB each with what families know
_NODE_WEIGHT = BYTE_LIMIT // NODE_LIMIT  # a weight is in bytes, and counts nodes as bytes: one comparison checks both limits
LOOP_NODES = 1_000  # a loop that reads nothing is flushed where it repeats, to repeat its program
LOOP_LIMIT = LOOP_NODES * _NODE_WEIGHT


class TrieNode:
    """One call in the trie: its nodes, the positions of its results, and the steps seen after it."""

    __slots__ = (
        "__weakref__", "children", "collectives", "elements", "family", "nodes", "numbers", "offsets", "plans", "result",
        "strides", "weight",
    )

    def __init__(self, added: Step, before: TrieNode | None = None) -> None:
        self.nodes = tuple(added.nodes)
        self.result = added.result
        self.family = added.family  # of the paths that end here, of whatever sizes
        self.numbers: Any = (None if before is None else before.numbers, added.numbers)  # those before, and of these nodes
        self.children: dict[Key, TrieNode] = {}
        self.plans: dict[Any, Any] = {}
        self.collectives: Sequence[int] | None = None  # positions of collectives on the path; computed lazily
        self.elements: tuple[str, ...] = ()  # arguments whose numbers must be in range of the result's dtype
        self.offsets: dict[Any, dict[Key, int]] | None = None  # of views after it (`tensor/varying_offsets.py`)
        self.strides: Any = None  # PyTorch's, of the results so far (`tracing/pytorch_strides.py`)
        self.weight = len(self.nodes) * _NODE_WEIGHT

    def grow(self, key: Key, nodes: list[Node], build: Build, grad: bool = True, form: Form | None = None) -> TrieNode:
        """A new step `key` after this one, whose path has `nodes`: `build(graph, key, *sources)` adds its own nodes and returns
        its results. Steps of one `form` may be filled in."""
        family = self.family
        found = None if form is None or family is None else family.filled(form, nodes)
        if found is None:
            found = _built(family, key, nodes, build, grad, () if form is None else form.sources)
            _built_steps[0] += 1
            if form is not None and family is not None:
                family.note(form, key, nodes, found, build, grad)
        self.children[key] = step = TrieNode(found, self)
        _known[0] += 1
        if _known[0] > STEP_LIMIT:
            fresh_roots()
        return step

    def grow_input(self, key: Key, nodes: list[Node]) -> TrieNode:
        """A new step (shape, dtype, strides, whether differentiable, whether a leaf's), which weighs what the input holds."""
        shape, dtype, strides, differentiable, is_leaf = key

        def build(graph: Graph, key: Key) -> Value:
            source = graph.add("input", (), shape, dtype, {"strides": strides}, differentiable)
            return variable_of(graph, source.index) if is_leaf else source

        step = self.grow(key, nodes, build, form=Form(key))
        step.weight += step.nodes[0].nbytes
        return step

    def grow_scalar(self, key: Key, nodes: list[Node], slot: int) -> TrieNode:
        """A new step ("scalar", dtype, class) after this one, for the number in a slot of the program's."""
        attrs = {"slot": slot, "weak": True}
        return self.grow(key, nodes, lambda graph, key: graph.add("scalar", (), (), key[1], attrs), form=Form(key))


def _built(family: Family | None, key: Key, nodes: list[Node], build: Build, grad: bool, sources: Any) -> Step:
    start = len(nodes)
    try:
        result = build(Graph(nodes, grad), key, *sources)
        added = nodes[start:]
    finally:
        del nodes[start:]
    result = positions_of(result)
    return Step(added, result) if family is None else family.following(added, result)


def variable_of(graph: Graph, source: int) -> Value:
    """A leaf's variable, at which its gradient ends; its value is at `source`."""
    node = graph.nodes[source]
    return graph.add("variable", (source,), node.shape, node.dtype, differentiable=True)


roots: dict[DType, TrieNode] = {}  # default dtype -> the root of its paths, and
families: dict[DType, Family] = {}  # the family of the empty path
_known = [0]  # the number of steps below the roots, and
_built_steps = [0]  # of those of which families may know, as no template filled them in


def new_root(dtype: DType) -> TrieNode:
    """The root for a default dtype that has none yet."""
    return roots.setdefault(dtype, TrieNode(Step((), None, families.setdefault(dtype, Family()))))


def fresh_roots() -> None:
    """Drop all paths, as where there are too many steps, and the families of as many: traces start from new roots (kernels stay
    cached)."""
    roots.clear()
    _known[0] = 0
    if _built_steps[0] > STEP_LIMIT:
        families.clear()
        _built_steps[0] = 0
