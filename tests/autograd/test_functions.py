"""Custom Functions against torch's, run by the same code; and what is genesis' own: they fuse."""


import pytest
import torch

import genesis
from genesis.autograd import once_differentiable
from tests.collector import without_collector


def cube(lib):
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    return Cube.apply


def logistic(lib):
    class Logistic(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = 1 / (1 + (-x).exp())
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * y * (1 - y)

    return Logistic.apply


def polar(lib):
    class Polar(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            r, angle = (x * x + y * y).sqrt(), lib.atan2(y, x)
            ctx.save_for_backward(x, y, r)
            return r, angle

        @staticmethod
        def backward(ctx, gr, ga):
            x, y, r = ctx.saved_tensors
            return gr * x / r - ga * y / r**2, gr * y / r + ga * x / r**2

    return Polar.apply


def scaled_through(lib):
    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    return lambda x: Scale.apply(x, 3.0)


DATA = [[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]]
PROGRAMS = {
    "cube": lambda lib, x: (cube(lib)(x) * x).sum(),
    "saved result": lambda lib, x: (logistic(lib)(x * 2) * x).sum(),
    "two results": lambda lib, x: (polar(lib)(x, x * x + 1)[0] * polar(lib)(x, x + 3)[1]).sum(),
    "one result unused": lambda lib, x: polar(lib)(x.sin(), x * x + 1)[1].sum(),
    "a number among the arguments": lambda lib, x: scaled_through(lib)(x.exp()).sum(),
    "nested": lambda lib, x: cube(lib)(logistic(lib)(cube(lib)(x)).mean(0)).sum(),
}


def derivatives(lib, program, looks):
    """First, second derivative, and the second gradient of a mixture; a `looks` program reads values between."""
    x = lib.tensor(DATA, dtype=lib.float64, requires_grad=True)
    loss = program(lib, x)
    if looks:
        loss.item()
    (first,) = lib.autograd.grad(loss, x, create_graph=True)
    if looks:
        first.tolist()
    (second,) = lib.autograd.grad((first * first).sum() + loss, x)
    return first.tolist(), second.tolist()


@pytest.mark.parametrize("looks", [False, True], ids=["pending", "flushed"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_torchs(name, looks):
    ours, theirs = derivatives(genesis, PROGRAMS[name], looks), derivatives(torch, PROGRAMS[name], looks)
    for got, want in zip(ours, theirs, strict=True):
        torch.testing.assert_close(torch.tensor(got), torch.tensor(want), rtol=1e-9, atol=1e-12)


def test_a_custom_function_in_a_fused_chain_adds_no_kernel():
    def kernels(step):
        genesis.zeros(1).item()
        before = genesis.debug.stats()
        x = genesis.ones(64, requires_grad=True)
        step(x.sin()).cos().sum().backward()
        program = genesis.debug.program(x.grad)
        assert x.grad.tolist()
        assert genesis.debug.stats()["flushes"] == before["flushes"] + 1
        return len(program.kernels)

    assert kernels(cube(genesis)) == kernels(lambda x: x**3)


def test_forward_and_backward_run_when_their_lines_do_and_see_values():
    seen = []

    class Watched(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(("forward", x.tolist()))
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append(("backward", grad.tolist(), ctx.saved_tensors[0].tolist()))
            return grad * 2

    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    y = Watched.apply(x * 3)
    assert seen == [("forward", [3, 6])]
    (y * y).sum().backward()
    assert seen[1:] == [("backward", [12, 24], [3, 6])]
    assert x.grad.tolist() == [72, 144]


def test_needs_input_grad_and_grad_mode_inside():
    class Asking(genesis.Function):
        @staticmethod
        def forward(ctx, a, b, c):
            assert ctx.needs_input_grad == (True, False, False)
            assert a.requires_grad and not genesis.is_grad_enabled()
            return a + b

        @staticmethod
        def backward(ctx, grad):
            assert not genesis.is_grad_enabled()
            return grad, None, None

    a = genesis.ones(2, requires_grad=True)
    Asking.apply(a, genesis.ones(2), "c").sum().backward()
    assert a.grad.tolist() == [1, 1]


def test_under_no_grad_nothing_is_recorded():
    with genesis.no_grad():
        y = cube(genesis)(genesis.ones(2, requires_grad=True))
    assert not y.requires_grad and y.grad_fn is None


def test_under_no_grad_an_argument_that_is_returned_comes_back_detached():
    class Same(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    x = genesis.ones(2, requires_grad=True)
    with genesis.no_grad():
        y = Same.apply(x)
    y.add_(1)
    assert (y.requires_grad, x.tolist()) == (False, [2, 2])


def test_results_that_carry_no_gradient():
    class Sorted(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            sign = x.sign()
            ctx.mark_non_differentiable(sign)
            ctx.save_for_backward(order)
            return values, order, sign

        @staticmethod
        def backward(ctx, grad, no_order, no_sign):
            assert no_order is not None and no_sign.tolist() == [0, 0, 0]
            (order,) = ctx.saved_tensors
            return genesis.zeros(3).scatter(0, order, grad)

    x = genesis.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, order, sign = Sorted.apply(x)
    assert values.requires_grad and not order.requires_grad and not sign.requires_grad
    (values * genesis.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100, 1, 10]


def test_gradients_may_be_left_as_none():
    class Halves(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x[:1] * 2, x[1:] * 3

        @staticmethod
        def backward(ctx, first, second):
            assert first is None
            return genesis.cat([genesis.zeros(1), second * 3])

    x = genesis.ones(2, requires_grad=True)
    Halves.apply(x)[1].sum().backward()
    assert x.grad.tolist() == [0, 3]


class Swap(genesis.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        return b * 1, a * 1

    @staticmethod
    def backward(ctx, g, h):
        return None if h is None else h * 3, None if g is None else g * 2


@pytest.mark.parametrize("looked_at", [False, True])
def test_backward_is_asked_whichever_results_a_gradient_comes_to(looked_at):
    for chosen in (0, 1):
        a, b = genesis.ones(3, requires_grad=True), genesis.ones(3, requires_grad=True)
        results = Swap.apply(a, b)
        if looked_at:
            assert results[0].tolist() == [1, 1, 1]
        results[chosen].backward(genesis.ones(3))
        expected = [(None, [2, 2, 2]), ([3, 3, 3], None)][chosen]
        assert tuple(None if leaf.grad is None else leaf.grad.tolist() for leaf in (a, b)) == expected


def test_wide_gradients_are_summed_to_their_arguments():
    class Add(genesis.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    a, b = genesis.ones(2, 3, requires_grad=True), genesis.ones(3, requires_grad=True)
    Add.apply(a, b).sum().backward()
    assert (a.grad.shape, b.grad.tolist()) == ((2, 3), [2, 2, 2])


@pytest.mark.parametrize(("answer", "error"), [
    (lambda g: (g, None, g), r"returned 3 gradients for 1 arguments"),
    (lambda g: g[:1], r"gradient 0 has shape \(1,\); want the argument's \(2,\)"),
    (lambda g: 3.0, r"gradient 0 is float; want a tensor or None"),
])
def test_wrong_answers_of_backward_are_named(answer, error):
    class Wrong(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return answer(grad)

    x = genesis.ones(2, requires_grad=True)
    with pytest.raises((RuntimeError, TypeError), match="Wrong.backward: " + error):
        Wrong.apply(x).sum().backward()
    assert x.grad is None


def test_an_argument_changed_in_place():
    class AddInto(genesis.Function):
        @staticmethod
        def forward(ctx, a, b):
            a.add_(b)
            return a

        @staticmethod
        def backward(ctx, grad):
            return grad, grad * 10

    a, b = genesis.ones(2, requires_grad=True), genesis.ones(2, requires_grad=True)
    alias = AddInto.apply(a, b)
    assert alias is not a and a.is_leaf and a.tolist() == [2, 2]
    (alias * alias).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([4, 4], [40, 40])
    x = genesis.ones(2, requires_grad=True)
    h = x * 3
    assert AddInto.apply(h, b) is h
    (h * h).sum().backward()
    assert x.grad.tolist() == [24, 24]


def test_a_second_backward_is_refused_unless_the_graph_is_kept():
    x = genesis.ones(2, requires_grad=True)
    y = cube(genesis)(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_once_differentiable_refuses_the_second_derivation():
    class Once(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    x = genesis.tensor(3.0, requires_grad=True)
    Once.apply(x).backward()
    assert x.grad.item() == 6
    (first,) = genesis.autograd.grad(Once.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


def test_what_was_saved_dies_with_the_results():
    x = genesis.ones(10_000, requires_grad=True)
    apply = cube(genesis)
    apply(x * 1).sum().item()
    with without_collector():
        held = []
        for _ in range(5):
            y = logistic(genesis)(apply(x * 2))
            y.sum().item()
            del y
            held.append(genesis.runtime.memory.memory_stats().held)
        assert held[-1] < held[0] + x.nbytes  # a plan keeps the memory of small results, here of the sums


def returned(lib, forward):
    class Returned(lib.autograd.Function):
        @staticmethod
        def backward(ctx, *gradients):
            return gradients[0] * 3

    Returned.forward = staticmethod(lambda ctx, x: forward(x))
    return Returned.apply


@pytest.mark.parametrize("forward", [lambda x: x, lambda x: x.view_as(x), lambda x: x.view(-1), lambda x: (x.t(),)])
@pytest.mark.parametrize("leaf", [True, False])
def test_what_is_returned_of_an_argument_shares_its_storage(forward, leaf):
    found = []
    for lib in (genesis, torch):
        x = lib.arange(6.0).view(2, 3).requires_grad_()
        h = x if leaf else x * 2
        y = returned(lib, forward)(h)
        y = y[0] if isinstance(y, tuple) else y
        same = y.data_ptr() == h.data_ptr()
        with lib.no_grad():
            h.mul_(2)
        found.append((same, y.tolist(), y.shape))
    assert found[0] == found[1] and found[0][0]


def test_gradients_of_returned_arguments_are_the_functions():
    for forward in (lambda x: x, lambda x: x.view(-1)):
        x = genesis.arange(6.0).view(2, 3).requires_grad_()
        returned(genesis, forward)(x * 2).sum().backward() if forward(x).ndim == 2 else None
        assert x.grad is None or x.grad.unique().tolist() == [6]
    x = genesis.arange(6.0).view(2, 3).requires_grad_()
    h = x * 2
    y = returned(genesis, lambda x: x)(h)
    y.mul_(5)  # written in its argument's storage, derived through the function
    assert h.tolist() == (x * 10).tolist()
    (y * 1).sum().backward()
    assert x.grad.unique().tolist() == [30]
