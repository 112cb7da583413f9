"""`genesis.masked` of sparse tensors, beside PyTorch's and beside that of dense ones."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

VALUES = np.array([[1.0, 0.0, -3.0], [0.0, 2.0, 4.0], [0.0, 0.0, 0.0]], "float32")
MASK = np.array([[True, True, False], [False, True, True], [False, False, True]])
REDUCTIONS = ("sum", "prod", "amax", "amin")


@pytest.fixture(autouse=True)
def by_references():
    with genesis.eager():
        yield


def both(layout, name, *settings, **named):
    found = []
    for library in (genesis, torch):
        x, mask = [getattr(library.tensor(a), f"to_sparse_{layout}")() for a in (VALUES, MASK)]
        made = getattr(library.masked, name)(x, *settings, mask=mask, **named)
        assert str(made.layout).endswith(f"sparse_{layout}")
        found.append(made.to_dense())
    return found


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_coordinates_agree_with_torch(name):
    for dim, keepdim in ((0, False), (1, True), ((0, 1), True), (None, False)):
        assert_close(*both("coo", name, dim, keepdim=keepdim))


@pytest.mark.parametrize("name", [*REDUCTIONS, "mean"])
def test_reductions_of_rows_agree_with_torch(name):
    for dim in (0, 1, (0, 1)):
        assert_close(*both("csr", name, dim, keepdim=True))


def test_gradients_flow_to_the_elements_that_count():
    dense, given = [genesis.tensor(VALUES, requires_grad=True) for _ in range(2)]
    mask = genesis.tensor(MASK)
    genesis.masked.sum(dense, 1, mask=mask).square().sum().backward()
    genesis.masked.sum(given.to_sparse(), 1, mask=mask.to_sparse()).to_dense().square().sum().backward()
    assert given.grad.tolist() == (dense.grad * (dense != 0)).tolist()


def test_products_want_a_mask():
    with pytest.raises(ValueError, match=r"masked\.prod: wants a mask"):
        genesis.masked.prod(genesis.tensor(VALUES).to_sparse(), 0)


def test_random_numbers_like_a_sparse_tensor_have_its_places():
    x = genesis.tensor(VALUES).to_sparse_csr()
    found = genesis.randn_like(x, dtype=genesis.float64)
    assert found.layout is x.layout and found.dtype is genesis.float64
    assert ((found.to_dense() != 0) == (x.to_dense() != 0)).all().item()
