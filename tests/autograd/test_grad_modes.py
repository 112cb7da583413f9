"""Whether gradients are recorded, and what a tensor says of its derivation."""

import threading

import pytest
import torch

import genesis


def leaf(*values):
    return genesis.tensor(list(values), requires_grad=True)


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


@pytest.mark.parametrize("name", ["step", "function", "run", "self"])
def test_a_decorated_functions_keywords_are_its_own(name):
    assert genesis.no_grad()(lambda **given: given)(**{name: 3}) == {name: 3}


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


def test_next_functions_end_where_a_freed_graph_does():
    x = genesis.tensor([1.0], requires_grad=True)
    y = x * 2
    y.tolist()
    z = y.sin()
    assert repr(z.grad_fn.next_functions) == "((<MulBackward>, 0),)"
    z.backward()
    z.tolist(), x.grad.tolist()
    assert z.grad_fn.next_functions in (((None, 0),), ((y.grad_fn, 0),))


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


@pytest.mark.parametrize("wrap", [lambda function: function, genesis.compile], ids=["called", "compiled"])
def test_a_view_of_a_detached_tensor_takes_what_carries_a_gradient(wrap):
    x = genesis.ones(2, requires_grad=True)

    @wrap
    def step():
        state = (x * 1).detach()
        state[0] = x[1] * 2
        state.sum().backward()
        return state.detach()

    for call in range(1, 4):
        assert step().tolist() == [2, 1] and x.grad.tolist() == [0, 2 * call]


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
