"""A view's offset that varies becomes an argument of the program: values and gradients as PyTorch's, and few programs."""

import itertools
import random

import numpy as np
import pytest
import torch

import genesis
from genesis.tracing.state import current_trace


def plans():
    return genesis.debug.stats()["plans_built"]


def taken(library, weight, index, scale):
    """The gradient of a part of a result, whose offset is that of `index`."""
    part = library.tanh(weight * scale)[index]
    (part * part).abs().sum().backward()
    gradient, weight.grad = weight.grad, None
    return library.view_as_real(gradient).tolist() if gradient.is_complex() else gradient.tolist()


PARTS = {
    "an element": lambda rng: (rng.randrange(6), rng.randrange(-5, 5)),
    "a row": lambda rng: rng.randrange(-6, 6),
    "a column": lambda rng: (slice(None), rng.randrange(5)),
    "a window": lambda rng: (lambda r, c: (slice(r, r + 3), slice(c, c + 2)))(rng.randrange(4), rng.randrange(4)),
    "every other": lambda rng: (lambda r: slice(r, r + 3, 2))(rng.randrange(4)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("part", PARTS)
def test_parts_of_what_has_a_gradient(part, dtype):
    rng = random.Random(part)
    weights = [library.linspace(-1, 1, 30).reshape(6, 5).to(getattr(library, dtype)).detach() for library in (genesis, torch)]
    for weight in weights:
        weight.requires_grad_()
    counted = []
    for number in range(40):
        index = PARTS[part](rng)
        ours, theirs = (taken(library, weight, index, 1.5) for library, weight in zip((genesis, torch), weights, strict=True))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=f"{number} {index}")
        counted.append(plans())
    assert counted[-1] - counted[0] <= 12


def scores(library, weight, tags):
    total = weight.sum() * 0
    for before, after in itertools.pairwise(tags):
        total = total + weight[before, after] * weight[after, before].exp()
    total.backward()
    gradient, weight.grad = weight.grad, None
    return total.item(), gradient.tolist()


def test_many_places_in_one_program():
    rng = random.Random(0)
    ours, theirs = (library.linspace(-1, 1, 16).reshape(4, 4).requires_grad_() for library in (genesis, torch))
    built = []
    for _ in range(60):
        tags = [rng.randrange(4) for _ in range(7)]
        for have, want in zip(scores(genesis, ours, tags), scores(torch, theirs, tags), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
        built.append(plans())
    assert built[-1] - built[12] == 0  # 4 ** 7 programs if each path were one


@pytest.mark.parametrize("is_looked_at", [False, True], ids=["pending", "looked at"])
@pytest.mark.parametrize("choices", [2, 5])
def test_choices_of_a_policy_over_episodes(choices, is_looked_at):
    rng, built = np.random.default_rng(0), []
    layers = [library.nn.Linear(4, choices) for library in (genesis, torch)]
    layers[0].load_state_dict({name: genesis.tensor(value.tolist()) for name, value in layers[1].state_dict().items()})
    for episode in range(24):
        steps = [
            (rng.normal(size=4).astype("float32"), rng.random(choices), int(rng.integers(choices)))
            for _ in range(4 + episode % 2)]
        gradients = []
        for library, layer in zip((genesis, torch), layers, strict=True):
            scores = []
            for state, noise, choice in steps:
                p = layer(library.from_numpy(state)).softmax(-1)
                if is_looked_at:
                    choice = int(np.argmax(p.detach().numpy() + noise))
                scores.append(library.log(p[choice]))
            layer.zero_grad()
            library.stack(scores).sum().backward()
            gradients.append(layer.weight.grad.tolist())
        np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-6)
        built.append(plans())
    assert built[-1] - built[0] <= 16  # a program for each choice made 18 to 60


def test_loops_of_other_lengths_fold_their_views():
    x = genesis.arange(60.0).reshape(30, 2).clone().requires_grad_()
    for length in (5, 9, 3, 30, 17):
        total = x[1] * 0
        for at in range(length):
            total = total + x[at]
        assert "gather" not in {node.op for node in current_trace().nodes}
        total.sum().backward()


def test_an_index_out_of_range_is_raised_at_once_where_it_varies():
    x = genesis.ones(4, requires_grad=True)
    for at in (0, 1, 2, 3, -4):
        ((x * 2)[at] * 1.5).backward()
    for at in (4, -5):
        with pytest.raises(IndexError):
            (x * 2)[at]
    assert x.grad.tolist() == [6.0, 3.0, 3.0, 3.0]


def test_writes_into_what_is_pending():
    rng, built = random.Random(1), []
    for _ in range(60):
        row, column = rng.randrange(5), rng.randrange(4)
        results = []
        for library in (genesis, torch):
            w = library.ones(3, requires_grad=True)
            x = library.arange(20.0).reshape(5, 4) * w.sum()
            x[row, 1:] = w * 2
            x[column] += 1
            x[row, column] *= 3
            (x * x).sum().backward()
            results.append((x.tolist(), w.grad.tolist()))
        assert results[0] == results[1]
        built.append(plans())
    assert built[-1] == built[50]


def test_unrolled_loops_fold_their_views():
    x = genesis.arange(60.0).reshape(30, 2).clone().requires_grad_()
    for _ in range(12):
        total = x[0] * 0
        for at in range(30):
            total = total + x[at] * at
        assert "gather" not in {node.op for node in current_trace().nodes}
        total.sum().backward()
    assert x.grad[:, 0].tolist() == [12.0 * at for at in range(30)]


def test_a_view_beside_one_that_varies_keeps_its_program():
    x, built = genesis.arange(40.0), []
    for at in range(30):
        y = x * 2
        assert y[at].item() == 2 * at
        y = x * 2
        assert y[3:5].sum().item() == 14
        built.append(plans())
    assert built[-1] == built[15]


def test_recorded_calls_keep_their_offsets():
    x = genesis.arange(12.0).clone()

    def part(at):
        return (x * 2)[at : at + 3].sum()

    compiled = genesis.compile(part)
    for at in range(9):
        assert compiled(at).item() == compiled(at).item() == part(at).item() == 2 * (3 * at + 3)
