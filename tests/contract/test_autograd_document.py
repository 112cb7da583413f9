"""S0: what the document on genesis.autograd promises. A test is named for its row of the contract."""

import gc
import io
import re
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.tracing.trace import Trace
from genesis.utils.checkpoint import checkpoint
from tests.contract.documents import document


def leaf(*values):
    return genesis.tensor(list(values), requires_grad=True)


def check_gradients(function, *values, rtol=1e-6):
    """Results and gradients in float64 agree with torch's."""
    ours = [genesis.tensor(np.array(v), requires_grad=True) for v in values]
    theirs = [torch.tensor(np.array(v), requires_grad=True) for v in values]
    got, want = function(*ours), function(*theirs)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=rtol)
    (got * got).sum().backward()
    (want * want).sum().backward()
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=rtol)


A, B = np.array([[1.5, 2.0], [0.5, 3.0]]), np.array([[0.5, 2.0], [1.0, 1.5]])


def test_s0_1_the_module_is_there():
    assert {"gradcheck", "Function", "Context"} <= set(dir(genesis.autograd))


def test_s0_2_the_graph_is_dynamic_and_walked_by_the_chain_rule():
    def program(x, w):
        y = x * 2
        for _ in range(3):  # reuse and diamonds, as many as Python says
            y = y * x + w.sin() * y
        values, _ = y.sort(1)
        return values[:, :1] * y.sum(0) + w

    def program_in_torch(x, w):
        y = x * 2
        for _ in range(3):
            y = y * x + w.sin() * y
        values, _ = torch.sort(y, 1)
        return values[:, :1] * y.sum(0) + w

    check_gradients(lambda x, w: (program if isinstance(x, genesis.Tensor) else program_in_torch)(x, w), A, B)


def test_s0_3_the_constructor_takes_arrays_of_every_kind_and_parameters_of_any():
    inner = genesis.tensor([1.0, 2.0], requires_grad=True)
    for array in ([1.0, 2.0], (1, 2), np.array([1.0, 2.0], np.float32), inner, inner.data, [genesis.tensor(1.0), 2.0]):
        assert genesis.Tensor(array).tolist() == [1, 2]
    assert genesis.Tensor(2.5).shape == () and genesis.Tensor(array=[1.0]).shape == (1,)
    assert isinstance(inner.data, genesis.NDArray)
    x = genesis.Tensor([1.0], "cpu", genesis.float64, True, order="C", pin_memory=False)
    assert (x.dtype, x.requires_grad, x.is_leaf) == (genesis.float64, True, True)
    assert [genesis.Tensor(v).dtype for v in (1, 1.0, True, np.float64(1), np.int8(1))] == [
        genesis.int64, genesis.float32, genesis.bool, genesis.float64, genesis.int8]


def test_s0_3_the_constructor_copies():
    array, inner = np.zeros(2), genesis.zeros(2)
    made = genesis.Tensor(array), genesis.Tensor(inner)
    array[0] = inner[0] = 1
    assert [x.tolist() for x in made] == [[0, 0], [0, 0]]


def test_s0_4_shape_and_type_are_properties():
    x = genesis.zeros(2, 3)
    assert x.shape == (2, 3) and type(x.shape) is tuple
    assert isinstance(x.dtype, genesis.DType) and isinstance(x.device, genesis.device)
    assert type(x.ndim) is int and x.ndim == 2
    assert isinstance(x.size, int) and x.size == 6


def test_s0_5_gradient_properties():
    x = leaf(1.0)
    y = x * 2
    assert (x.requires_grad, x.grad, x.is_leaf, x.grad_fn) == (True, None, True, None)
    assert y.requires_grad and not y.is_leaf and isinstance(y.grad_fn, genesis.Function)
    y.sum().backward()
    assert isinstance(x.grad, genesis.Tensor)
    x.grad = None
    assert x.grad is None
    x.grad = genesis.ones(1)
    assert x.grad.tolist() == [1]
    with pytest.raises(ValueError, match=r"grad: shape \(2,\) does not match the tensor's \(1,\)"):
        x.grad = genesis.ones(2)


def test_s0_6_backward_of_a_scalar_needs_no_gradient():
    x = leaf(1.0, 2.0, 3.0)
    assert (x**2).sum().backward() is None
    assert str(x.grad) == "tensor([2., 4., 6.])"
    (x**2).sum().backward(gradient=genesis.tensor([1.0]))
    assert x.grad.tolist() == [4, 8, 12]


