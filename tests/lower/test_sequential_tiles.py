"""Tiles in turn: which chains become loops that the whole machine runs, into what tiles, and what memory that takes."""

import numpy as np
import pytest

import genesis
from genesis.codegen.cuda.loops import tile_calls
from genesis.ir.dtypes import float32
from genesis.ir.graph import Graph
from genesis.ir.shapes import numel
from genesis.lower import lower
from genesis.lower.build import KernelCall
from genesis.lower.stages import Loop, Product
from genesis.lower.target import SequentialTiles, Target
from genesis.ops import OPERATIONS
from genesis.ops.derive import derive
from tests.codegen.cuda.schedules import program_of

SEQUENTIAL_TILES = SequentialTiles(nbytes=32 << 20, filling=1 << 28, calls=384)


def lowered(graph, *values, turns=SEQUENTIAL_TILES):
    """The program that computes values of a graph where tiles come in turn."""
    return lower(graph.nodes, [value.index for value in values], Target(8, turns, unroll=False, strided=True))


def loops_of(program):
    return [call for stage in program.schedule.stages for call in stage if isinstance(call, Loop)]


def attention(*shape, turns=SEQUENTIAL_TILES, **settings):
    """The program of attention, forward and backward, which is not run."""
    graph = Graph()
    inputs = [graph.add("input", (), shape, float32) for _ in range(4)]
    leaves = [graph.add("variable", (x,), shape, float32, differentiable=True) for x in inputs[:3]]
    y = OPERATIONS["scaled_dot_product_attention"](*leaves, **settings)
    gradients, _, _ = derive(graph.nodes[:], {y.index: inputs[3]}, graph, graph.value)
    return lowered(graph, y, *(gradients[leaf.index] for leaf in leaves), turns=turns)


@pytest.mark.parametrize(("shape", "settings"), [
    ((1, 1, 8191, 64), {}), ((2, 2, 4096, 64), {"is_causal": True}), ((8, 12, 1024, 64), {"dropout_p": 0.1})])
def test_attention_of_long_sequences_takes_the_memory_of_some_tiles(shape, settings):
    program = attention(*shape, **settings)
    (loop,) = loops_of(program)
    scores = 4 * numel(shape) // shape[-1] * shape[-2]
    gradients = 4 * 4 * numel(shape)  # and what else is as large as an operand
    filled = 5 * 4 * SEQUENTIAL_TILES.filling // shape[-1]  # scores that products take to fill the machine
    assert program.schedule.arena_bytes < SEQUENTIAL_TILES.nbytes + filled + gradients < scores * 2
    assert max(len(loop.private), loop.tiles) > 4


def test_a_longer_sequence_takes_no_more_memory_until_launches_would_be_many():
    short, long = (attention(1, 1, n, 256).schedule.arena_bytes for n in (4096, 8192))
    assert long < short * 1.2


def test_launches_are_bounded():
    program = attention(2, 16, 16384, 64)
    (loop,) = loops_of(program)
    assert SEQUENTIAL_TILES.calls / 2 <= loop.tiles * len(loop.calls) <= 2 * SEQUENTIAL_TILES.calls
    assert program.schedule.arena_bytes < 0.05 * sum(program.nodes[value].nbytes for value in loop.private)


@pytest.mark.parametrize("shape", [(4, 8, 128, 64), (1, 1, 1024, 64)])
def test_what_fits_stays_as_it_is(shape):
    assert not loops_of(attention(*shape))


def test_products_of_a_tile_fill_the_machine():
    program = attention(4, 8, 2048, 32)
    (loop,) = loops_of(program)
    for call in loop.calls:
        if isinstance(call, Product):
            assert numel((*call.batch, *call.extents)) * loop.tile >= SEQUENTIAL_TILES.filling * loop.points


SIZES = [(1, 1, 7, 4), (1, 3, 7, 4), (2, 3, 6, 4), (3, 2, 5, 2)]


@pytest.mark.parametrize("nbytes", [300, 1000, 3000])
@pytest.mark.parametrize("shape", SIZES)
def test_tiles_share_out_all_that_there_is_to_compute(shape, nbytes):
    program = attention(*shape, turns=SequentialTiles(nbytes, 1 << 40, 1 << 20))
    for loop in loops_of(program):
        assert loop.tiles > 1 and len(list(loop.spans())) == loop.tiles
        points = [point for first, end in loop.spans() for point in range(first, end)]
        assert points == [*range(loop.points)] and max(end - first for first, end in loop.spans()) == loop.tile
        calls = [call for call, _ in tile_calls(program.nodes, loop)]
        for number, call in enumerate(loop.calls):
            assert sum(map(work, calls[number :: len(loop.calls)])) == work(call)


def work(call):
    """The points of a kernel; the multiplications of a product."""
    return numel(call.extents) if isinstance(call, KernelCall) else numel((*call.batch, *call.extents))


def test_terms_that_are_promised_to_be_zeros_are_left_out():
    """Of a tile of rows: the keys behind its last query."""
    program = attention(1, 2, 8, 4, turns=SequentialTiles(300, 1 << 40, 1 << 20), is_causal=True)
    (loop,) = loops_of(program)
    calls = [call for call, _ in tile_calls(program.nodes, loop)]
    counted = {"k<=m": 0, "n<=m": 0, "m<=k": 0, "n<=k": 0, "": 0}
    for number, call in enumerate(loop.calls):
        if isinstance(call, Product):
            share = sum(map(work, calls[number :: len(loop.calls)])) / work(call)
            assert (share < 1) == (call.only in ("k<=m", "m<=k", "n<=k")), call.only
            counted[call.only] += 1
    assert counted["k<=m"] == 2 and counted["m<=k"] + counted["n<=k"] == 2


def test_calls_that_have_nothing_to_do_with_each_other_share_no_loop():
    graph, few = Graph(), SequentialTiles(500, 1 << 40, 1 << 20)
    x, w, v = (graph.add("input", (), shape, float32) for shape in ((64, 16), (16, 16), (16, 16)))
    matmul, exp, neg = (OPERATIONS[name] for name in ("matmul", "exp", "neg"))
    first, second, last = matmul(x, w), matmul(x, v), neg(x)
    assert not loops_of(lowered(graph, first, second, last, turns=few))
    y = matmul(exp(matmul(second, w)), w)
    (loop,) = loops_of(lowered(graph, first, second, y, turns=few))
    assert [type(call) for call in loop.calls] == [Product, Product, KernelCall, Product]


def test_a_backward_after_a_look_at_the_loss_is_one_loop_too():
    heads, tokens, width = 8, 2048, 64
    random = np.random.default_rng(0)
    q, k, v = (genesis.tensor(x.astype(np.float32), requires_grad=True) for x in random.normal(size=(3, heads, tokens, width)))
    loss = genesis.nn.functional.scaled_dot_product_attention(q, k, v).square().sum()
    loss.item()
    loss.backward()
    _, program = program_of(q.grad, k.grad, v.grad)
    (loop,) = loops_of(program)
    assert sum(isinstance(call, Product) for call in loop.calls) == 5, "scores again, and gradients: weights', v's, q's, k's"
    assert program.schedule.arena_bytes < 4 * heads * tokens * tokens * 0.75
