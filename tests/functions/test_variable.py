"""Variable: a tensor whose `grad` can be called, and `genesis.oneflow`."""

import copy
import gc
import pickle
import weakref

import pytest

import genesis
import genesis.oneflow as of
from genesis import nn


def test_floating_variables_require_a_gradient_unless_told():
    assert of.Variable([1.0]).requires_grad and of.Variable([1.0]).is_leaf
    assert not of.Variable([1.0], requires_grad=False).requires_grad
    assert not of.Variable([1.0], "cpu", genesis.float64, False).requires_grad
    ints = of.Variable([1, 2])
    assert ints.dtype is genesis.int64 and not ints.requires_grad
    assert of.Variable([1, 2], requires_grad=True).dtype is genesis.float32
    assert of.Variable([1.0], dtype=genesis.float64).dtype is genesis.float64
    with pytest.raises(TypeError, match="only floating tensors"):
        of.Variable([1], dtype=genesis.int64, requires_grad=True)


RESULTS = {
    "operator": lambda v: v * 2, "reflected": lambda v: 2 - v, "plain first": lambda v: genesis.ones(2, 2) + v,
    "method": lambda v: v.exp(), "function": lambda v: genesis.tanh(v), "named": lambda v: genesis.ones(2, 2).add(other=v),
    "reduction": lambda v: v.sum(), "pair": lambda v: v.max(0)[1], "view": lambda v: v.T.reshape(4),
    "cut": lambda v: v.split(1)[1], "in a list": lambda v: genesis.cat([genesis.ones(1, 2), v]),
    "part": lambda v: v[0, :1], "by mask": lambda v: v[v > 1], "dtype": lambda v: v.double(), "copy": lambda v: v.clone(),
    "detached": lambda v: v.detach(), "data": lambda v: v.data, "predicate": lambda v: v > 1,
    "product": lambda v: genesis.ones(2, 2) @ v, "layer": lambda v: nn.Linear(2, 3)(v), "of a gradient": lambda v: v.data * 1,
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_variables_are_variables(name):
    assert type(RESULTS[name](of.Variable([[1.0, 2.0], [3.0, 4.0]]))) is of.Variable


def test_results_of_tensors_and_parameters_stay_tensors_when_variables_are_about():
    variable, parameter = of.Variable([1.0]), nn.Parameter(genesis.ones(2, 2))
    for made in (genesis.ones(2) * 2, parameter * 2, parameter.T, parameter[0], genesis.cat([parameter, parameter])):
        assert type(made) is genesis.Tensor
    assert type(variable.numpy(force=True)).__name__ == "ndarray"


def test_grad_of_a_result_runs_backward_and_returns_the_gradient_by_the_leaf():
    x = of.Variable([1.0, 2.0])
    y = x * x
    g = y.grad()
    assert g.tolist() == [2, 4] and x.grad.tolist() == [2, 4] and isinstance(g, of.Tensor)
    assert y.grad() is g


def test_grad_of_a_result_is_by_the_leaves_in_the_order_of_their_first_use():
    a, b = of.Variable([1.0, 2.0]), of.Variable([3.0, 4.0])
    first = a * 5
    y = b * 2 + first * b
    by_a, by_b = y.grad()
    assert (by_a.tolist(), by_b.tolist()) == ([15, 20], [7, 12])


def test_the_order_of_first_use_outlives_a_flush():
    a, b = of.Variable([2.0]), of.Variable([3.0])
    first = a * 5
    first.tolist()
    assert [g.tolist() for g in (b * first).grad()] == [[15], [10]]


def test_grad_adds_to_what_the_leaves_hold_and_returns_what_it_added():
    x = of.Variable([1.0])
    assert (x * 2).grad().tolist() == [2]
    held = x.grad
    y = x * 3
    g = y.grad()
    assert g.tolist() == [3] and x.grad is held and held.tolist() == [5]
    (x * 7).sum().backward()
    assert g.tolist() == y.grad().tolist() == [3] and x.grad.tolist() == [12]
    x.grad.zero_()
    assert g.tolist() == [3] and x.grad.tolist() == [0]


def test_grad_of_a_leaf_is_none_or_a_tensor_that_returns_itself():
    x = of.Variable([1.0])
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad() is x.grad and x.grad.tolist() == [2]
    x.grad = None
    assert x.grad is None
    x.grad = genesis.ones(1)
    assert x.grad().tolist() == [1]
    with pytest.raises(ValueError, match=r"grad: shape \(2,\) does not match the tensor's \(1,\)"):
        x.grad = genesis.ones(2)


def test_grad_of_a_result_whose_gradient_was_retained():
    x = of.Variable([2.0])
    y = x * x
    y.retain_grad()
    (y * 3).grad(retain_graph=True)
    assert y.grad.tolist() == [3] and x.grad.tolist() == [12]
    assert y.grad().tolist() == [4] and x.grad.tolist() == [16]


def test_grad_of_a_failed_backward_leaves_gradients_as_they_were():
    x = of.Variable([2.0])
    y = x * x
    y.sum().backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.grad()
    assert x.grad.tolist() == [4]


def test_second_derivative_by_grad():
    x = of.Variable(2.0)
    first = (x**3).grad(create_graph=True)
    assert first.item() == 12
    (second,) = genesis.autograd.grad(first, x)
    assert second.item() == 12


def test_variables_train_like_parameters():
    w = of.Variable([1.0, 1.0])
    optimizer = genesis.optim.SGD([w], lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    assert w.tolist() == [0, 0] and isinstance(w, of.Variable) and w.is_leaf


def test_copies_and_pickles_are_variables():
    x = of.Variable([1.0, 2.0])
    (x * 2).sum().backward()
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(made) is of.Variable and made.requires_grad and made.tolist() == [1, 2]
    assert copy.deepcopy(x).grad().tolist() == [2, 2]


def test_a_retained_gradient_does_not_keep_its_result_alive():
    x = of.Variable([1.0])
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    kept, seen = y.grad, weakref.ref(y)
    kept.tolist()
    del y
    gc.collect()
    assert seen() is None and kept() is kept


def test_the_namespace():
    assert of.Tensor is of.Variable is genesis.Variable and issubclass(of.Variable, genesis.Tensor)
    assert of.staticmethod is staticmethod and of.no_grad is genesis.no_grad and of.debug is genesis.debug
    assert of.add is genesis.add and of.nn is nn and "relu" in dir(of)
    assert type(of.tensor([1.0])) is of.Variable and not of.tensor([1.0]).requires_grad
    with pytest.raises(AttributeError, match="nothing_there"):
        of.nothing_there  # noqa: B018
