"""S1: what the document on the function system promises. A test is named for its row of the contract."""

import io
import weakref
from contextlib import redirect_stdout

import numpy as np
import pytest

import genesis
from genesis import Function
from genesis.autograd import Context
from tests.collector import without_collector
from tests.contract.documents import document


def leaf(*values):
    return genesis.tensor(list(values), requires_grad=True)


def of_document(name):
    return document("s1_functions")[1][name]


def matrix(*shape):
    return genesis.randn(*shape, dtype=genesis.float64).requires_grad_()


def test_s1_1_the_built_in_functions_are_functions():
    from genesis.function import AddFunction, MatMulFunction, MulFunction, ReluFunction

    for kind in (AddFunction, MulFunction, MatMulFunction, ReluFunction):
        assert issubclass(kind, Function) and getattr(genesis, kind.__name__) is kind
    a, b, x = matrix(2, 3), matrix(3), matrix(3, 2)
    for function, inputs in ((AddFunction, (a, b)), (MulFunction, (a, b)), (MatMulFunction, (a, x)), (ReluFunction, (a,))):
        assert genesis.autograd.gradcheck(function.apply, inputs) is True
        assert repr(function.apply(*inputs).grad_fn) == f"<{function.__name__}Backward>"
    assert AddFunction.apply(a, b).tolist() == (a + b).tolist() and MulFunction.apply(a, b).tolist() == (a * b).tolist()
    assert ReluFunction.apply(a).tolist() == a.relu().tolist()
    np.testing.assert_allclose(MatMulFunction.apply(a, x).detach().numpy(), (a @ x).detach().numpy(), rtol=1e-12)


def test_s1_2_a_creator_can_be_set_by_hand():
    x = leaf(1.0, 2.0)
    ctx = Context()
    ctx.save_for_backward(x)
    with genesis.no_grad():
        result = x * 3

    def backward(ctx, grad_output):
        (saved,) = ctx.saved_tensors
        return grad_output * saved * 10

    result.set_creator(ctx, backward)
    assert result.requires_grad and not result.is_leaf and result.tolist() == [3, 6]
    (result * 2).sum().backward()
    assert x.grad.tolist() == [20, 40]


def test_s1_2_the_documents_own_function_and_context_work():
    Tensor = genesis.Tensor

    class OwnContext:
        def __init__(self):
            self.saved_tensors = []
            self.saved_variables = {}

        def save_for_backward(self, *tensors):
            self.saved_tensors.extend(tensors)

    class OwnFunction:
        @classmethod
        def apply(cls, *args):
            ctx = OwnContext()
            result = cls.forward(ctx, *args)
            if any(tensor.requires_grad for tensor in args if isinstance(tensor, Tensor)):
                result.set_creator(ctx, cls.backward)
            return result

    def own(name):
        kind = of_document(name)
        return type(name, (OwnFunction,), {"forward": staticmethod(kind.forward), "backward": staticmethod(kind.backward)})

    a, b = matrix(2, 3), matrix(3, 4)
    product = own("MatMulFunction").apply(a, b)
    (product * 2).sum().backward()
    by_a, by_b = genesis.autograd.grad((a @ b * 2).sum(), (a, b))
    assert repr(product.grad_fn) == "<MatMulFunctionBackward>"
    np.testing.assert_allclose(a.grad.numpy(), by_a.numpy(), rtol=1e-12)
    np.testing.assert_allclose(b.grad.numpy(), by_b.numpy(), rtol=1e-12)
    x, y = leaf(-1.0, 2.0), leaf(3.0, 4.0)
    own("AddFunction").apply(own("ReluFunction").apply(x), y).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([0, 1], [1, 1])


def test_s1_2_apply_is_a_classmethod_that_tells_who_requires_gradients():
    AddFunction = of_document("AddFunction")
    assert AddFunction.apply(leaf(1.0), genesis.ones(1)).requires_grad
    assert not AddFunction.apply(genesis.ones(1), genesis.ones(1)).requires_grad
    with genesis.no_grad():
        assert not AddFunction.apply(leaf(1.0), genesis.ones(1)).requires_grad


def test_s1_3_the_base_is_not_implemented():
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError):
        Function.apply(leaf(1.0))
    y = Half.apply(leaf(1.0))
    with pytest.raises(NotImplementedError):
        y.sum().backward()


