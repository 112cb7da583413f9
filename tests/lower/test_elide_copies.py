"""Products are computed where their only reader would copy them, whole values where they are joined, whoever reads them."""

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.plan import plan_for
from genesis.lower.stages import Product, parts
from genesis.tensor.dispatch import array_of

RANDOM = np.random.default_rng(0)
A, B, C = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((3, 4, 5, 6), (3, 4, 6, 7), (3, 4, 6, 9)))


def heads_beside_each_other(a, b, c):
    return (a @ b).transpose(1, 2).reshape(3, 5, 28)


def joined(a, b, c):
    parts = (a @ b).transpose(1, 2).reshape(3, 5, 28), (a @ c).transpose(1, 2).reshape(3, 5, 36)
    return genesis.cat(parts, -1) if isinstance(a, genesis.Tensor) else np.concatenate(parts, -1)


def read_by_columns(a, b, c):
    return (a @ b).transpose(2, 3).reshape(12, 35)


def in_windows(a, b, c):
    return (a @ b)[:, :, 1:].reshape(12, 28)


PLACES = {heads_beside_each_other: 0, joined: 0, in_windows: 1, read_by_columns: 0}  # copies that are left


def calls_for(y):
    return [part for stage in plan_for(array_of(y).trace).lowered.schedule.stages for call in stage for part in parts(call)]


class NumPy(np.ndarray):
    """An array whose `transpose` exchanges two axes, as tensors' does."""

    def transpose(self, one, other):
        return self.swapaxes(one, other)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_products_lie_where_they_are_wanted(place):
    y = place(*map(genesis.tensor, (A, B, C)))
    assert sum(not isinstance(call, Product) for call in calls_for(y)) == PLACES[place]
    np.testing.assert_allclose(y.numpy(), place(*(x.view(NumPy) for x in (A, B, C))), rtol=1e-5, atol=1e-5)


def test_a_product_that_somebody_else_reads_stays():
    product = genesis.tensor(A) @ genesis.tensor(B)
    turned = product.transpose(1, 2).reshape(3, 5, 28)
    assert sum(not isinstance(call, Product) for call in calls_for(turned)) == 1
    np.testing.assert_allclose(turned.numpy(), (A @ B).swapaxes(1, 2).reshape(3, 5, 28), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(product.numpy(), A @ B, rtol=1e-5, atol=1e-5)


def test_loops_end_where_a_product_that_lies_apart_is_read():
    """Each head's product goes into columns of its own; who reads whole rows waits for all heads."""
    random = np.random.default_rng(1)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 256, 8 * 32), (256, 64)))
    heads = genesis.tensor(x).reshape(4, 256, 8, 32).transpose(1, 2)
    scores = (heads @ heads.transpose(2, 3) * 0.01).exp()
    y = (scores @ heads).transpose(1, 2).reshape(4, 256, 256) @ genesis.tensor(w)
    plain = x.reshape(4, 256, 8, 32).swapaxes(1, 2).astype(np.float64)
    want = (np.exp(plain @ plain.swapaxes(2, 3) * 0.01) @ plain).swapaxes(1, 2).reshape(4, 256, 256) @ w
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-3)


def parts_of(x, y, library):
    """Three results of one kernel, which reads `y` in the order of its columns: it knows of rows."""
    return x * y.T, library.tanh(x) + y.T, library.exp(x - y.T)


@pytest.mark.parametrize("axis", [0, 1])
def test_kernels_store_where_their_results_are_joined(axis):
    a, b, w = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((18, 20), (20, 18), (60, 5)))
    x, y = genesis.tensor(a), genesis.tensor(b)
    joined = genesis.cat(parts_of(x, y, genesis), axis)
    result = (joined if axis else joined.reshape(18, 60)) @ genesis.tensor(w)
    del joined
    assert [isinstance(call, Product) for call in calls_for(result)] == [False, True]
    expected = np.concatenate(parts_of(a, b, np), axis).reshape(18, 60) @ w
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_what_somebody_else_reads_is_copied():
    a, b, w = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((18, 20), (20, 18), (60, 5)))
    parts = parts_of(genesis.tensor(a), genesis.tensor(b), genesis)
    result = genesis.cat(parts, 1) @ genesis.tensor(w)
    kept = parts[1]
    del parts
    assert sum(not isinstance(call, Product) for call in calls_for(result)) == 2
    expected = parts_of(a, b, np)
    np.testing.assert_allclose(result.numpy(), np.concatenate(expected, 1) @ w, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(kept.numpy(), expected[1], rtol=1e-4, atol=1e-4)


def steps(x, w, library, twice=False):
    """A gated recurrence: each step reads the one before twice, and all are joined."""
    h, found = x, []
    for _ in range(5):
        h = library.tanh(h @ w) + 0.5 * h
        found += [h] * (1 + twice)
    return found


@pytest.mark.parametrize("twice", [False, True])
def test_steps_in_time_are_computed_where_they_are_joined(twice):
    x, w = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((6, 32), (32, 32)))
    expected = np.stack(steps(x, w, np, twice))
    joined = genesis.stack(steps(genesis.tensor(x), genesis.tensor(w), genesis, twice))
    copies = 10 if twice else 0
    assert sum(not isinstance(call, Product) for call in calls_for(joined)) == 5 + copies
    np.testing.assert_allclose(joined.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_step_that_somebody_holds_has_memory_of_its_own():
    x, w = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((6, 32), (32, 32)))
    held = steps(genesis.tensor(x), genesis.tensor(w), genesis)
    joined, third = genesis.stack(held), held[2]
    del held
    assert sum(not isinstance(call, Product) for call in calls_for(joined)) == 6
    third.add_(1)
    np.testing.assert_allclose(joined.numpy(), np.stack(steps(x, w, np)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(third.numpy(), steps(x, w, np)[2] + 1, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
def test_gradients_of_steps_are_computed_where_products_read_them(layer):
    models, found = [], []
    array = RANDOM.standard_normal((3, 20, 24)).astype(np.float32)
    for library in (torch, genesis):
        models.append(getattr(library.nn, layer)(24, 32, 2, batch_first=True, bidirectional=True))
    models[1].load_state_dict({name: genesis.tensor(value.numpy()) for name, value in models[0].state_dict().items()})
    for library, model in zip((torch, genesis), models, strict=True):
        x = library.tensor(array, requires_grad=True)
        y, _ = model(x)
        y.square().mean().backward()
        found.append([x.grad, *(parameter.grad for parameter in model.parameters())])
    for expected, gradient in zip(*found, strict=True):
        np.testing.assert_allclose(gradient.numpy(), expected.numpy(), rtol=1e-4, atol=1e-6)
