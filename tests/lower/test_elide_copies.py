"""Products are computed where their only reader would copy them."""

import numpy as np
import pytest

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