def test_s1_4_a_context_keeps_tensors_variables_and_attributes():
    ctx = Context()
    assert ctx.saved_tensors == [] and ctx.saved_variables == {}
    a, b, c = genesis.ones(1), genesis.ones(2), genesis.ones(3)
    ctx.save_for_backward(a, b)
    ctx.save_for_backward(c)
    assert isinstance(ctx.saved_tensors, list) and [t.shape for t in ctx.saved_tensors] == [(1,), (2,), (3,)]
    ctx.save_variable("factor", 2)
    ctx.anything = "else"
    assert ctx.saved_variables == {"factor": 2} and ctx.anything == "else"


def test_s1_4_saved_tensors_unpack_in_backward():
    seen = []

    class Saves(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            ctx.save_for_backward(y)
            ctx.save_variable("shape", x.shape)
            ctx.note = "mine"
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            seen.append((ctx.saved_variables["shape"], ctx.note))
            return grad_output * y, grad_output * x

    x, y = leaf(2.0), leaf(3.0)
    Saves.apply(x, y).sum().backward()
    assert seen == [((1,), "mine")] and (x.grad.item(), y.grad.item()) == (3, 2)


def test_s1_5_add_function_is_addition_with_broadcast_gradients_summed():
    add = of_document("AddFunction").apply
    c, a, b = of_document("added"), of_document("a"), of_document("b")
    assert c.tolist() == (a + b).tolist()
    wide, narrow, scalar = matrix(4, 3), matrix(3), matrix()
    assert genesis.autograd.gradcheck(add, (wide, narrow)) and genesis.autograd.gradcheck(add, (scalar, wide))
    assert genesis.autograd.gradcheck(add, (matrix(4, 1), matrix(1, 3)))
    x = leaf(1.0, 2.0)
    add(x, 3.0).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_s1_6_matmul_function_sums_batches():
    matmul = of_document("MatMulFunction").apply
    for a, b in (((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 2))):
        assert genesis.autograd.gradcheck(matmul, (matrix(*a), matrix(*b)))


def test_s1_7_relu_function_masks_by_a_bool():
    relu = of_document("ReluFunction").apply
    x = genesis.tensor([-1.0, 2.0, 0.0], requires_grad=True)
    y = relu(x)
    assert y.tolist() == [0, 2, 0]
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 0] and x.grad.dtype is genesis.float32
    mask = x > 0
    assert mask.dtype is genesis.bool and (genesis.ones(3) * mask).dtype is genesis.float32


def test_s1_8_an_in_place_function_changes_its_argument_and_passes_gradients_to_both():
    add_ = of_document("AddInplaceFunction").apply
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    result = add_(a, b)
    assert a.tolist() == result.tolist() == [4, 6] and a.is_leaf and not result.is_leaf
    (result * 2).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([2, 2], [2, 2])


def test_s1_8_an_in_place_function_rebases_the_history_of_a_result():
    add_ = of_document("AddInplaceFunction").apply
    x, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * 5
    result = add_(y, b)
    assert y.tolist() == [8, 14] and result.tolist() == [8, 14]
    (y * 2 + result).sum().backward()
    assert (x.grad.tolist(), b.grad.tolist()) == ([15, 15], [3, 3])


def test_s1_9_a_function_of_several_outputs_gets_all_gradients_in_one_call():
    calls = []

    class SplitFunction(of_document("SplitFunction")):
        @staticmethod
        def backward(ctx, *grad_outputs):
            calls.append([g.tolist() for g in grad_outputs])
            return of_document("SplitFunction").backward(ctx, *grad_outputs)

    x = leaf(1.0, 2.0, 3.0, 4.0, 5.0)
    first, second, third = SplitFunction.apply(x, [1, 2, 2])
    assert [p.tolist() for p in (first, second, third)] == [[1], [2, 3], [4, 5]]
    ((third * genesis.tensor([7.0, 8.0])).sum() + first.sum() * 2).backward()
    assert calls == [[[2], [0, 0], [7, 8]]] and x.grad.tolist() == [2, 0, 0, 7, 8]
    pieces = of_document("SplitFunction").apply(x, 2)
    assert isinstance(pieces, tuple) and [p.shape for p in pieces] == [(2,), (2,), (1,)]


def test_s1_10_an_argument_that_is_no_tensor_gets_none():
    x = leaf(1.0, 2.0)
    y = of_document("ScaleFunction").apply(x, 3.0)
    y.sum().backward()
    assert y.tolist() == [3, 6] and x.grad.tolist() == [3, 3]


@pytest.fixture
def registered():
    for name, kind in {"add": "AddFunction", "matmul": "MatMulFunction", "relu": "ReluFunction"}.items():
        genesis.ops.register_function(name, of_document(kind).apply)
    yield
    for name in ("add", "matmul", "relu"):
        genesis.ops.unregister_function(name)


