"""genesis.autograd.functional against torch.autograd.functional."""

import contextlib

import numpy as np
import pytest
import torch

import genesis
from genesis.autograd import functional
from tests.tolerances import assert_close

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script")

A, B = np.random.default_rng(0).standard_normal((2, 3)), np.random.default_rng(1).standard_normal(3)
MANY = {
    "several": (lambda x, y: ((x.exp() * y).sum(1), (y * y).sum(), x.tanh() @ y), (A, B)),
    "one": (lambda x: x.sin() * x, (A,)),
    "not dependent": (lambda x, y: (x * x, y.sum()), (A, B)),
    "constant": (lambda x: x.detach() * 2, (B,)),
    "0-d": (lambda x: x * x, (np.array(1.5),)),
    "in place": (lambda x: x.clone().mul_(x)[1:], (B,)),
    "views": (lambda x, y: x.reshape(3, 2).transpose(0, 1) * y, (A, B)),
}
ONE = {
    "two": (lambda x, y: ((x.sin() @ y) ** 2).sum(), (A, B)),
    "one": (lambda x: (x**3).sum() * x.sum(), (A,)),
    "linear": (lambda x: x.sum(), (A,)),
    "not dependent": (lambda x, y: (x**3).sum(), (A, B)),
    "one element": (lambda x: (x * x).sum(0, keepdim=True), (B,)),
}


def both(arrays, function, *more):
    """What the function of each library makes of tensors with these values (a tensor alone for a single one)."""
    results = []
    for library in (functional, torch.autograd.functional):
        make = genesis.tensor if library is functional else torch.tensor
        tensors = [tuple([make(a) for a in each]) if isinstance(each, tuple) else each for each in (arrays, *more)]
        tensors = [each[0] if isinstance(each, tuple) and len(each) == 1 else each for each in tensors]
        results.append(function(library, *tensors))
    return results


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("name", MANY)
def test_jacobian(name, strategy):
    func, arrays = MANY[name]
    options = {"strategy": strategy, "vectorize": True}
    assert_close(*both(arrays, lambda f, x: f.jacobian(func, x, **(options if f is functional else {}))))


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("name", ONE)
def test_hessian(name, strategy):
    func, arrays = ONE[name]
    options = {"outer_jacobian_strategy": strategy, "vectorize": True}
    assert_close(*both(arrays, lambda f, x: f.hessian(func, x, **(options if f is functional else {}))))


@pytest.mark.parametrize("name", MANY)
def test_vjp_and_jvp(name):
    func, arrays = MANY[name]
    result = func(*[torch.tensor(a) for a in arrays])
    like = result if isinstance(result, tuple) else (result,)
    cotangents = tuple([np.cos(np.arange(y.numel())).reshape(y.shape) for y in like])
    assert_close(*both(arrays, lambda f, x, v: f.vjp(func, x, v), cotangents))
    tangents = tuple([a * 2 + 1 for a in arrays])
    assert_close(*both(arrays, lambda f, x, v: f.jvp(func, x, v), tangents))


@pytest.mark.parametrize("product", ["vhp", "hvp"])
@pytest.mark.parametrize("name", ONE)
def test_products_with_the_hessian(name, product):
    func, arrays = ONE[name]
    assert_close(*both(arrays, lambda f, x, v: getattr(f, product)(func, x, v), tuple([a * 2 + 1 for a in arrays])))


def test_without_create_graph_nothing_requires_a_gradient():
    x = genesis.tensor(B, requires_grad=True)
    results = [
        functional.jacobian(genesis.sin, x), functional.hessian(lambda x: (x**3).sum(), x),
        *functional.vjp(genesis.sin, x, x), *functional.jvp(genesis.sin, x, x), *functional.hvp(lambda x: (x**3).sum(), x, x),
    ]
    assert not any(y.requires_grad for y in results)
    assert x.grad is None and x.is_leaf


def test_create_graph_leads_back_to_the_inputs():
    for take in (
        lambda f, x: f.jacobian(lambda x: x.exp() * x, x, create_graph=True),
        lambda f, x: f.hessian(lambda x: (x**4).sum(), x, create_graph=True),
        lambda f, x: f.vjp(lambda x: x**3, x, x, create_graph=True)[1],
        lambda f, x: f.jvp(lambda x: x**3, x, x, create_graph=True)[1],
        lambda f, x: f.hvp(lambda x: (x**4).sum(), x, x, create_graph=True)[1],
    ):
        grads = []
        for library, make in ((functional, genesis.tensor), (torch.autograd.functional, torch.tensor)):
            x = make(B, requires_grad=True)
            (take(library, x) ** 2).sum().backward()
            grads.append(x.grad)
        assert_close(*grads, scale=10)


def test_strict_refuses_what_does_not_depend():
    x, y = genesis.tensor(A), genesis.tensor(B)
    for call in (
        lambda: functional.jacobian(lambda x, y: x * 2, (x, y), strict=True),
        lambda: functional.vjp(lambda x, y: x.sum(), (x, y), strict=True),
        lambda: functional.hessian(lambda y: y.sum(), y, strict=True),
        lambda: functional.hvp(lambda y: y.sum(), y, y, strict=True),
        lambda: functional.jvp(lambda y: y.detach(), y, y, strict=True),
    ):
        with pytest.raises(RuntimeError, match=r"does not depend on number \d of what it is differentiated by"):
            call()


def test_errors():
    x = genesis.tensor(A)
    with pytest.raises(TypeError, match="input 0 is int64"):
        functional.jacobian(genesis.sin, genesis.tensor([1, 2]))
    with pytest.raises(TypeError, match="outputs must be a tensor or a tuple of tensors, got a list"):
        functional.jacobian(lambda x: [x], x)
    with pytest.raises(TypeError, match="inputs must be a tensor or a tuple of tensors, got a float"):
        functional.vjp(lambda x: x, 1.0)
    with pytest.raises(RuntimeError, match=r"one tensor with one element, got shape \(2, 3\)"):
        functional.hessian(genesis.sin, x)
    with pytest.raises(RuntimeError, match="v can be left out only for a single output with one element"):
        functional.vjp(genesis.sin, x)
    with pytest.raises(ValueError, match=r"v has the shapes \[\(3,\)\]; want those of the inputs, \[\(2, 3\)\]"):
        functional.jvp(genesis.sin, x, genesis.tensor(B))
    with pytest.raises(ValueError, match="strategy must be"):
        functional.jacobian(genesis.sin, x, strategy="sideways")


def test_all_rows_belong_to_one_program():
    weights = genesis.tensor(np.random.default_rng(2).standard_normal((3, 7)))
    for take in (
        lambda: functional.jacobian(lambda x: (x @ weights).tanh().softmax(-1), genesis.tensor(A)),
        lambda: functional.hessian(lambda x: (x @ weights).tanh().sum(), genesis.tensor(A)),
    ):
        genesis.debug.reset_stats()
        take().tolist()
        assert genesis.debug.stats()["flushes"] == 1


@pytest.mark.parametrize("mode", [contextlib.nullcontext, genesis.eager])
def test_vectorized_rows_are_pulled_at_once_in_eager_mode_too(mode):
    pulled = []

    def bent(x):
        y = x.sin()
        y.register_hook(lambda g: pulled.append(g.shape))
        return y * x

    with mode():
        rows = functional.jacobian(bent, genesis.tensor(B), vectorize=True)
    expected = torch.autograd.functional.jacobian(lambda x: x.sin() * x, torch.tensor(B))
    assert_close(rows, expected)
    assert len(pulled) == 1
