"""What the context of a custom Function keeps: saved tensors, attributes, derivations made by hand."""

import pytest
import torch

import genesis
from genesis.autograd import Context, GraphCycleError


def test_set_creator_by_hand():
    x, w = genesis.ones(2, requires_grad=True), genesis.ones(2, requires_grad=True)
    y = x * w
    y.set_creator(Context(), lambda ctx, grad: (grad * 10, grad * 100))
    (y * 2).sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([20, 20], [200, 200])


def test_a_cycle_made_by_hand_is_an_error():
    a = genesis.tensor(1.0, requires_grad=True)
    b = a * 2
    c = b * 3
    context = Context()
    context.save_for_backward(c)
    b.set_creator(context, lambda ctx, grad: grad)
    with pytest.raises(GraphCycleError, match="no cycles"):
        c.backward()


def test_unwritten_methods_say_so():
    with pytest.raises(NotImplementedError):
        genesis.Function.apply(genesis.ones(1))
    assert isinstance((genesis.ones(1, requires_grad=True) * 2).grad_fn, genesis.Function)


def test_what_to_save_may_be_said_apart():
    def power(lib):
        class Power(lib.autograd.Function):
            @staticmethod
            def forward(x, n):
                return x**n

            @staticmethod
            def setup_context(ctx, inputs, output):
                x, ctx.n = inputs
                ctx.save_for_backward(x, output)

            @staticmethod
            def backward(ctx, grad):
                x, y = ctx.saved_tensors
                return grad * ctx.n * y / x, None

        x = lib.tensor([1.0, 2.0], requires_grad=True)
        Power.apply(x, 3).sum().backward()
        return x.grad.tolist()

    assert power(genesis) == power(torch)


class Twice(genesis.Function):
    read = ()  # what backward found saved

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        Twice.read = ctx.saved_tensors
        return grad * 2


def test_a_custom_function_keeps_its_name_when_its_graph_is_gone():
    x = genesis.ones(3, requires_grad=True)
    y = Twice.apply(x)
    loss = (y * y).sum()
    for _ in range(2):  # the second in one trace computes it
        other = (x * 3).sum()
        other.backward()
    loss.backward()
    x.grad.tolist()
    assert repr(y.grad_fn) == "<TwiceBackward>" and repr(y.grad_fn.next_functions) == "((<AccumulateGrad>, 0),)"
    with pytest.raises(RuntimeError, match="released this graph"):
        genesis.autograd.grad(loss, y)
    with pytest.raises(RuntimeError, match="released this graph"):
        loss.backward()


@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_saved_leaf_is_itself_so_that_gradients_of_it_may_be_asked_for(lib):
    weight = lib.nn.Parameter(lib.tensor([3.0, -1.0]))

    def adjoint(x, parameters):
        """A derivative along several steps that are run anew, of parameters that `backward` knows by what was saved."""
        totals = [lib.zeros(2)] * (1 + len(parameters))
        for _ in range(3):
            y = x.detach().requires_grad_(True)
            with lib.enable_grad():
                found = lib.autograd.grad((y * weight).sum(), (y, *parameters), allow_unused=True)
            totals = [total if grad is None else total + grad for total, grad in zip(totals, found, strict=True)]
            totals[0].tolist()  # what comes next is another program
        return totals

    class Integrated(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, *parameters):
            ctx.steps = 3
            ctx.save_for_backward(x, x * 2, *parameters)
            return x * parameters[0] * 3

        @staticmethod
        def backward(ctx, grad):
            x, twice, *parameters = ctx.saved_tensors
            assert parameters[0] is weight and twice.tolist() == [2.0, 4.0]
            return tuple(grad * total for total in adjoint(x, parameters))

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = Integrated.apply(x, weight)
    assert y.grad_fn.steps == 3 and y.grad_fn.saved_tensors[0] is x
    assert y.view(1, 2).grad_fn.next_functions[0][0].needs_input_grad == (True, True)
    with pytest.raises(AttributeError, match="unheard_of"):
        _ = y.grad_fn.unheard_of
    y.sum().backward()
    assert weight.grad.tolist() == [3.0, 6.0] and x.grad.tolist() == [9.0, -3.0]


def test_a_leaf_that_was_written_since_is_read_as_it_was_saved():
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    y = Twice.apply(x)
    x.data = genesis.tensor([5.0, 5.0])
    y.sum().backward()
    (saved,) = Twice.read
    assert saved is not x and saved.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("lib", [genesis, torch], ids=["genesis", "torch"])
def test_arguments_by_name_have_gradients_and_defaults_are_set_up(lib):
    class Scaled(lib.autograd.Function):
        @staticmethod
        def forward(x, factor=3.0):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor = inputs

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    class Halved(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

        @staticmethod
        def backward(ctx, grad):
            return grad / 2

    x = lib.ones(2, requires_grad=True)
    (Scaled.apply(x).sum() + Halved.apply(x=x).sum()).backward()
    assert x.grad.tolist() == [3.5, 3.5]
