"""A matrix that many products of few rows share is packed once, before a loop over time too; values are NumPy's, or the other
graph's."""

import numpy as np
import pytest

import genesis
from genesis.ir import Graph
from genesis.ir.dtypes import float32
from genesis.ir.graph import format_nodes
from genesis.lower.rewriting import Simplified
from genesis.lower.share_packing import share_packing
from genesis.ops.contraction import swapped
from genesis.ops.reference import evaluate
from genesis.ops.registry import OPERATIONS
from genesis.ops.time_loop import time_loop
from tests.lower.text import parsed, shown


def steps(count: int, rows: int = 20, columns: int = 32) -> str:
    products = "\n".join(f"%{2 + n} = matmul(%0, %1) : float32[{rows}, {columns}]" for n in range(count))
    results = ", ".join(f"%{2 + n}" for n in range(count))
    return f"%0 = input() : float32[{rows}, 48]\n%1 = input() : float32[48, {columns}]\n{products}\nreturn {results}"


def test_operand_of_many_products_is_packed_once() -> None:
    assert shown(share_packing(parsed(steps(4)), 64)) == """
%0 = input() : float32[20, 48]
%1 = input() : float32[48, 32]
%2 = reshape(%1, shape=(48, 2, 16), strides=(32, 16, 1), offset=0) : float32[48, 2, 16]
%3 = permute(%2, shape=(2, 48, 16), strides=(16, 32, 1), offset=0) : float32[2, 48, 16]
%4 = clone(%3, materialize=True, reader='product') : float32[2, 48, 16]
%5 = permute(%4, shape=(48, 2, 16), strides=(16, 768, 1), offset=0) : float32[48, 2, 16]
%6 = reshape(%5, shape=(48, 32), strides=(32, 1), offset=0) : float32[48, 32]
%7 = matmul(%0, %6) : float32[20, 32]
%8 = matmul(%0, %6) : float32[20, 32]
%9 = matmul(%0, %6) : float32[20, 32]
%10 = matmul(%0, %6) : float32[20, 32]
return %7, %8, %9, %10
""".strip()


def test_few_products_many_rows_and_parts_of_strips_are_left() -> None:
    for text in (steps(3), steps(4, rows=96), steps(4, columns=40)):
        graph = parsed(text)
        assert share_packing(graph, 64) is graph
    graph = parsed(steps(4))
    assert share_packing(graph, 0) is graph


def test_recurrent_products_agree_with_numpy() -> None:
    random = np.random.default_rng(0)
    x, w, v = (random.normal(size=size) for size in ((20, 48), (48, 64), (64, 48)))

    @genesis.compile
    def recurrent(x: genesis.Tensor, w: genesis.Tensor, v: genesis.Tensor) -> genesis.Tensor:
        for _ in range(5):
            x = ((x @ w).tanh() @ v) * 0.1
        return x

    expected = x
    for _ in range(5):
        expected = (np.tanh(expected @ w) @ v) * 0.1
    np.testing.assert_allclose(recurrent(*map(genesis.tensor, (x, w, v))).numpy(), expected, rtol=1e-9)


def loop(rows: int, turns: int, again: bool = False) -> Simplified:
    """h = h @ w + x over three steps, where w is transposed so many times; with `again`, the step also adds a row of w."""

    def step(constants, carries, given):  # type: ignore[no-untyped-def]
        [w], [h], [x] = constants, carries, given
        turned = w
        for _ in range(turns):
            turned = swapped(turned)
        y = OPERATIONS["matmul"](h, turned) + x
        return [y + w if again else y], []

    graph = Graph()
    w, h, x = [graph.add("input", (), shape, float32) for shape in ((32, 32), (rows, 32), (3, rows, 32))]
    [last], _ = time_loop(step, [w], [h], [x])
    return Simplified(graph.nodes, [last.index], [*range(len(graph))])


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_weights_of_a_loop_are_packed_once(turns: int) -> None:
    """Also those that the step transposes, and those that a derivative transposes back."""
    before = loop(20, turns)
    after = share_packing(before, 64)
    assert "clone" in format_nodes(after.nodes) and "clone" not in format_nodes(before.nodes)
    random = np.random.default_rng(0)
    arrays = {k: random.normal(size=before.nodes[k].shape).astype(np.float32) * 0.1 for k in range(3)}
    here, there = (evaluate(graph.nodes, graph.outputs, arrays)[0] for graph in (before, after))
    np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-6)


def test_many_rows_other_readers_and_unknown_strips_leave_a_loop_as_it_is() -> None:
    for graph, strip in ((loop(96, 0), 64), (loop(32, 0, again=True), 64), (loop(20, 0), 0), (loop(20, 0), 96)):
        assert format_nodes(share_packing(graph, strip).nodes) == format_nodes(graph.nodes)
