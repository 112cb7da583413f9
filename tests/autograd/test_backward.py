"""Gradients through the user's surface: backward, grad, accumulation, modes, grad_fn."""

import threading
import warnings
import weakref

import pytest
import torch

import genesis
from tests.collector import without_collector


def leaf(*values):
    return genesis.tensor(list(values), requires_grad=True)


# ---- backward ----


def test_gradients_accumulate_until_they_are_dropped():
    x = leaf(1.0, 2.0)
    x.sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3, 3]
    x.zero_grad()
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]
    x.grad.zero_()
    assert x.grad.tolist() == [0, 0]


def test_the_gradient_object_accumulates_in_place():
    x = leaf(1.0)
    x.sum().backward()
    held = x.grad
    x.sum().backward()
    assert held is x.grad and held.tolist() == [2]


def test_diamonds_and_reuse():
    x = leaf(3.0)
    a, b = x * 2, x * x
    (a * b + a).sum().backward()
    assert x.grad.tolist() == [2 * 9 + 6 * 6 + 2]


def test_a_result_of_many_elements_wants_a_gradient():
    x = leaf(1.0, 2.0, 3.0)
    with pytest.raises(RuntimeError, match=r"only a tensor of one element.*shape \(3,\)"):
        (x * x).backward()
    (x * x).backward(genesis.tensor([1.0, 1.0, 1.0]))
    assert x.grad.tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match=r"gradient has shape \(2,\); want the tensor's \(3,\)"):
        (x * x).backward(genesis.ones(2))


def test_a_gradient_is_a_tensor_and_one_that_is_assigned_has_the_tensors_dtype():
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="backward: gradient must be a tensor or None, got list"):
        (x * 2).backward([1.0, 1.0])
    for dtype in (genesis.float64, genesis.int64):
        with pytest.raises(TypeError, match=rf"grad: dtype {dtype.name} does not match the tensor's float32"):
            x.grad = genesis.ones(2, dtype=dtype)


def test_a_gradient_of_one_element_fits_any_tensor_of_one():
    x = leaf(2.0)
    (x[0] * 3).backward(gradient=genesis.tensor([1.0]))
    assert x.grad.tolist() == [3]


def test_the_gradient_retained_is_that_of_the_value_held_last():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    assert (y.grad.tolist(), x.grad.tolist()) == ([5], [30])


def test_a_result_that_retains_its_gradient_is_no_cycle_of_references():
    with without_collector():
        y = leaf(1.0) * 2
        y.retain_grad()
        seen = weakref.ref(y)
        del y
        assert seen() is None


def test_backward_after_the_values_were_looked_at():
    x = leaf(1.0, 2.0)
    y = (x.exp() * x).sum()
    y.item()
    z = y * 2
    z.item()
    z.backward()
    expected = (2 * (x.detach() + 1) * x.detach().exp()).tolist()
    assert x.grad.tolist() == pytest.approx(expected, rel=1e-6)


def test_a_graph_is_released_by_backward():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 8]
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_inputs_choose_who_accumulates():
    x, w = leaf(1.0), leaf(2.0)
    (x * w).sum().backward(inputs=[w])
    assert (x.grad, w.grad.tolist()) == (None, [1])


@pytest.mark.parametrize("run", ["backward", "grad"])
def test_what_is_differentiated_and_by_what_is_checked_before_the_walk(run):
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    if run == "grad":
        differentiate = genesis.autograd.grad
    else:
        def differentiate(outputs, inputs, gradients=None):
            genesis.autograd.backward(outputs, gradients, inputs=inputs)
    for outputs, inputs, gradients, error, message in [
        (y, [], None, ValueError, "inputs is empty"),
        (y, [x, genesis.ones(2)], None, RuntimeError, "input 1 .* does not require a gradient"),
        (y, 3, None, TypeError, "wants a tensor or a sequence of them, got int 3"),
        (None, x, None, TypeError, "wants a tensor or a sequence of them, got NoneType"),
        ([y, y], x, [None], ValueError, "1 gradients were given for 2 tensors"),
        (y, x, 2.0, TypeError, "gradient must be a tensor or None, got float"),
    ]:
        with pytest.raises(error, match=message):
            differentiate(outputs, inputs, gradients)
    differentiate(y, (leaf for leaf in [x]))  # nothing was released or accumulated so far


