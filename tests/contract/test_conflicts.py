"""C1-C27: where the documents disagree, one behaviour that satisfies both. A test is named for its row."""

import gc
import weakref

import pytest

import genesis
from genesis import nn


def leaf(*values):
    return genesis.tensor(list(values), requires_grad=True)


# ---- C1: zero_grad gives None; grad.zero_() writes zeros ----


def with_gradient():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    return x


def test_c1_every_zero_grad_drops_the_gradient():
    x = with_gradient()
    x.zero_grad()
    assert x.grad is None
    layer = nn.Linear(2, 1)
    optimizer = genesis.optim.SGD(layer.parameters(), lr=0.1)
    for zero_grad in (layer.zero_grad, optimizer.zero_grad, genesis.zero_grad):
        layer(genesis.ones(1, 2)).sum().backward()
        zero_grad()
        assert [p.grad for p in layer.parameters()] == [None, None]


def test_c1_zero_grad_writes_zeros_if_told():
    x = with_gradient()
    held = x.grad
    x.zero_grad(set_to_none=False)
    assert x.grad is held and held.tolist() == [0, 0]
    layer = nn.Linear(2, 1)
    optimizer = genesis.optim.SGD(layer.parameters(), lr=0.1)
    for zero_grad in (layer.zero_grad, optimizer.zero_grad, genesis.zero_grad):
        layer(genesis.ones(1, 2)).sum().backward()
        zero_grad(set_to_none=False)
        assert [p.grad.tolist() for p in layer.parameters()] == [[[0, 0]], [0]]


def test_c1_zeros_of_zero_grad_have_no_derivation():
    x = leaf(2.0)
    (x**3).sum().backward(create_graph=True)
    held = x.grad
    x.zero_grad(set_to_none=False)
    assert x.grad is held and not held.requires_grad and held.tolist() == [0]


def test_c1_zero_of_the_gradient_writes_zeros():
    x = with_gradient()
    held = x.grad
    x.grad.zero_()
    assert x.grad is held and held.tolist() == [0, 0]


# ---- C7, C8 ----


def test_c7_ints_that_are_to_require_a_gradient_become_floats():
    assert genesis.tensor([1, 2]).dtype is genesis.int64
    x = genesis.tensor([1, 2], requires_grad=True)
    assert x.dtype is genesis.float32 and x.requires_grad
    with pytest.raises(TypeError, match="only floating tensors can require gradients, this one is int64"):
        genesis.tensor([1, 2], dtype=genesis.int64, requires_grad=True)


def test_c8_a_gradient_of_one_element_fits_every_output_of_one():
    for shape in ((), (1,), (1, 1)):
        for seed in (genesis.tensor(2.0), genesis.tensor([2.0])):
            x = genesis.ones(shape, requires_grad=True)
            (x * 3).backward(seed)
            assert x.grad.shape == shape and x.grad.item() == 6


# ---- C10, C11, C12 ----


def test_c10_the_constructor_tells_device_and_dtype_apart_by_their_types():
    cpu, wide = genesis.device("cpu"), genesis.float64
    made = [
        genesis.Tensor([1.0], cpu, wide), genesis.Tensor([1.0], wide, cpu), genesis.Tensor([1.0], "cpu", wide, True),
        genesis.Tensor([1.0], wide, "cpu", True), genesis.Tensor([1.0], None, wide), genesis.Tensor([1.0], wide),
        genesis.Tensor([1.0], dtype=wide, device="cpu"),
    ]
    assert all(x.dtype is wide and x.device == cpu for x in made)
    assert [x.requires_grad for x in made] == [False, False, True, True, False, False, False]


def test_c11_size_is_a_number_and_a_function():
    x = genesis.zeros(2, 3)
    assert isinstance(x.size, int) and x.size == 6 and x.size // 2 == 3
    assert (x.size(), x.size(0), x.size(-1), x.size(dim=1)) == ((2, 3), 2, 3, 3)
    with pytest.raises(IndexError, match="dim 2 is out of range"):
        x.size(2)


def test_c12_transpose_takes_two_dims_an_order_a_pair_or_nothing():
    x = genesis.zeros(2, 3, 4)
    assert x.transpose(-2, -1).shape == (2, 4, 3)
    assert x.transpose((2, 0, 1)).shape == x.transpose([2, 0, 1]).shape == x.permute(2, 0, 1).shape
    assert x.transpose((0, 2)).shape == x.transpose(dim0=0, dim1=2).shape == (4, 3, 2)
    assert x.transpose().shape == (2, 4, 3)
    assert genesis.zeros(2, 3).transpose().shape == genesis.zeros(2, 3).transpose((1, 0)).shape == (3, 2)
    with pytest.raises(ValueError, match=r"transpose: wants two dims, an order of all 3, or none; got \(1,\)"):
        x.transpose(1)


# ---- C19, C20 ----


def test_c19_writing_to_a_gradient_keeps_its_derivation():
    x = genesis.tensor(2.0, requires_grad=True)
    (x**3).backward(create_graph=True)
    first = x.grad
    assert first.item() == 12
    x.grad.zero_()
    assert first.item() == 0 and first is x.grad
    first.backward()
    assert x.grad.item() == 12


# ---- C22 ----


def test_c22_the_global_zero_grad_clears_every_leaf_however_it_got_its_gradient():
    accumulated, assigned = with_gradient(), leaf(1.0)
    assigned.grad = genesis.ones(1)
    layer = nn.Linear(2, 2)
    layer(genesis.ones(1, 2)).sum().backward()
    genesis.zero_grad()
    assert accumulated.grad is assigned.grad is layer.weight.grad is layer.bias.grad is None
    (accumulated * 2).sum().backward()
    assert accumulated.grad.tolist() == [2, 2]
    genesis.zero_grad()
    assert accumulated.grad is None


def test_c22_what_is_cleared_is_not_kept_alive():
    x = with_gradient()
    x.grad.tolist()  # the trace holds on to it until it is run
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is None


def test_c22_results_keep_the_gradient_they_retained():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    genesis.zero_grad()
    assert x.grad is None and y.grad.tolist() == [1]


# ---- C23, C24 ----


def test_c23_a_leaf_cannot_be_written_to_while_gradients_are_recorded():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf tensor that requires grad cannot be changed in place"):
        x.add_(1)
    with genesis.no_grad():
        x.add_(1)
    assert x.tolist() == [2, 3] and x.is_leaf and x.requires_grad


def test_c23_a_result_takes_on_the_history_of_what_is_written():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.mul_(x)
    y.sum().backward()
    assert x.grad.tolist() == [4, 8]


def test_c24_views_and_detached_tensors_share_data():
    x = leaf(1.0, 2.0, 3.0)
    row, bare = x.view(1, 3), x.detach()
    with genesis.no_grad():
        x.mul_(2)
    assert row.tolist() == [[2, 4, 6]] and bare.tolist() == [2, 4, 6]
    bare[0] = 9
    assert x.tolist() == [9, 4, 6] and row.tolist() == [[9, 4, 6]]


# ---- C27 ----


def test_c27_a_formatted_number_is_a_number_and_a_printed_one_a_tensor():
    x = genesis.tensor(2.0, requires_grad=True)
    assert (f"{x}", f"{x * 1.5:.2f}", str(x)) == ("2.0", "3.00", "tensor(2., requires_grad=True)")
    assert f"{genesis.tensor([1.0, 2.0])}" == "tensor([1., 2.])"
    assert (f"{genesis.tensor(3)}", f"{genesis.tensor(True)}") == ("3", "True")
