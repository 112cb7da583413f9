"""Gradients through the user's surface: `backward`, accumulation, `grad`."""

import warnings
import weakref

import numpy as np
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


@pytest.mark.parametrize("write", [
    lambda lib, y, x: y.zero_(), lambda lib, y, x: y.fill_(2.0), lambda lib, y, x: y.copy_(lib.ones(2)),
    lambda lib, y, x: y.copy_(x), lambda lib, y, x: y.__setitem__(..., 0.0)])
def test_a_gradient_through_what_replaces_a_whole_value_reads_nothing_that_backward_frees(write):
    found = []
    for lib in (genesis, torch):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = x + 1
        write(lib, y, x)
        total = y.sum()
        total.backward(), total.backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]


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


def test_what_is_overwritten_whole_gets_zeros():
    for lib in (genesis, torch):
        x, z = lib.ones(3, requires_grad=True), lib.ones(3, requires_grad=True)
        for write in (lambda y, z: y.copy_(z), lambda y, z: y.__setitem__(slice(None), z)):
            y = x * 2
            write(y, z)
            y.sum().backward()
        assert (x.grad.tolist(), z.grad.tolist()) == ([0, 0, 0], [2, 2, 2])


def test_a_view_requires_a_gradient_once_its_root_does():
    for lib in (genesis, torch):
        x, w = lib.zeros(2, 3), lib.ones(3, requires_grad=True)
        across, row, detached = x.t(), x[0], x.detach()
        assert not across.requires_grad
        x[1] = w
        assert across.requires_grad and row.requires_grad and not detached.requires_grad
        if lib is genesis:  # PyTorch 2.13 crashes
            across.register_hook(lambda g: g * 3)
        across.sum().backward()
        assert w.grad.tolist() == [3 if lib is genesis else 1] * 3


def test_retained_gradients_accumulate_in_new_tensors():
    def grown(lib, wrap):
        w, chain = lib.tensor([2.0, 3.0, -1.0], requires_grad=True), [lib.ones(3, requires_grad=True)]

        @wrap
        def step():
            chain.append(chain[-1] * w)
            chain[-1].retain_grad()
            chain[-1].sum().backward(retain_graph=True)
            return chain[-1].grad

        first = [step() for _ in range(4)]
        return [grad.tolist() for grad in first], [result.grad.tolist() for result in chain[1:]], w.grad.tolist()

    want = grown(torch, lambda step: step)
    assert grown(genesis, lambda step: step) == want and grown(genesis, genesis.compile) == want


def test_a_flush_keeps_the_inputs_of_live_results_alone():
    """Of two batches the one whose backward has run is not kept for the other's."""
    w = leaf(0.5, -0.5)
    values = np.random.default_rng(0).random((2, 40, 2), dtype=np.float32)
    first, second = (genesis.tensor(part) for part in values)
    buffers = [weakref.ref(x._array.memory.buffer) for x in (first, second)]
    with without_collector():
        done, left = (first * w).tanh().sum(), (second * w).tanh().sum()
        done.backward()
        before = w.grad.numpy().copy()
        del first, second
        assert [buffer() is None for buffer in buffers] == [True, False]
    left.backward()
    expected = [((1 - np.tanh(x * w.detach().numpy()) ** 2) * x).sum(0) for x in values]
    assert np.allclose(before, expected[0], rtol=1e-5) and np.allclose(w.grad.numpy(), sum(expected), rtol=1e-5)
    with pytest.raises(RuntimeError, match="released this graph"):
        done.backward()


@pytest.mark.parametrize("computed", [False, True])
def test_a_gradient_ends_at_what_is_wanted_although_the_graph_below_is_gone(computed):
    def run(lib):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        h, other, seen = x.exp(), x.sin(), []
        h.register_hook(lambda g: seen.append(g.tolist()))
        (h * other).sum().backward()
        found = []
        for factor in (2.0, 3.0):
            y = (h * factor).cos() * other
            if computed:
                y.tolist()
            found += [g.tolist() for g in lib.autograd.grad(y.sum(), [other, h])]
        (g,) = lib.autograd.grad((h * h * h).sum(), h, create_graph=True)
        found += [g.tolist(), lib.autograd.grad(g.sum(), h)[0].tolist()]
        with pytest.raises(RuntimeError, match="backward"):
            lib.autograd.grad(h.cos().sum(), [h, x])
        return [*found, *seen]

    for ours, theirs in zip(run(genesis), run(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_a_gradient_of_extrema_goes_to_both_operands_where_one_is_nan(name):
    numbers = [1.0, float("nan"), 2.0, 3.0], [float("nan"), 1.0, 2.0, 4.0]
    ours, theirs = ([library.tensor(row, requires_grad=True) for row in numbers] for library in (genesis, torch))
    for library, operands in [(genesis, ours), (torch, theirs)]:
        (getattr(library, name)(*operands) * library.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert [x.grad.tolist() for x in ours] == [x.grad.tolist() for x in theirs]


def of_a_part_and_of_all(lib, look, second):
    """The gradient of a result, and then those of what it was computed from; or an error, where that was asked before."""
    first, last = (lib.tensor([0.5, -1.0, 2.0], requires_grad=True) for _ in range(2))
    result = (first * first).exp()
    if look:
        result.sum().item()
    root = (result * last).square().sum()
    (slope,) = lib.autograd.grad(root, result)
    if look:
        slope.sum().item()
    try:
        (root if second else (result * slope * last).sum()).backward()
    except RuntimeError:
        return "refused"
    return [leaf.grad.tolist() for leaf in (first, last)]


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_a_request_for_some_inputs_releases_only_what_leads_to_them(look, second):
    ours, theirs = (of_a_part_and_of_all(lib, look, second) for lib in (genesis, torch))
    assert (theirs == "refused") == second
    assert ours == (theirs if second else [pytest.approx(values, rel=1e-6) for values in theirs])


def after_a_part(lib, wanted, look):
    """The gradients of a later value by some before it, once a backward has released what one of them was computed from."""
    x, y = (lib.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True) for _ in range(2))
    first = x * x
    second = first @ first
    third = y + second
    first.sin().sum().backward()
    if look:
        x.grad.sum().item()
    try:
        grads = lib.autograd.grad((third * third).sum(), [[first, second, third, y, x][k] for k in wanted])
    except RuntimeError:
        return "refused"
    return [grad.tolist() for grad in grads]


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("wanted", [[0], [1, 2], [0, 2], [3], [4], [0, 4]])
def test_what_a_backward_has_not_released_can_be_derived_later(wanted, look):
    ours, theirs = (after_a_part(lib, wanted, look) for lib in (genesis, torch))
    if "refused" in (ours, theirs):
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