def test_no_tensor_is_its_own_gradient():
    x = genesis.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="its own gradient"):
        x.grad = x


def test_retain_grad_keeps_the_gradient_of_a_result():
    x = leaf(1.0, 1.0)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert (y.grad.tolist(), x.grad.tolist()) == ([4, 4], [8, 8])


@pytest.mark.filterwarnings("ignore:backward")
def test_backward_without_a_derivation_does_nothing():
    x = genesis.zeros(())
    x.backward()
    assert x.grad is None


def test_integers_and_comparisons_carry_no_gradient():
    x = leaf(1.5)
    assert not (x > 1).requires_grad
    assert not x.long().requires_grad
    assert not x.argmax().requires_grad


def test_low_precision_gradients_have_the_leafs_dtype():
    x = genesis.ones(2, dtype=genesis.float16, requires_grad=True)
    (x.float() * 3).sum().backward()
    assert x.grad.dtype is genesis.float16 and x.grad.tolist() == [3, 3]


def test_broadcasting_is_undone():
    x, b = genesis.ones(4, 3, requires_grad=True), genesis.ones(3, requires_grad=True)
    scale = genesis.tensor(2.0, requires_grad=True)
    ((x + b) * scale).sum().backward()
    assert (b.grad.tolist(), scale.grad.item(), x.grad.shape) == ([8, 8, 8], 24, (4, 3))


def test_a_long_chain_needs_no_stack():
    x = leaf(1.0)
    y = x
    for _ in range(5000):
        y = y * 1.0001
    y.sum().backward()
    assert x.grad.item() == pytest.approx(1.0001**5000, rel=1e-3)


# ---- grad ----


