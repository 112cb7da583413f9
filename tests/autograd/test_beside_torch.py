"""Programs whose gradients, memory and refusals are torch's."""

import numpy as np
import pytest
import torch

import genesis
from genesis.autograd import forward_ad

BOTH = [genesis, torch]


@pytest.mark.parametrize("lib", BOTH)
def test_gradients_share_no_memory_with_others(lib):
    class Sum(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, gradient):
            seen.append(gradient)
            return gradient, gradient

    seen = []
    a, b, c, d, e = (lib.ones(2, 3, requires_grad=True) for _ in range(5))
    seed = lib.ones(2, 3)
    (a + b).backward(seed)
    c.backward(seed)
    Sum.apply(d, e).backward(seed)
    for leaf in (a, c, d):
        leaf.grad.numpy()[:] = 7
    assert all((x == 1).all() for x in (b.grad, e.grad, seed, *seen))


def test_gradients_of_gradients_pass_the_copies():
    found = []
    for lib in BOTH:
        a, b, weight = (lib.tensor([2.0, 3.0], requires_grad=True) for _ in range(3))
        (a + b).backward(weight, create_graph=True)
        (a.grad * b.grad).sum().backward()
        found.append(weight.grad.tolist())
    assert found[0] == found[1] == [4.0, 6.0]


NAN = float("nan")


@pytest.mark.parametrize("values", [[1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [NAN, NAN, NAN], [1.0, NAN, NAN], [4.0, 2.0, 3.0, 3.0]])
@pytest.mark.parametrize("name", ["min", "max", "median", "nanmedian"])
def test_the_gradient_of_an_extremum_is_shared_by_all_that_attain_it(name, values):
    found = []
    for lib in BOTH:
        x = lib.tensor(values, requires_grad=True)
        getattr(lib, name)(x).backward()
        found.append(x.grad.tolist())
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("values", [[[1.0, NAN, 3.0]], [[1.0], [NAN]], [[1.0, NAN, 3.0], [1.0, 2.0, 2.0]]])
def test_the_gradient_of_a_row_with_nan_is_nan_however_many_rows_there_are(values, dim):
    found = []
    for lib in BOTH:
        x = lib.tensor(values, requires_grad=True)
        lib.amax(x, dim).sum().backward()
        found.append(x.grad.tolist())
    np.testing.assert_allclose(*found)


def test_a_view_that_retains_its_gradient_does_so_after_writes():
    found = []
    for lib in BOTH:
        leaf = lib.tensor([1.0, 2.0], requires_grad=True)
        base = leaf * 3
        part, other = base[:1], base[1:]
        for x in (part, other, base):
            x.retain_grad()
        part.mul_(2)
        (part * base[:1] + other).sum().backward()
        base = leaf * 3
        view = base[:1]
        view.retain_grad()
        base.mul_(2)
        (view * view).sum().backward()
        found.append([x.grad.tolist() for x in (leaf, part, other, view)])
    assert found[0] == found[1]


@pytest.mark.parametrize("records", [True, False])
def test_views_of_the_whole_retain_gradients_of_their_own_after_writes(records):
    found = []
    for lib in BOTH:
        base = lib.ones(2, requires_grad=True) * 1
        first, second = base[:], base[:]
        for x in (base, first, second):
            x.retain_grad()
        with lib.set_grad_enabled(records):
            base.mul_(2)
        (first * first + second * 3 + base * 5).sum().backward()
        found.append([x.grad.tolist() for x in (first, second)] + ([base.grad.tolist()] if records else []))
    assert found[0] == found[1]


@pytest.mark.parametrize("lib", BOTH)
def test_retained_gradients_share_no_memory(lib):
    leaf, other = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    first = leaf * 2
    second = first + other
    second.backward(lib.ones(2), inputs=[first, second, other])
    first.grad.numpy()[:] = 7
    assert second.grad.tolist() == other.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("lib", BOTH)
def test_the_edge_of_a_leaf_is_its_accumulation(lib):
    leaf = lib.ones(2, requires_grad=True)
    edge = lib.autograd.graph.get_gradient_edge(leaf)
    assert edge.output_nr == 0 and edge.node.variable is leaf and edge.node == (leaf * 2).grad_fn.next_functions[0][0]


@pytest.mark.parametrize("call", [
    lambda lib, x: lib.unique(x), lambda lib, x: lib.unique(x, dim=0), lambda lib, x: lib.unique_consecutive(x),
    lambda lib, x: lib.unique(x, return_counts=True)[0],
])
def test_distinct_elements_have_no_gradient_and_say_so(call):
    for lib in BOTH:
        x = lib.tensor([1.0, 2.0, 2.0], requires_grad=True)
        found = call(lib, x)
        assert found.requires_grad and found.tolist() == [1.0, 2.0]
        with pytest.raises(NotImplementedError):
            (found.sum() + x.sum()).backward()
        assert not call(lib, x.detach()).requires_grad


@pytest.mark.parametrize("lib", BOTH)
def test_what_is_refused(lib):
    x = lib.ones(2, requires_grad=True)
    x.sum().backward()
    del x.grad
    assert x.grad is None
    with lib.inference_mode():
        inferred = lib.ones(2, 3)

    def changes(t):
        t += 1
        return t

    def packed():
        with lib.autograd.graph.saved_tensors_hooks(changes, lambda t: t):
            x.exp()

    levels = lib.autograd.forward_ad if lib is torch else forward_ad
    with levels.dual_level():
        dual = levels.make_dual(lib.ones(2), lib.ones(2))
        for call in (
            lambda: setattr(x, "grad", x), lambda: setattr(x, "data", lib.tensor([1, 2])), lambda: inferred.t_(),
            lambda: inferred.resize_(4), lambda: lib.autograd.backward([x.sum()], inputs=[]), packed,
            lambda: levels.make_dual(lib.ones(2), dual),
        ):
            with pytest.raises(RuntimeError):
                call()
        with pytest.raises(ValueError):
            levels.make_dual(lib.ones(2), lib.ones(2, dtype=lib.int64))


@pytest.mark.parametrize("lib", BOTH)
def test_vjp_is_another_name_of_backward(lib):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, gradient):
            return gradient * 2

    class Both(Double):
        backward = Double.vjp

    x = lib.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError):
        Both.apply(x).sum().backward()


@pytest.mark.parametrize("lib", BOTH)
def test_a_second_derivative_does_not_call_a_modules_hook(lib):
    calls = []
    loss = lib.nn.MSELoss()
    loss.register_full_backward_hook(lambda *seen: calls.append(len(seen)))
    x = lib.ones(2, requires_grad=True)
    (slope,) = lib.autograd.grad(loss(x, lib.zeros(2)), x, create_graph=True)
    slope.sum().backward()
    assert calls == [3] and x.grad.tolist() == [1.0, 1.0]


def test_eigenvalues_by_iteration_have_no_gradient_and_say_so():
    a = genesis.diag(genesis.arange(1.0, 13.0)).requires_grad_()
    for found in genesis.lobpcg(a, k=1):
        with pytest.raises(NotImplementedError, match="lobpcg has no gradient"):
            (found.sum() + a.sum()).backward()
    assert not genesis.lobpcg(a.detach(), k=1)[0].requires_grad