def test_s1_11_registered_functions_are_used_by_operators_methods_and_functions(registered):
    x = genesis.tensor([1, 2, 3], requires_grad=True)
    y = genesis.tensor([4, 5, 6], requires_grad=True)
    z = x + y
    assert z.tolist() == [5, 7, 9] and repr(z.grad_fn) == "<AddFunctionBackward>"
    z.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1, 1, 1], [1, 1, 1])
    for made in (x.add(y), genesis.add(x, y), genesis.ops.add(x, y), 1 + x):
        assert repr(made.grad_fn) == "<AddFunctionBackward>"
    m = genesis.ones(2, 2, requires_grad=True)
    for made in (m @ m, m.matmul(m), genesis.matmul(m, m)):
        assert repr(made.grad_fn) == "<MatMulFunctionBackward>"
    for made in (m.relu(), genesis.relu(m), genesis.nn.functional.relu(m), genesis.nn.ReLU()(m)):
        assert repr(made.grad_fn) == "<ReluFunctionBackward>"


def test_s1_11_unregistering_brings_the_builtin_back():
    x = leaf(1.0)
    assert repr((x + x).grad_fn) == "<AddBackward>"
    z = of_document("registered")
    assert repr(z.grad_fn) == "<AddFunctionBackward>" and z.tolist() == [5, 7, 9]


def test_s1_11_a_network_trains_with_registered_functions(registered):
    genesis.manual_seed(0)
    model = genesis.nn.Sequential(genesis.nn.Linear(2, 8), genesis.nn.ReLU(), genesis.nn.Linear(8, 1))
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.05)
    x = genesis.randn(16, 2)
    y = (x @ genesis.tensor([[1.0], [-1.0]])) + 0.5
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_s1_12_an_operation_of_the_users_own_is_on_the_top_level():
    assert of_document("scaled").tolist() == [3, 6]
    genesis.ops.register_operation("custom_op", of_document("custom_operation"))
    try:
        x = leaf(1.0, 2.0)
        result = genesis.custom_op(x, 4.0)
        result.sum().backward()
        assert result.tolist() == genesis.ops.custom_op(x, 4.0).tolist() == [4, 8] and x.grad.tolist() == [4, 4]
    finally:
        genesis.ops.unregister_operation("custom_op")


def test_s1_13_a_function_may_save_a_detached_argument():
    assert genesis.autograd.gradcheck(of_document("EfficientFunction").apply, matrix(3))


def test_s1_14_a_function_may_save_its_result():
    stable = of_document("StableFunction").apply
    assert genesis.autograd.gradcheck(stable, matrix(3))
    x = genesis.tensor(0.5, dtype=genesis.float64, requires_grad=True)
    (first,) = genesis.autograd.grad(stable(x), x, create_graph=True)
    (second,) = genesis.autograd.grad(first, x)
    s = 1 / (1 + np.exp(-0.5))
    assert first.item() == pytest.approx(s * (1 - s)) and second.item() == pytest.approx(s * (1 - s) * (1 - 2 * s))


def test_s1_14_a_saved_result_is_no_cycle_of_references():
    with without_collector():
        y = of_document("StableFunction").apply(leaf(1.0, 2.0))
        y.tolist()
        seen = weakref.ref(y)
        del y
        assert seen() is None


def test_s1_15_backward_takes_the_gradient_by_position():
    x = leaf(1.0, 2.0, 3.0)
    y = of_document("CustomFunction").apply(x)
    y.backward(genesis.tensor([1.0, 1.0, 1.0]))
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]


def test_s1_16_numerical_gradient_check_tells_right_from_wrong():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 3

    check = genesis.autograd.numerical_gradient_check
    x = leaf(1.0, 2.0)
    assert check(of_document("EfficientFunction").apply, x, eps=1e-5) is True
    with pytest.raises(genesis.autograd.GradcheckError):
        check(Wrong.apply, x, eps=1e-5)


def test_s1_17_forward_and_backward_run_when_their_lines_run():
    lines = []
    printed = io.StringIO()
    with redirect_stdout(printed):
        x = genesis.ones(2, 3, requires_grad=True)
        flushes = genesis.debug.stats()["flushes"]
        y = of_document("DebugFunction").apply(x)
        lines.append(printed.getvalue().count("\n"))
        loss = y.sum()
        lines.append(printed.getvalue().count("\n"))
        assert genesis.debug.stats()["flushes"] == flushes  # shapes are known without computing
        loss.backward()
        lines.append(printed.getvalue().count("\n"))
    assert lines == [2, 2, 4] and x.grad.tolist() == [[2, 2, 2], [2, 2, 2]]