@pytest.mark.parametrize("lib", [genesis, torch])
def test_looking_for_the_gradient_of_a_result_that_retains_none_warns(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.sum().backward(retain_graph=True)
    with pytest.warns(UserWarning, match="retain_grad"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None and lib.ones(2).grad is None and x.detach().grad is None
        y.sum().backward()
        assert (y.grad.tolist(), x.grad.tolist()) == ([1, 1], [4, 4])


def test_grad_leaves_grad_alone():
    x = leaf(3.0)
    assert genesis.autograd.grad((x * x).sum(), x)[0].tolist() == [6]
    assert x.grad is None


def test_grad_of_what_is_not_used():
    x, other = leaf(1.0), leaf(1.0)
    with pytest.raises(RuntimeError, match=r"do not depend on input 1 \(shape \(1,\)\)"):
        genesis.autograd.grad(x.sum(), [x, other])
    assert genesis.autograd.grad(x.sum(), [x, other], allow_unused=True)[1] is None


def test_grad_by_an_intermediate_result():
    x = leaf(2.0)
    y = x * x
    z = (y * y).sum()
    assert genesis.autograd.grad(z, y)[0].tolist() == [8]


@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_standard_deviation_of_equal_elements_has_gradient_0(lib):
    x = lib.tensor([[3.0, 3.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True)
    x.std(1).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [-0.5, 0, 0.5]]


def test_third_derivative():
    x = leaf(2.0)
    y = (x**4).sum()
    for expected in (32, 48, 48):
        (g,) = genesis.autograd.grad(y, x, create_graph=True)
        assert g.item() == pytest.approx(expected)
        y = g.sum()


def test_autograd_backward_takes_several_roots():
    x = leaf(1.0)
    genesis.autograd.backward([(x * 2).sum(), (x * 3).sum()])
    assert x.grad.tolist() == [5]


def test_clearing_a_gradient_keeps_its_derivation():
    x = genesis.tensor(2.0, requires_grad=True)
    y = x**3
    y.backward(create_graph=True)
    grad_x = x.grad
    assert grad_x.item() == 12
    x.grad.zero_()
    grad_x.backward()
    assert x.grad.item() == 12


# ---- modes ----


def test_no_grad_as_context_decorator_and_bare_decorator():
    x = leaf(1.0)

    @genesis.no_grad()
    def called(y):
        return y * 2

    @genesis.no_grad
    def bare(y):
        return y * 2

    with genesis.no_grad():
        assert not (x * 2).requires_grad
        with genesis.enable_grad():
            assert (x * 2).requires_grad
    assert not called(x).requires_grad and not bare(x).requires_grad
    assert (x * 2).requires_grad


def test_a_generator_has_the_mode_in_its_steps_and_its_caller_between_them():
    seen = []

    @genesis.no_grad()
    def steps():
        try:
            seen.append((yield genesis.is_grad_enabled()))
            yield genesis.is_grad_enabled()
        except KeyError:
            yield "caught"
        finally:
            seen.append(genesis.is_grad_enabled())
        return "end"

    running = steps()
    assert next(running) is False and genesis.is_grad_enabled()
    assert running.send("sent") is False and genesis.is_grad_enabled()
    assert running.throw(KeyError()) == "caught" and seen == ["sent"]
    with pytest.raises(StopIteration, match="end"):
        next(running)
    assert seen == ["sent", False] and genesis.is_grad_enabled()
    left = steps()
    next(left)
    left.close()
    assert seen == ["sent", False, False]


def test_set_grad_enabled_calls_and_nests():
    genesis.set_grad_enabled(False)
    assert not genesis.is_grad_enabled()
    genesis.set_grad_enabled(True)
    with genesis.set_grad_enabled(False):
        assert not genesis.is_grad_enabled()
    assert genesis.is_grad_enabled()


def test_inference_mode_records_nothing():
    x = leaf(1.0)
    with genesis.inference_mode():
        assert not (x * 2).requires_grad
    with genesis.inference_mode(False):
        assert (x * 2).requires_grad


def test_the_mode_returns_after_an_error_and_belongs_to_its_thread():
    with pytest.raises(KeyError), genesis.no_grad():
        raise KeyError
    assert genesis.is_grad_enabled()
    seen = []
    with genesis.no_grad():
        thread = threading.Thread(target=lambda: seen.append(genesis.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_detach_shares_and_stands_outside():
    x = leaf(1.0, 2.0)
    z = x.detach()
    assert not z.requires_grad and z.is_leaf
    with genesis.no_grad():
        x.add_(1)
    assert z.tolist() == [2, 3]
    y = x * 2
    assert y.detach_() is y and y.is_leaf


# ---- what a tensor says of its derivation ----


def test_leaves():
    x = leaf(1.0)
    assert x.is_leaf and x.grad_fn is None
    assert genesis.zeros(2).is_leaf
    assert not (x * 2).is_leaf
    x.requires_grad = False
    assert not x.requires_grad
    with pytest.raises(TypeError, match="only floating tensors"):
        genesis.arange(2).requires_grad_()
    with pytest.raises(RuntimeError, match="only a leaf"):
        (leaf(1.0) * 2).requires_grad = False


def test_grad_fn_shows_one_node_for_each_call():
    x = leaf(1.0, 2.0)
    y = x * 2 + 3
    assert repr(y.grad_fn) == "<AddBackward>"
    assert repr(y.grad_fn.next_functions) == "((<MulBackward>, 0), (None, 0))"
    (mul, _), _ = y.grad_fn.next_functions
    assert repr(mul.next_functions) == "((<AccumulateGrad>, 0), (None, 0))"
    assert mul.next_functions[0][0].variable is x


def test_grad_fn_of_composites_is_named_for_the_call():
    x = genesis.ones(2, 3, requires_grad=True)
    names = {
        "SoftmaxBackward": x.softmax(0), "MeanBackward": x.mean(), "ReshapeBackward": x.reshape(6),
        "CatBackward": genesis.cat([x, x]),
        "MatmulBackward": x @ x.T, "LogSoftmaxBackward": x.log_softmax(1), "PowBackward": x**2,
    }
    for name, y in names.items():
        assert y.grad_fn.name() == name
    nodes = [node for node, _ in names["CatBackward"].grad_fn.next_functions]
    assert nodes == [genesis.autograd.GradientNode(nodes[0]._trace, nodes[0]._index)] * 2


def test_grad_fn_outlives_the_flush():
    x = leaf(1.0)
    y = x * 2
    y.item()
    z = y + 1
    z.item()
    assert repr(z.grad_fn.next_functions[0][0]) == "<MulBackward>"
    assert repr(z.grad_fn.next_functions[0][0].next_functions[0][0]) == "<AccumulateGrad>"


@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_leaf_that_seeds_a_gradient_gets_its_own(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    v = lib.tensor([3.0, 4.0], requires_grad=True)
    (g,) = lib.autograd.grad(x * x, x, v, create_graph=True)
    g.sum().backward()
    assert (v.grad.tolist(), x.grad.tolist()) == ([2, 4], [6, 8])


def test_a_detached_tensor_that_takes_a_gradients_carrier_derives_it_and_its_source_does_not():
    def program(lib):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        source = x * 1
        state = source.detach()
        state += x * 3
        (state * state).sum().backward()
        weight = lib.tensor([1.0, 2.0], requires_grad=True)
        weight.data.add_(x * 2)
        return x.grad.tolist(), source.tolist(), (source * 1).grad_fn is None, weight.is_leaf, weight.tolist()

    assert program(genesis) == program(torch)


def test_a_view_of_a_detached_tensor_refuses_what_carries_a_gradient():
    x = genesis.ones(2, requires_grad=True)
    state = (x * 1).detach()
    with pytest.raises(RuntimeError, match="clone"):
        state[0] = x[1] * 2
    state[0] = 5
    assert state.tolist() == [5, 1]


@pytest.mark.parametrize("wrap", [lambda function: function, genesis.compile], ids=["called", "compiled"])
def test_a_leaf_that_was_frozen_after_its_use_takes_no_gradient(wrap):
    w, v = genesis.ones(3, requires_grad=True), genesis.ones(3, requires_grad=True)
    product = wrap(lambda: (w * v).sum())
    for frozen in (False, True, False, True):
        w.requires_grad_(True)
        w.grad = v.grad = None
        y = product()
        w.requires_grad_(not frozen)
        y.backward()
        assert (w.grad is None, v.grad.tolist()) == (frozen, [1, 1, 1])


def test_which_of_two_graphs_is_released_decides_what_can_be_derived_again():
    def outcome(lib, first_retained):
        x, v, w = [lib.tensor([row, [0.5, 1.0]], requires_grad=True) for row in ([1.0, 2.0], [0.3, 0.4], [0.5, 0.6])]
        one, other = ((x @ v).exp() * 0.01).sum(), ((x @ w).exp() * 0.01).sum()
        first, = lib.autograd.grad(one, x, retain_graph=first_retained)
        second, = lib.autograd.grad(other, x, retain_graph=not first_retained)
        del other
        first.tolist(), second.tolist()
        try:
            one.backward(retain_graph=True)
        except RuntimeError:
            return "released"
        return [round(value, 5) for value in x.grad.flatten().tolist()]

    for first_retained in (False, True):  # the first plan keeps nothing for the graph that the second needs
        assert outcome(genesis, first_retained) == outcome(torch, first_retained)
