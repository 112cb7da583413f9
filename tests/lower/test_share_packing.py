"""What a loop over time multiplies by in each step is packed once, before the loop; values are those of the other loop."""

import numpy as np
import pytest

from genesis.ir import Graph
from genesis.ir.dtypes import float32
from genesis.ir.graph import format_nodes
from genesis.lower.rewriting import Simplified
from genesis.lower.share_packing import share_packing
from genesis.ops.reference import evaluate
from genesis.ops.registry import OPERATIONS
from genesis.ops.time_loop import time_loop


def loop(rows: int, transposed: bool, again: bool = False) -> Simplified:
    """h = h @ w (or h @ w.T) + x, over three steps; with `again`, the step also adds a row of w."""

    def step(constants, carries, given):  # type: ignore[no-untyped-def]
        [w], [h], [x] = constants, carries, given
        y = (OPERATIONS["linear"](h, w) if transposed else OPERATIONS["matmul"](h, w)) + x
        return [y + w if again else y], []

    graph = Graph()
    w, h, x = [graph.add("input", (), shape, float32) for shape in ((32, 32), (rows, 32), (3, rows, 32))]
    [last], _ = time_loop(step, [w], [h], [x])
    return Simplified(graph.nodes, [last.index], [*range(len(graph))])


@pytest.mark.parametrize("transposed", [False, True])
def test_weights_of_a_loop_are_packed_once(transposed: bool) -> None:
    before = loop(20, transposed)
    after = share_packing(before, 64)
    assert "clone" in format_nodes(after.nodes) and "clone" not in format_nodes(before.nodes)
    random = np.random.default_rng(0)
    arrays = {k: random.normal(size=before.nodes[k].shape).astype(np.float32) * 0.1 for k in range(3)}
    here, there = (evaluate(graph.nodes, graph.outputs, arrays)[0] for graph in (before, after))
    np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-6)


def test_many_rows_other_readers_and_unknown_strips_leave_a_loop_as_it_is() -> None:
    for graph, strip in ((loop(96, False), 64), (loop(32, False, again=True), 64), (loop(20, False), 0), (loop(20, False), 96)):
        assert format_nodes(share_packing(graph, strip).nodes) == format_nodes(graph.nodes)
