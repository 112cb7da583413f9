"""S2: what the article on OneFlow's autograd promises, through `genesis.oneflow`. A test is named for its row."""

import numpy as np
import pytest

import genesis
import genesis.oneflow as of
from tests.contract.documents import document


def square(counted=None):
    """The article's Function, x * x; `counted` takes down its calls of backward."""

    class MyFunction(of.Function):
        @of.staticmethod
        def forward(ctx, input):
            output = input * input
            ctx.save_for_backward(input)
            return output

        @of.staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            if counted is not None:
                counted.append(1)
            return 2 * input * grad_output

    return MyFunction


def test_s2_1_function_is_at_the_top():
    assert of.Function is genesis.Function and issubclass(square(), of.Function)


def test_s2_2_staticmethod_is_exported():
    assert of.staticmethod is staticmethod


def test_s2_3_an_instance_called_is_apply():
    x = of.Tensor([1.0, 2.0, 3.0])
    kind = square()
    assert kind()(x).tolist() == kind.apply(x).tolist() == [1, 4, 9]


def test_s2_4_variables_require_a_gradient_by_default_and_are_what_tensor_makes():
    x = of.Tensor([1.0, 2.0])
    assert isinstance(x, of.Variable) and of.Tensor is of.Variable is genesis.Variable
    assert x.requires_grad and x.is_leaf and isinstance(square()()(x), of.Variable)


def test_s2_5_grad_of_the_output_runs_backward_and_returns_the_gradient_of_the_input():
    _, names = document("s2_oneflow")
    assert names["output_tensor"].tolist() == [1, 4, 9]
    assert names["grad_input_tensor"].tolist() == [2, 4, 6]
    x = of.Tensor([1.0, 2.0, 3.0])
    g = square()()(x).grad()
    assert g.tolist() == x.grad.tolist() == [2, 4, 6]


def test_s2_5_several_inputs_give_a_tuple():
    class Product(of.Function):
        @of.staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @of.staticmethod
        def backward(ctx, grad_output):
            a, b = ctx.saved_tensors
            return grad_output * b, grad_output * a

    a, b = of.Tensor([1.0, 2.0]), of.Tensor([3.0, 4.0])
    by_a, by_b = Product()(a, b).grad()
    assert (by_a.tolist(), by_b.tolist()) == ([3, 4], [1, 2])


def test_s2_6_a_second_call_returns_the_same_and_runs_nothing():
    calls = []
    x = of.Tensor([1.0, 2.0])
    y = square(calls)()(x)
    first = y.grad()
    assert y.grad() is first and len(calls) == 1 and x.grad.tolist() == [2, 4]


def test_s2_7_backward_returns_one_tensor_and_reads_what_was_saved():
    x = of.Tensor([3.0])
    square()()(x).sum().backward()
    assert x.grad.tolist() == [6]


def test_s2_10_a_cycle_raises():
    a = genesis.tensor([1.0], requires_grad=True)
    b = a * 2
    c = b * 3
    ctx = genesis.autograd.Context()
    ctx.save_for_backward(c)
    b.set_creator(ctx, lambda ctx, grad_output: grad_output)
    with pytest.raises(genesis.autograd.GraphCycleError):
        c.backward()
    assert issubclass(genesis.autograd.GraphCycleError, RuntimeError)


def test_s2_11_the_computation_of_gradients_is_recorded():
    x = of.Tensor([[1.0, 2.0]])
    y = (square()()(x) * 3).sum()
    with of.debug.record_grad_function() as records:
        y.backward()
    steps = ("SumBackward", "MulBackward", "MyFunctionBackward")
    assert [record.name for record in records if record.name in steps] == list(steps)
    assert [record.order for record in records] == list(range(len(records)))
    custom = next(record for record in records if record.name == "MyFunctionBackward")
    assert (custom.grad_output_shapes, custom.grad_input_shapes) == (((1, 2),), ((1, 2),))
    count = len(records)
    square()()(x).sum().backward()
    assert len(records) == count  # it is off again


def test_s2_11_recording_is_a_decorator_and_a_switch():
    x = of.Tensor([1.0])

    @of.debug.record_grad_function
    def run():
        (x * 2).sum().backward()

    run()
    of.debug.record_grad_function(True)
    (x * 3).sum().backward()
    switched = of.debug.record_grad_function(False)
    for records in (run, switched):
        assert "MulBackward" in [record.name for record in records]


def test_s2_12_the_gradient_may_be_any_logic():
    class Straight(of.Function):
        @of.staticmethod
        def forward(ctx, x):
            return x.round()

        @of.staticmethod
        def backward(ctx, grad_output):
            return grad_output.clamp(-1, 1)

    x = of.Tensor([0.4, 1.6])
    y = Straight()(x)
    assert y.tolist() == [0, 2]
    (y * genesis.tensor([5.0, 0.5])).sum().backward()
    assert x.grad.tolist() == [1, 0.5]


def test_s2_13_gradients_over_several_devices_equal_those_of_one():
    model = genesis.nn.Linear(3, 2)
    x = genesis.randn(8, 3)
    loss = (model(x) ** 2).mean()
    loss.backward()
    single = model.weight.grad.numpy().copy()
    model.zero_grad()
    parallel = genesis.nn.DataParallel(model, ["cpu:0", "cpu:1"])
    (parallel(x) ** 2).mean().backward()
    np.testing.assert_allclose(model.weight.grad.numpy(), single, rtol=1e-5)


def test_s2_14_mixed_precision_trains():
    model = genesis.nn.Linear(4, 1)
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)
    scaler = genesis.amp.GradScaler()
    x, y = genesis.ones(8, 4), genesis.ones(8, 1)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        with genesis.autocast(dtype=genesis.float16):
            loss = genesis.nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4


def test_s2_15_the_chain_rule_goes_through_components():
    x = of.Tensor(np.array([0.5, 1.5]))
    y = square()()(x.sin()).exp()
    s, c = np.sin([0.5, 1.5]), np.cos([0.5, 1.5])
    np.testing.assert_allclose(y.grad().numpy(), np.exp(s * s) * 2 * s * c, rtol=1e-12)
