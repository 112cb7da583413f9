"""Panels: which calls share a loop, what it keeps out of memory, and that the values are those of NumPy."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.plan import plan_for
from genesis.lower.stages import Loop, Product
from genesis.tracing.state import current_trace

TILES = importlib.import_module("genesis.lower.fuse_tiles")


@pytest.fixture(autouse=True)
def _eager_to_loop(monkeypatch):
    """Small programs become loops of several tiles."""
    for name, value in {"LEAST_SAVED": 1, "LEAST_ROWS": 4, "PACKING": 0, "CACHE": 4096}.items():
        monkeypatch.setattr(TILES, name, value)


def loops() -> list[Loop]:
    stages = plan_for(current_trace()).lowered.schedule.stages
    return [call for stage in stages for call in stage if isinstance(call, Loop)]


def operands(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def test_rows_of_a_product_go_through_the_kernels_around_it_before_the_next_rows_do():
    x, w, v = operands((70, 20), (20, 33), (33, 20))
    y = (genesis.tensor(x) @ genesis.tensor(w)).relu() @ genesis.tensor(v) + 1
    (loop,) = loops()
    assert len(loop.calls) == 4 and len(loop.private) == 3 and loop.points == 70 and loop.tiles > 2
    np.testing.assert_allclose(y.numpy(), np.maximum(x @ w, 0) @ v + 1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_tiles_read_the_same_weights(dtype):
    x, *weights = (array.astype(dtype) for array in operands((70, 20), (37, 20), (45, 37), (16, 20), (33, 16)))

    def computed(library, x, a, b, c, d):
        return library.cat([library.relu(x @ a.T) @ b.T, library.exp(x @ c.T) @ d.T], 1)

    found = computed(genesis, *map(genesis.tensor, (x, *weights)))
    products = [call for loop in loops() for call in loop.calls if isinstance(call, Product)]
    assert len(products) == 4 and all(loop.tiles > 2 for loop in loops())
    want = computed(torch, *map(torch.tensor, (x, *weights)))
    assert np.abs(found.numpy() - want.numpy()).max() < (1e-6 if dtype is np.float32 else 1e-14) * want.abs().max()


def test_matrices_of_a_batch_go_through_products_of_both_sides():
    x, y = operands((6, 10, 16), (6, 16, 12))
    scores = genesis.tensor(x) @ genesis.tensor(y)
    gram = scores.exp().mT @ scores
    del scores
    (loop,) = loops()
    assert loop.points == 6 and len(loop.private) == 2
    want = x @ y
    np.testing.assert_allclose(gram.numpy(), np.exp(want).swapaxes(1, 2) @ want, rtol=1e-3)


def test_a_product_of_few_rows_behind_a_batch_leaves_the_batch_a_loop():
    x, y, w = operands((6, 16, 20), (6, 20, 24), (16 * 24, 10))
    scores = genesis.tensor(x) @ genesis.tensor(y)
    z = (scores - scores.amax(1, keepdim=True)).reshape(6, -1) @ genesis.tensor(w)
    del scores
    (loop,) = loops()
    assert loop.points == 6 and [call.extents[1] for call in loop.calls if isinstance(call, Product)] == [24]
    want = x @ y - (x @ y).max(1, keepdims=True)
    np.testing.assert_allclose(z.numpy(), want.reshape(6, -1) @ w, rtol=1e-3, atol=1e-3)


def test_what_somebody_holds_is_written_to_memory():
    x, w = operands((64, 16), (16, 48))
    h = genesis.tensor(x) @ genesis.tensor(w)
    y = h.relu()
    (loop,) = loops()
    assert not loop.private
    np.testing.assert_allclose(y.numpy(), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(h.numpy(), x @ w, rtol=1e-4, atol=1e-5)


def test_a_call_that_needs_all_rows_is_in_no_loop_with_what_computes_them():
    x, w = operands((64, 64), (64, 64))
    h = genesis.tensor(x) @ genesis.tensor(w)
    y = h.exp() @ h
    assert all(sum(isinstance(call, Product) for call in loop.calls) == 1 for loop in loops())
    del h
    np.testing.assert_allclose(y.numpy(), np.exp(x @ w) @ (x @ w), rtol=1e-3, atol=1.0)


@pytest.mark.parametrize("images", [2, 3])
def test_images_are_padded_and_multiplied_one_by_one_where_threads_have_equally_many(images):
    x, w = operands((images, 8, 12, 12), (32, 8, 5, 5))
    before = genesis.get_num_threads()
    genesis.set_num_threads(2)
    try:
        y = genesis.nn.functional.conv2d(genesis.tensor(x), genesis.tensor(w), padding=2)
        assert any(isinstance(call, Product) for loop in loops() for call in loop.calls) == (images == 2)
        want = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), padding=2)
        np.testing.assert_allclose(y.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
    finally:
        genesis.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 3])
def test_values_do_not_depend_on_how_many_threads_share_the_tiles(threads):
    q, k, v = operands((2, 3, 50, 8), (2, 3, 50, 8), (2, 3, 50, 8))
    attention = genesis.nn.functional.scaled_dot_product_attention
    before = genesis.get_num_threads()
    try:
        results = []
        for number in (threads, 2):
            genesis.set_num_threads(number)
            results.append(attention(*map(genesis.tensor, (q, k, v)), is_causal=True).numpy())
    finally:
        genesis.set_num_threads(before)
    assert np.array_equal(*results)


def test_the_listing_shows_the_loop_with_its_calls_and_what_is_private():
    x, w = operands((64, 16), (16, 48))
    y = (genesis.tensor(x) @ genesis.tensor(w)).relu() * 2
    lines = str(genesis.debug.program(y)).splitlines()
    assert lines[0].startswith("loop ") and lines[0].endswith("a tile at a time:")
    assert lines[1].startswith("  product") and lines[2].startswith("  kernel")


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("batch", [2, 7])
def test_products_summed_over_their_batch_are_added_up_by_each_worker_and_joined(threads, batch):
    x, y = operands((batch, 70, 60), (batch, 60, 80))  # fewer terms would be joined
    before = genesis.get_num_threads()
    genesis.set_num_threads(threads)
    try:
        total = (genesis.tensor(x) @ genesis.tensor(y)).sum(0)
        (loop,) = loops()
        assert loop.sums and not loop.private
        np.testing.assert_allclose(total.numpy(), (x @ y).sum(0), rtol=1e-4, atol=1e-4)
    finally:
        genesis.set_num_threads(before)


def test_terms_that_a_loop_computes_are_added_to_the_result_tile_by_tile():
    x, w = operands((96, 20), (20, 40))
    hidden = (genesis.tensor(x) @ genesis.tensor(w)).exp()
    gradient = hidden.T @ genesis.tensor(x)
    del hidden
    (loop,) = loops()
    assert len(loop.sums) == 1 and len(loop.private) == 2 and loop.tiles > 2
    np.testing.assert_allclose(gradient.numpy(), np.exp(x @ w).T @ x, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_zeros_around_images_and_the_images_are_written_image_by_image(threads):
    (x,) = operands((6, 5, 9, 10))
    before = genesis.get_num_threads()
    genesis.set_num_threads(threads)
    try:
        y = genesis.nn.functional.pad(genesis.tensor(x), (1, 2, 3, 0))
        (loop,) = loops()
        assert len(loop.calls) == 2 and loop.points == 30 and not loop.private
        np.testing.assert_array_equal(y.numpy(), np.pad(x, ((0, 0), (0, 0), (3, 0), (1, 2))))
    finally:
        genesis.set_num_threads(before)


def test_images_and_what_lies_across_their_edges_are_written_image_by_image():
    (x,) = operands((6, 5, 9, 10))
    y = genesis.nn.functional.pad(genesis.tensor(x), (1, 2, 3, 0), mode="reflect")
    (loop,) = loops()
    assert loop.points == 30 and len(loop.calls) > 2
    np.testing.assert_array_equal(y.numpy(), np.pad(x, ((0, 0), (0, 0), (3, 0), (1, 2)), mode="reflect"))