def test_s0_7_detach_stands_outside():
    x = leaf(1.0, 2.0)
    y = x.detach()
    assert not y.requires_grad and y.is_leaf and y is not x and x.requires_grad
    assert not (y * 2).requires_grad


def test_s0_8_retain_grad_keeps_the_gradient_of_a_result():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert str(y.grad) == "tensor([1., 1.])"


def test_s0_9_after_zero_grad_the_gradient_is_none():
    x = leaf(1.0, 2.0)
    x.sum().backward()
    x.zero_grad()
    assert str(x.grad) == "None"


BINARY = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y, "matmul": lambda x, y: x @ y,
    "scalars right": lambda x, y: (x + 2) * 3 / 4 - 1 + y**2, "scalars left": lambda x, y: 2 + 3 * (4 / x) - (1 - y) + 2**y,
}


@pytest.mark.parametrize("name", BINARY)
def test_s0_10_arithmetic_is_differentiable_by_both_operands(name):
    check_gradients(BINARY[name], A, B)


@pytest.mark.parametrize("name", ["neg", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh"])
def test_s0_11_unary_methods_are_differentiable(name):
    check_gradients(lambda x: getattr(x, name)() if name != "neg" else -x, A)
    if name in ("abs", "sin", "cos", "tanh"):
        check_gradients(lambda x: getattr(x, name)(), -A)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_s0_12_a_reduction_of_everything_is_a_tensor_without_axes(name):
    x = genesis.tensor(A, requires_grad=True)
    y = getattr(x, name)()
    assert isinstance(y, genesis.Tensor) and y.shape == () and y.requires_grad
    check_gradients(lambda x: getattr(x, name)(), A)


SHAPES = {
    "reshape": (lambda x: x.reshape((4,)), lambda x: x.reshape(4)),
    "reshape to ints": (lambda x: x.reshape(4, 1), lambda x: x.reshape(4, 1)),
    "transpose": (lambda x: x.transpose((1, 0)), lambda x: x.transpose(1, 0)),
    "squeeze": (lambda x: x.reshape((1, 2, 1, 2)).squeeze(), lambda x: x),
    "unsqueeze": (lambda x: x.unsqueeze(0), lambda x: x.unsqueeze(0)),
    "view": (lambda x: x.view((4,)), lambda x: x.view(4)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_s0_13_shape_methods_take_tuples_and_are_differentiable(name):
    ours, theirs = SHAPES[name]
    check_gradients(lambda x: (ours if isinstance(x, genesis.Tensor) else theirs)(x), A)


def test_s0_14_function_is_a_base_with_three_methods():
    for name in ("forward", "backward"):
        with pytest.raises(NotImplementedError):
            getattr(genesis.Function, name)(genesis.autograd.Context())
    with pytest.raises(NotImplementedError):
        genesis.Function.apply(leaf(1.0))

    class Scaled(genesis.Function):
        @staticmethod
        def forward(ctx, x, y, *, factor):
            ctx.factor = factor
            return x * factor + y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.factor, None

    x = leaf(1.0, 2.0)
    Scaled.apply(x, 3.0, factor=5).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_s0_15_function_is_importable_from_the_top():
    from genesis import Function

    assert Function is genesis.autograd.Function


def test_s0_16_custom_exp_returns_a_leaf_from_forward():
    seen = []

    class Exp(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            seen.append((x.requires_grad, genesis.is_grad_enabled()))
            return genesis.tensor(x.data.exp(), requires_grad=x.requires_grad)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x.exp()

    exp = Exp.apply
    x = leaf(1.0, 2.0, 3.0)
    y = exp(x)
    assert seen == [(True, False)]
    assert not y.is_leaf and y.requires_grad and repr(y.grad_fn) == "<ExpBackward>"
    np.testing.assert_allclose(y.detach().numpy(), np.exp([1, 2, 3]), rtol=1e-6)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1, 2, 3]), rtol=1e-6)
    with pytest.warns(UserWarning, match="retain_grad"):
        assert y.grad is None


def test_s0_17_no_grad_builds_no_graph_and_decorates():
    x = leaf(1.0)
    with genesis.no_grad():
        y = x * 2
    assert not y.requires_grad and y.grad_fn is None

    @genesis.no_grad()
    def doubled(x):
        return x * 2

    assert not doubled(x).requires_grad and (x * 2).requires_grad


def test_s0_18_enable_grad_within_no_grad_and_a_backward_without_history():
    x = leaf(1.0, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with genesis.no_grad():
            y = x * 2
            with genesis.enable_grad():
                z = y.sum()
                z.backward()
                (x * 3).sum().backward()
    assert not z.requires_grad and x.grad.tolist() == [3, 3]


def test_s0_19_set_grad_enabled_switches_and_is_a_context():
    x = leaf(1.0)
    genesis.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        genesis.set_grad_enabled(True)
    assert (x * 2).requires_grad
    with genesis.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_s0_20_a_hook_sees_values_and_may_replace_the_gradient():
    x = leaf(1.0, 2.0, 3.0)
    printed = io.StringIO()

    def print_grad(grad):
        print(f"梯度: {grad}")
        return grad

    handle = x.register_hook(print_grad)
    with redirect_stdout(printed):
        (x**2).sum().backward()
    assert printed.getvalue() == "梯度: tensor([2., 4., 6.])\n" and x.grad.tolist() == [2, 4, 6]
    handle.remove()
    x.grad = None
    x.register_hook(lambda grad: grad * 10)
    x.register_hook(lambda grad: None)
    y = x * 3
    y.register_hook(lambda grad: grad + 1)
    y.sum().backward()
    assert x.grad.tolist() == [60, 60, 60]


def test_s0_21_gradients_accumulate():
    x = leaf(1.0, 2.0)
    x.sum().backward()
    assert str(x.grad) == "tensor([1., 1.])"
    (x * 2).sum().backward()
    assert str(x.grad) == "tensor([3., 3.])"


def test_s0_22_gradients_are_cleared_by_assignment_or_by_zero_grad():
    x = leaf(1.0)
    for clear in (lambda: setattr(x, "grad", None), x.zero_grad):
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2]
        clear()
        assert x.grad is None


def test_s0_24_a_running_mean_does_not_grow_a_graph():
    running, batch = genesis.zeros(3), genesis.ones(3, requires_grad=True)
    for _ in range(50):
        running = 0.9 * running.detach() + (1 - 0.9) * batch
        running.sum().backward()
    steps = 0
    pending = [running.grad_fn]
    while pending:
        node = pending.pop()
        steps += 1
        pending += [next_node for next_node, _ in node.next_functions if next_node is not None]
    assert steps < 10
    np.testing.assert_allclose(batch.grad.numpy(), [50 * 0.1] * 3, rtol=1e-5)
    assert running.tolist() == pytest.approx([1 - 0.9**50] * 3, rel=1e-5)


@pytest.mark.parametrize("form", ["detached", "a leaf of its own"])
def test_s0_24_iterations_hold_on_to_none_before_them(form):
    def living():
        gc.collect()
        return sum(type(thing) is Trace for thing in gc.get_objects())

    weight, state, counts = genesis.ones(3, requires_grad=True), genesis.zeros(3), []
    for step in range(30):
        state = state.detach()
        if form == "a leaf of its own":
            state.requires_grad_()
        state = (0.9 * state + 0.1 * weight).tanh()
        if form == "a leaf of its own":
            state.sum().backward()
        state.sum().item()
        if step in (9, 29):
            counts.append(living())
    assert counts[1] <= counts[0]


def test_s0_25_clip_grad_norm_scales_in_place_and_returns_the_norm():
    layer = nn.Linear(3, 2)
    (layer(genesis.ones(4, 3)) * 10).sum().backward()
    held = [p.grad for p in layer.parameters()]
    before = [g.numpy().copy() for g in held]
    norm = nn.utils.clip_grad_norm_(layer.parameters(), max_norm=1.0)
    want = np.sqrt(sum((g**2).sum() for g in before))
    assert float(norm) == pytest.approx(want, rel=1e-6)
    for parameter, gradient, value in zip(layer.parameters(), held, before, strict=True):
        assert parameter.grad is gradient
        np.testing.assert_allclose(gradient.numpy(), value / want, rtol=1e-5)


def test_s0_26_autocast_by_flag_and_context():
    x, w = genesis.ones(4, 4), genesis.ones(4, 4, requires_grad=True)
    genesis.enable_autocast = True
    try:
        with genesis.autocast():
            y = x @ w
            loss = nn.functional.mse_loss(y, genesis.zeros(4, 4))
    finally:
        genesis.enable_autocast = False
    assert y.dtype in (genesis.float16, genesis.bfloat16) and loss.item() == 16
    loss.backward()
    assert w.grad.dtype is genesis.float32 and w.grad.tolist() == [[2] * 4] * 4
    assert (x @ w).dtype is genesis.float32


def test_s0_27_the_training_loop_learns():
    _, names = document("s0_autograd")
    assert names["losses"][-1] < names["losses"][0]
    settings = names["optimizer"].param_groups[0]
    assert (settings["lr"], settings["betas"]) == (1e-3, (0.9, 0.999))


def test_s0_27_batches_with_attributes_pass_through_a_loader():
    class Batch:
        def __init__(self, inputs, targets):
            self.inputs, self.targets = inputs, targets

    batches = [Batch(genesis.full((2,), float(i)), genesis.zeros(2)) for i in range(3)]
    loader = genesis.utils.data.DataLoader(batches, batch_size=None)
    assert [b.inputs.tolist() for b in loader] == [[0, 0], [1, 1], [2, 2]]


def test_s0_28_checkpoint_gives_the_same_gradients_and_computes_again():
    layer, calls = nn.Linear(3, 3), []

    def block(x):
        calls.append(1)
        return layer(x).tanh()

    x = genesis.randn(4, 3)
    results = []
    for run in (lambda x: block(block(x)), lambda x: checkpoint(block, checkpoint(block, x))):
        own = x.clone().detach().requires_grad_()
        layer.zero_grad()
        calls.clear()
        run(own).sum().backward()
        results.append((own.grad.numpy(), layer.weight.grad.numpy().copy(), len(calls)))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert (results[0][2], results[1][2]) == (2, 4)


def test_s0_29_gradcheck_of_a_bare_float32_tensor():
    x = leaf(1.0, 2.0, 3.0)
    assert genesis.autograd.gradcheck(lambda x: (x**2).sum(), x, eps=1e-6) is True
    assert x.grad is None and x.dtype is genesis.float32


def test_s0_30_the_graph_can_be_inspected():
    x = leaf(1.0)
    y = x * 2 + 3
    assert str(y.grad_fn) == "<AddBackward>"
    assert repr(y.grad_fn.next_functions) == "((<MulBackward>, 0), (None, 0))"
    (mul, number), _ = y.grad_fn.next_functions
    assert number == 0 and repr(mul.next_functions) == "((<AccumulateGrad>, 0), (None, 0))"
    assert mul.next_functions[0][0].variable is x
    for made, name in {x - 1: "Sub", -x: "Neg", x @ x: "Matmul", x.exp(): "Exp", x.sum(): "Sum", x**2: "Pow"}.items():
        assert repr(made.grad_fn) == f"<{name}Backward>"


def test_s0_31_add_in_place_returns_itself():
    x, y = genesis.ones(2), genesis.tensor([1.0, 2.0])
    assert x.add_(y) is x and x.tolist() == [2, 3]


def test_s0_32_tensors_print_as_in_pytorch():
    makers = [
        lambda t: t.tensor([2.0, 4.0, 6.0]), lambda t: t.tensor([1.0, 1.0]), lambda t: t.tensor(1.5),
        lambda t: t.tensor([1, 2]), lambda t: t.tensor([[1.5, 2], [3, 4]]), lambda t: t.tensor([True, False]),
        lambda t: t.tensor([0.1, 1000.0]), lambda t: t.tensor([1e-8, 1.0]), lambda t: t.zeros(0), lambda t: t.zeros(2, 0),
        lambda t: t.tensor([1.0], dtype=t.float64), lambda t: t.tensor(2.0, requires_grad=True),
        lambda t: t.tensor([float("nan"), float("inf"), -1.0]), lambda t: t.arange(2000),
    ]
    for make in makers:
        theirs = re.sub(r"torch\.(\w+)", r"genesis.\1", str(make(torch)))
        assert str(make(genesis)) == repr(make(genesis)) == theirs
