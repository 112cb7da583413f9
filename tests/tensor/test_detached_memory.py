"""A detached tensor keeps the memory of its values, and nothing of the graph that they come from."""

import weakref

import numpy as np
import pytest

import genesis


def computed(y):
    y.sum().item()
    return y


def made(finish, take):
    w = genesis.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = (w.exp() * w).tanh() * w
    trace = weakref.ref(y._array.trace)
    return finish(y), take(finish(y)), trace


TAKEN = [
    lambda y: y.detach(), lambda y: y[0].detach(), lambda y: y.t().detach()[0], lambda y: y.detach().detach(), lambda y: y.data,
]


@pytest.mark.parametrize("take", TAKEN)
@pytest.mark.parametrize("finish", [computed, lambda y: y])
def test_the_graph_is_freed_with_its_last_result(take, finish):
    y, detached, trace = made(finish, take)
    values = take(y).tolist()
    detached.sum().item()
    del y
    assert trace() is None
    assert detached.tolist() == values


@pytest.mark.parametrize("take", TAKEN)
def test_storage_is_shared_as_long_as_both_are_alive(take):
    y, detached, _ = made(computed, take)
    detached.mul_(2)
    np.testing.assert_array_equal(take(y).tolist(), detached.tolist())
    with genesis.no_grad():
        y.add_(1)
    expected = take(y).tolist()
    del y
    assert detached.tolist() == expected
    other = detached[:1]
    other.zero_()
    assert detached.tolist()[0] == other.tolist()[0]


def test_a_result_that_becomes_a_leaf_keeps_its_storage_in_common():
    y, detached, _ = made(computed, lambda y: y.detach())
    y.detach_()
    y.fill_(3.0)
    del y
    assert detached.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_data_given_to_a_result_leaves_the_detached_tensor_as_it_was():
    y, detached, _ = made(computed, lambda y: y.detach())
    before = detached.tolist()
    y.data = genesis.zeros(2, 2)
    assert detached.tolist() == before


def test_a_view_of_a_result_that_got_other_data_keeps_its_storage():
    y, _, _ = made(computed, lambda y: y)
    view = y.reshape(-1)
    before = view.tolist()
    y.data = genesis.zeros(2, 2)
    assert computed(y).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert view.detach().tolist() == before


def test_a_compiled_write_to_a_result_is_seen():
    def double(y):
        y.mul_(2)

    compiled = genesis.compile(double)
    for _ in range(4):
        y, detached, _ = made(computed, lambda y: y.detach())
        expected = (y * 2).tolist()
        compiled(y)
        del y
        assert detached.tolist() == expected


def test_a_compiled_call_that_returns_a_result_and_its_detached_one_holds_no_graph():
    compiled = genesis.compile(lambda w: (y := (w.exp() * w).tanh(), y.detach(), y[0].detach()))
    for _ in range(4):
        y, whole, part = compiled(genesis.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True))
        trace = weakref.ref(computed(y)._array.trace)
        values = whole.tolist()
        del y
        assert trace() is None
        assert whole.tolist() == values and part.tolist() == values[0]
