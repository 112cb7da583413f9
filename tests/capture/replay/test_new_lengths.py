"""Steps at ever new lengths: one structure, whose sizes decide differently about kernels and loops."""

import numpy as np
import pytest
import torch

import genesis

WIDTH, HEADS, WORDS = 24, 2, 11
LENGTHS = [7, 1, 2, 64, 3, 130, 7]
ARRAYS = [(WORDS, WIDTH), *[(3 * WIDTH, WIDTH), (WIDTH, WIDTH), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (WIDTH,)] * 2]


def loss_of(library, weights, tokens, targets):
    """The loss of a transformer of two layers, by either library."""
    functional = library.nn.functional
    embedding, *layers = weights
    x = functional.embedding(tokens, embedding)
    batch, length, _ = x.shape
    for first in range(0, len(layers), 5):
        joined, out, up, down, scale = layers[first : first + 5]
        q, k, v = [
            part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for part in functional.linear(functional.layer_norm(x, (WIDTH,), scale), joined).split(WIDTH, dim=2)]
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + functional.linear(mixed.transpose(1, 2).reshape(batch, length, WIDTH), out)
        x = x + functional.linear(functional.gelu(functional.linear(functional.layer_norm(x, (WIDTH,)), up)), down)
    return functional.cross_entropy((x @ embedding.T).view(-1, WORDS), targets.view(-1))


def losses(library, transform):
    """The loss of a step of AdamW at each of the lengths."""
    chosen = np.random.default_rng(0)
    weights = [library.tensor(0.2 * chosen.standard_normal(shape)).requires_grad_() for shape in ARRAYS]
    optimizer = library.optim.AdamW(weights, lr=0.01)

    def step(tokens, targets):
        optimizer.zero_grad()
        loss = loss_of(library, weights, tokens, targets)
        loss.backward()
        optimizer.step()
        return loss

    step, found = transform(step), []
    for length in LENGTHS:
        tokens, targets = chosen.integers(0, WORDS, (2, 3, length))
        found.append(step(library.tensor(tokens), library.tensor(targets)).item())
    return found


@pytest.mark.parametrize("transform", [genesis.compile, lambda step: step], ids=["compiled", "called"])
def test_steps_of_new_lengths_equal_torch(transform):
    np.testing.assert_allclose(losses(genesis, transform), losses(torch, lambda step: step), rtol=1e-9)
