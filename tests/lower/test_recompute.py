"""Recompute or keep: large products that backward reads again are computed again, and never kept in memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import genesis

TOKENS, WIDTH = 4096, 64


def operands(*shape: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for _ in range(3)]


def attention(library, tensors, **options):
    y = library.nn.functional.scaled_dot_product_attention(*tensors, **options)
    (y * y).sum().backward()
    return y


def test_attention_of_many_tokens_and_its_gradients_need_no_matrix_of_all_scores():
    values = operands(1, 1, TOKENS, WIDTH)
    ours = [genesis.tensor(x, requires_grad=True) for x in values]
    theirs = [torch.tensor(x, requires_grad=True) for x in values]
    y = attention(genesis, ours)
    assert genesis.debug.program(y).arena_bytes < TOKENS * TOKENS * 4 / 2  # all of it: scores, weights, two gradients
    want = attention(torch, theirs)
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("options", [{"is_causal": True}, {}])
def test_gradients_of_recomputed_attention_are_torchs(options):
    values = operands(2, 4, 256, 16)
    masks = [] if options else [np.random.default_rng(1).random((256, 256)) < 0.8]
    ours = [genesis.tensor(x, requires_grad=True) for x in values]
    theirs = [torch.tensor(x, requires_grad=True) for x in values]
    y = attention(genesis, [*ours, *map(genesis.tensor, masks)], **options)
    products = str(genesis.debug.program(ours[0].grad)).count("product")
    assert products == 2 + 5
    want = attention(torch, [*theirs, *map(torch.tensor, masks)], **options)
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-3, atol=1e-4)
