"""genesis.func against torch.func: values, structures, nesting, what stays untouched, errors."""

from collections import Counter, defaultdict
from functools import partial

import numpy as np
import pytest
import torch

import genesis
from genesis import func
from tests.tolerances import assert_close

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script")

A, B = np.random.default_rng(0).standard_normal((2, 3)), np.random.default_rng(1).standard_normal(3)


def same(ours, theirs):
    """Equal structures, and leaves that are close."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, tuple | list):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    else:
        assert_close(ours, theirs, scale=10)


def agree(use):
    """`use(transforms, tensor)` gives the same in genesis and torch."""
    same(use(func, genesis.tensor), use(torch.func, torch.tensor))


# ---- values and structures ----


def loss(params, x):
    return ((x @ params["layer"]["w"].transpose(0, 1) + params["b"][0]).tanh() ** 2).sum()


def parameters(tensor):
    return {"layer": {"w": tensor(A)}, "b": [tensor(B[:2]), tensor(2.0 * B)]}


def test_grad_of_nested_parameters():
    agree(lambda f, t: f.grad(loss)(parameters(t), t(B)))
    agree(lambda f, t: f.grad(loss, argnums=(1, 0))(parameters(t), t(B)))
    agree(lambda f, t: f.grad(lambda x, y: (x.sin() * y).sum(), argnums=-1)(t(A), t(B)))


def test_a_dict_keeps_its_class():
    found = func.grad(lambda p: (p["w"] ** 2).sum())(defaultdict(list, w=genesis.ones(2)))
    assert found["w"].tolist() == [2.0, 2.0] and found["not there"] == []
    assert func.vjp(lambda x: x, Counter(a=1.0))[0] == Counter(a=1.0)


def test_aux_is_passed_on():
    agree(lambda f, t: f.grad(lambda x: ((x * x).sum(), {"twice": x * 2, "n": t(3)}), has_aux=True)(t(B)))
    agree(lambda f, t: f.jacrev(lambda x: (x * x, x.exp()), has_aux=True)(t(B)))
    agree(lambda f, t: f.jacfwd(lambda x: (x * x, x.exp()), has_aux=True)(t(B)))
    agree(lambda f, t: f.jvp(lambda x: (x * x, x.exp()), (t(B),), (t(B),), has_aux=True))
    agree(lambda f, t: f.vjp(lambda x: ((x * x).sum(), x.exp()), t(B), has_aux=True)[::2])


def test_value_and_grad():
    value, gradient = func.value_and_grad(loss)(parameters(genesis.tensor), genesis.tensor(B))
    gradient_of_torch, value_of_torch = torch.func.grad_and_value(loss)(parameters(torch.tensor), torch.tensor(B))
    same((value, gradient), (value_of_torch, gradient_of_torch))
    (value, aux), gradient = func.value_and_grad(lambda x: (x * x, "note"), has_aux=True)(3.0)
    assert (value.item(), aux, gradient.item()) == (9, "note", 6)


def test_vjp_takes_and_gives_trees():
    def function(x, y):
        return {"product": x * y["y"], "sum": [x.sum()]}

    agree(lambda f, t: f.vjp(function, t(A), {"y": t(B)})[1]({"product": t(A + 1), "sum": [t(2.0).double()]})
          if f is torch.func else f.vjp(function, t(A), {"y": t(B)})[1]({"product": t(A + 1), "sum": [2.0]}))
    agree(lambda f, t: f.vjp(function, t(A), {"y": t(B)})[0])


@pytest.mark.parametrize("function", [
    lambda nn, t, x: nn.functional.max_unpool1d(x[:, :2].flatten().view(1, 1, 6), t([[[5, 1, 0, 5, 5, 1]]]), 1),
    lambda nn, t, x: nn.functional.embedding(t([2, 0, 2, 1]), x, padding_idx=2),
    lambda nn, t, x: nn.functional.embedding(t([[2, 0], [2, 1]]), x, padding_idx=0, scale_grad_by_freq=True),
])
def test_tangents_are_those_of_the_values_where_gradients_are_not(function):
    x = np.arange(12.0).reshape(3, 4)
    for derivative in (
        lambda f, of, x: f.jvp(of, (x,), (x * x,)), lambda f, of, x: f.jacfwd(of)(x), lambda f, of, x: f.jacrev(of)(x),
    ):
        same(*[derivative(lib.func, lambda v, lib=lib: function(lib.nn, lib.tensor, v), lib.tensor(x))
               for lib in (genesis, torch)])


@pytest.mark.parametrize("function", [
    lambda f, x: x, lambda f, x: x.exp(), lambda f, x: f.grad(lambda y: (y**3).sum())(x),
    lambda f, x: f.jacrev(lambda y: (y**3).sum())(x), lambda f, x: f.jvp(lambda y: y**3, (x,), (x,))[1],
])
def test_transforms_derive_where_gradients_are_off(function):
    found = []
    for f, x, off in ((func, genesis.tensor(B), genesis.no_grad), (torch.func, torch.tensor(B), torch.no_grad)):
        of = partial(function, f)
        with off():
            found.append((f.jvp(of, (x,), (x,)), f.jacfwd(of)(x), f.jacrev(of)(x), f.vjp(of, x)[1](x)))
    same(*found)


def test_jvp_takes_and_gives_trees():
    agree(lambda f, t: f.jvp(lambda x, y: (x * y["y"], [y["y"].exp()]), (t(A), {"y": t(B)}), (t(A + 1), {"y": t(B - 1)})))
    agree(lambda f, t: f.jvp(lambda x, y: (x * 2, y.detach()), (t(A), t(B)), (t(A + 1), t(B - 1))))


JACOBIANS = {
    "one": (lambda x: x.exp() * x.sum(), {}),
    "a tuple": (lambda x: (x.exp(), x.sum()), {}),
    "a dict": (lambda x: {"a": x[:, 1:] ** 2, "b": [x.sum(0)]}, {}),
    "not dependent": (lambda x: (x * x, x.detach()), {}),
    "0-d": (lambda x: (x**3).sum(), {}),
}


@pytest.mark.parametrize("transform", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians(name, transform):
    function, _ = JACOBIANS[name]
    agree(lambda f, t: getattr(f, transform)(function)(t(A)))
    agree(lambda f, t: getattr(f, transform)(lambda x, y: function(x * y), argnums=(0, 1))(t(A), t(B)))


def test_hessians():
    agree(lambda f, t: f.hessian(lambda x: (x.sin() ** 2).sum() * x.sum())(t(A)))
    agree(lambda f, t: f.hessian(lambda p: (p["a"] * p["b"]).sum() ** 2)({"a": t(A), "b": t(B)}))
    agree(lambda f, t: f.hessian(lambda x, y: (x * y).exp().sum(), argnums=(0, 1))(t(A), t(B)))


def test_keywords_are_passed_and_not_differentiated():
    agree(lambda f, t: f.grad(lambda x, *, y: (x * y).sum())(t(A), y=t(B)))


# ---- nesting ----


def test_transforms_compose():
    for use in (
        lambda f, t: f.grad(f.grad(f.grad(lambda x: x**4 + x.sin())))(t(0.7)),
        lambda f, t: f.jacrev(f.grad(lambda x: (x**3).sum() * x.sum()))(t(B)),
        lambda f, t: f.jacfwd(f.jacrev(lambda x: x.exp() * x[0]))(t(B)),
        lambda f, t: f.jacrev(f.jacfwd(lambda x: x.exp() * x[0]))(t(B)),
        lambda f, t: f.grad(lambda x: f.jacrev(lambda y: y**3)(x).sum())(t(B)),
        lambda f, t: f.jvp(f.grad(lambda x: (x**4).sum()), (t(B),), (t(B),)),
        lambda f, t: f.grad(lambda x: f.vjp(lambda y: y**3, x)[1](x)[0].sum())(t(B)),
        lambda f, t: f.grad(lambda x: f.jvp(lambda y: y**3, (x,), (x,))[1].sum())(t(B)),
        lambda f, t: f.vjp(f.grad(lambda x: (x**3).sum()), t(B))[1](t(B)),
        lambda f, t: f.grad(lambda x: (f.hessian(lambda y: (y**4).sum())(x)).sum())(t(B)),
    ):
        agree(use)


def test_an_inner_gradient_is_by_its_own_argument_alone():
    agree(lambda f, t: f.grad(lambda x: x * f.grad(lambda y: x + y)(t(1.0)))(t(1.0)))
    agree(lambda f, t: f.grad(lambda x: x * f.grad(lambda y: x * y)(x))(t(3.0)))
    agree(lambda f, t: f.grad(lambda x: f.grad(lambda y: y * y.sum() * x.detach())(x) * x)(t(3.0)))
    agree(lambda f, t: f.grad(lambda x: (x * f.grad(lambda y: (x * y).sin().sum())(x * 2)).sum())(t(B)))


def test_an_inner_autograd_grad_composes():
    def function(x):
        y = x * 1
        (g,) = genesis.autograd.grad((y**3).sum(), y, create_graph=True)
        return g.sum()

    assert func.grad(function)(genesis.tensor([1.0, 2.0])).tolist() == [6, 12]


def test_results_require_grad_only_through_the_callers_tensors():
    assert not func.grad(lambda x: x**3)(genesis.tensor(2.0)).requires_grad
    value, pullback = func.vjp(lambda x: x**3, genesis.tensor(2.0))
    assert not value.requires_grad and not pullback(genesis.tensor(1.0))[0].requires_grad
    w = genesis.tensor(3.0, requires_grad=True)
    found = func.grad(lambda x: x * x * w)(genesis.tensor(2.0))
    found.backward()
    assert w.grad.item() == 4
    func.grad(lambda x: x**3)(w).backward()
    assert w.grad.item() == 4 + 18
    pullback(w)[0].backward()
    assert w.grad.item() == 22 + 12
    with genesis.no_grad():
        assert not func.grad(lambda x: x**3)(w).requires_grad
        assert func.grad(func.grad(lambda x: x**3))(w).item() == 18


def test_a_leaf_of_the_callers_comes_back_requiring_grad_before_and_after_it_is_computed():
    leaf = genesis.ones(3, requires_grad=True)
    for _ in range(2):
        (_, returned), _ = func.vjp(lambda x: (x * 1, leaf), genesis.zeros(3))
        assert returned.requires_grad
        leaf.tolist()


def test_what_the_function_captured_is_found_across_a_look():
    w = genesis.tensor(3.0, requires_grad=True)

    def function(x):
        y = w * x
        y.item()
        return y * x

    found = func.grad(function)(genesis.tensor(2.0))
    assert found.requires_grad
    found.backward()
    assert w.grad.item() == 4
    assert not func.grad(lambda x: (function(x) / w.item()).detach() * x)(genesis.tensor(2.0)).requires_grad


def test_a_loop_of_steps_does_not_grow():
    w = genesis.tensor([1.0, 2.0])
    for _ in range(3):
        w = w - 0.1 * func.grad(lambda w: (w * w).sum())(w)
        assert not w.requires_grad and w.is_leaf
    np.testing.assert_allclose(w.numpy(), np.array([1.0, 2.0]) * 0.8**3, rtol=1e-6)


# ---- what is left alone ----


def test_the_callers_tensors_are_not_touched():
    x, y = genesis.tensor(B), genesis.tensor(B, requires_grad=True)
    for z in (x, y):
        func.grad(lambda z: (z * z).sum())(z).tolist()
        func.jacrev(genesis.exp)(z).tolist()
        assert z.grad is None and z.is_leaf
    assert not x.requires_grad and y.requires_grad


def test_the_function_sees_tensors_that_require_grad():
    seen, ones = [], genesis.ones(2)
    func.grad(lambda x, y: [seen.append((x.requires_grad, y.requires_grad)), (x * y).sum()][1])(ones, ones)
    assert seen == [(True, False)]


def test_a_function_may_overwrite_its_argument():
    x = genesis.tensor(B)

    def function(x):
        x.mul_(2)
        x[0] = x[1].clone() * x[2].clone()
        return (x**3).sum()

    _, b, c = B
    expected = [0, 3 * (4 * b * c) ** 2 * 4 * c + 3 * (2 * b) ** 2 * 2, 3 * (4 * b * c) ** 2 * 4 * b + 3 * (2 * c) ** 2 * 2]
    np.testing.assert_allclose(func.grad(function)(x).numpy(), expected, rtol=1e-12)
    np.testing.assert_array_equal(x.numpy(), B)
    np.testing.assert_allclose(func.grad(lambda y: function(y * 1.0))(x).numpy(), expected, rtol=1e-12)


def test_all_rows_belong_to_one_program():
    genesis.debug.reset_stats()
    func.jacrev(lambda x: {"a": (x * x).softmax(-1), "b": x.exp()})(genesis.tensor(A))["a"].tolist()
    assert genesis.debug.stats()["flushes"] == 1
    genesis.debug.reset_stats()
    func.hessian(lambda x: (x.sin() ** 2).sum())(genesis.tensor(B)).tolist()
    assert genesis.debug.stats()["flushes"] == 1


def test_a_second_call_plans_nothing():
    for _ in range(2):
        genesis.debug.reset_stats()
        func.jacrev(lambda x: x.tanh() * x.sum())(genesis.tensor(A)).tolist()
    assert genesis.debug.stats()["plans_built"] == 0


# ---- errors ----


def test_errors():
    x = genesis.tensor(B)
    with pytest.raises(ValueError, match=r"grad: the function must return a 0-d floating tensor, got one of shape \(3,\)"):
        func.grad(genesis.exp)(x)
    with pytest.raises(ValueError, match="0-d floating tensor, got tuple"):
        func.grad(lambda x: (x.sum(), x))(x)
    with pytest.raises(ValueError, match=r"0-d floating tensor, got one of shape \(\) and dtype int64"):
        func.grad(lambda x: x.argmax())(x)
    with pytest.raises(TypeError, match="got a tensor of int64; choose others with argnums"):
        func.grad(lambda x: x.sum())(genesis.tensor([1, 2]))
    with pytest.raises(TypeError, match="got a str"):
        func.grad(lambda p: p["x"])({"x": "y"})
    with pytest.raises(IndexError, match="argnums has 1, but the function is called with 1 arguments"):
        func.grad(lambda x: x.sum(), argnums=1)(x)
    with pytest.raises(TypeError, match="jacrev: the function must return tensors, got a int"):
        func.jacrev(lambda x: (x, 3))(x)
    with pytest.raises(TypeError, match=r"has_aux the function must return a pair"):
        func.grad(lambda x: x.sum(), has_aux=True)(x)
    with pytest.raises(ValueError, match=r"cotangents have the shapes \[\(\)\]; want \[\(3,\)\]"):
        func.vjp(genesis.exp, x)[1](genesis.tensor(1.0))
    with pytest.raises(ValueError, match=r"tangents have the shapes \[\(3,\), \(3,\)\]; want \[\(3,\)\]"):
        func.jvp(genesis.exp, (x,), (x, x))
    assert genesis.is_grad_enabled()


# ---- modules ----


def test_functional_call():
    model = genesis.nn.Sequential(genesis.nn.Linear(3, 4), genesis.nn.Tanh(), genesis.nn.Linear(4, 1)).to(genesis.float64)
    params = {path: p.detach() for path, p in model.named_parameters()}
    x = genesis.tensor(A)

    def loss(params):
        return (func.functional_call(model, params, (x,)) ** 2).mean()

    (model(x) ** 2).mean().backward()
    same(func.grad(loss)(params), {path: p.grad for path, p in model.named_parameters()})
    half = {"2.bias": genesis.zeros(1, dtype=genesis.float64)}
    assert_close(func.functional_call(model, half, x), model(x) - model[2].bias)
    before = dict(model.named_parameters())
    with pytest.raises(KeyError, match=r"no parameter or buffer '1\.weight'"):
        func.functional_call(model, {"1.weight": x}, x)
    with pytest.raises(ValueError, match="does not fit weight"):
        func.functional_call(model, {"0.weight": genesis.ones(4, 2)}, x)
    assert all(before[path] is p for path, p in model.named_parameters())


def test_functional_call_replaces_a_shared_parameter_everywhere():
    a, b = genesis.nn.Linear(2, 2, bias=False), genesis.nn.Linear(2, 2, bias=False)
    b.weight = a.weight
    model = genesis.nn.Sequential(a, b)
    doubled = func.functional_call(model, {"0.weight": 2 * genesis.eye(2)}, genesis.ones(2))
    assert doubled.tolist() == [4, 4]
