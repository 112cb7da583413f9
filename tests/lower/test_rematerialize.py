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


def stack_of_attention(library, tensors, layers):
    """Layers of attention by the same projections, each of the one before."""
    x, *weights = tensors
    for _ in range(layers):
        q, k, v = (x @ w for w in weights)
        x = x + library.nn.functional.scaled_dot_product_attention(q, k, v)
    return (x * x).mean()


@pytest.mark.parametrize("layers", [2, 4])
def test_a_look_at_the_loss_before_backward_keeps_no_scores(layers):
    heads, tokens, width = 4, 512, 32
    random = np.random.default_rng(0)
    values = [random.standard_normal((heads, tokens, width)), *(random.standard_normal((3, width, width)) / 8)]
    ours = [genesis.tensor(x.astype(np.float32), requires_grad=True) for x in values]
    theirs = [torch.tensor(x.astype(np.float32), requires_grad=True) for x in values]
    scores = heads * tokens * tokens * 4
    genesis.nn.functional.relu(ours[0]).sum().item()  # what the tensors themselves hold is there before
    with genesis.debug.memory() as used:
        before = used.held
        loss = stack_of_attention(genesis, ours, layers)
        loss.item()
    assert used.held - before < layers * scores / 2, "none is kept; projections and what softmax is made of are"
    loss.backward()
    program = genesis.debug.program(*[x.grad for x in ours])
    assert program.arena_bytes < 5 * scores, "those of one layer are there at a time, with what is made of them"
    want = stack_of_attention(torch, theirs, layers)
    want.backward()
    np.testing.assert_allclose(loss.item(), want.item(), rtol=1e-5)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-3, atol=1e-6)


def test_scores_that_somebody_holds_are_not_computed_again():
    q, k, v = (genesis.tensor(x, requires_grad=True) for x in operands(2, 512, 32))
    scores = q @ k.transpose(-1, -2)
    loss = (scores.softmax(-1) @ v).square().sum()
    loss.item()
    loss.backward()
    program = str(genesis.debug.program(q.grad, k.grad, v.grad))
    assert program.count("product") == 4
