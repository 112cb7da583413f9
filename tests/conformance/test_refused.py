"""What PyTorch's operator database refuses, or takes, and genesis did not: one claim each."""

import pytest
import torch

import genesis
from genesis.nn import functional as F


@pytest.mark.parametrize("name", [f"{kind}_pool{axes}d" for kind in ("max", "avg", "lp") for axes in (1, 2, 3)])
def test_pooling_wants_elements_in_all_axes_but_the_batch(name):
    axes = int(name[-2])
    settings = (2.0, 1) if name.startswith("lp") else (1,)
    pool = getattr(F, name)
    assert pool(genesis.ones(0, 2, *[3] * axes), *settings).shape == (0, 2, *[3] * axes)
    for shape in ((0, *[3] * axes), (1, 0, *[3] * axes), (1, 2, 0, *[3] * (axes - 1))):
        with pytest.raises(RuntimeError, match="want no axis but the batch's without elements"):
            pool(genesis.ones(shape), *settings)


def test_weights_of_covariances_count_or_weigh():
    x = genesis.arange(5.0)
    with pytest.raises(RuntimeError, match="fweights, which count, are float32; want integers"):
        genesis.cov(x, fweights=genesis.ones(5))
    with pytest.raises(RuntimeError, match="aweights are int64; want floating numbers"):
        genesis.cov(x, aweights=genesis.ones(5, dtype=genesis.int64))


def test_masked_fill_takes_no_complex_number_into_a_real_tensor():
    with pytest.raises(RuntimeError, match="value is complex64, the tensor int64"):
        genesis.arange(2).masked_fill(genesis.tensor(True), genesis.tensor(1j))
    assert genesis.tensor([1 + 0j]).masked_fill(genesis.tensor(True), genesis.tensor(1j)).tolist() == [1j]


def test_several_targets_a_row_want_a_batch_of_rows():
    with pytest.raises(RuntimeError, match=r"several targets a row; want inputs \(n, 3\), got \(3,\)"):
        F.linear_cross_entropy(genesis.ones(3), genesis.ones(2, 4, 3), genesis.zeros(4, dtype=genesis.int64))


def test_a_truth_value_is_no_start():
    with pytest.raises(RuntimeError, match="start is True; want an int"):
        genesis.ones(3).narrow(0, genesis.tensor(True), 1)


def test_a_tensor_without_axes_rolls_only_as_a_whole():
    assert genesis.tensor(1.0).roll(1).item() == 1
    with pytest.raises(IndexError, match="of a tensor without axes"):
        genesis.tensor(1.0).roll(1, 0)


@pytest.mark.parametrize("order", [1, -1, 2, -2, float("inf"), -float("inf"), "fro", "nuc"])
@pytest.mark.parametrize("shape", [(0, 0), (5, 0), (0, 5), (3, 0, 5), (0, 3, 3)])
def test_norms_of_empty_matrices(order, shape):
    try:
        wanted = torch.linalg.matrix_norm(torch.zeros(shape), order).tolist()
    except (RuntimeError, IndexError):
        with pytest.raises((RuntimeError, ValueError)):
            genesis.linalg.matrix_norm(genesis.zeros(shape), order)
    else:
        assert genesis.linalg.matrix_norm(genesis.zeros(shape), order).tolist() == wanted


@pytest.mark.parametrize("order", [-1, float("inf"), -float("inf")])
def test_norms_of_empty_vectors_want_an_element(order):
    with pytest.raises(RuntimeError, match="wants one at least"):
        genesis.linalg.vector_norm(genesis.zeros(0), order)


def test_the_edge_of_a_huber_loss_is_real():
    with pytest.raises(TypeError, match="delta is 1j; want a float or an int"):
        genesis.nn.HuberLoss(delta=1j)


def test_conjugates_in_place():
    x, real = genesis.tensor([1 + 2j, 3]), genesis.ones(2)
    assert x.conj_physical_() is x
    assert x.tolist() == [1 - 2j, 3 - 0j]
    assert real.conj_physical_() is real


@pytest.mark.parametrize("call", [
    lambda lib, x: lib.sum(x, dim=0, keepdim=None), lambda lib, x: lib.topk(x, 1, largest=None),
    lambda lib, x: lib.sort(x, descending=None), lambda lib, x: lib.nn.functional.softplus(x, beta=None),
    lambda lib, x: lib.cumprod(x, dim=None),
])
def test_none_is_no_default(call):
    for lib in (genesis, torch):
        with pytest.raises(TypeError):
            call(lib, lib.ones(3))
