"""Minimal programs that random ones shrank to, each named for the fault that it showed."""

import numpy as np
import torch

import genesis
from tests.fuzz.oracle import checked_flushes


def numbers(*shape, dtype=np.float32):
    return genesis.from_numpy(np.arange(np.prod(shape)).reshape(shape).astype(dtype))


def test_a_view_that_no_nest_can_read_through_another_is_read_from_a_copy():
    """The diagonal of a slice with gaps."""
    with checked_flushes():
        x = numbers(30, 7)
        doubled = genesis.cat([x.unsqueeze(1), x.unsqueeze(1)], 1)
        part = doubled[10:26:3]
        held = genesis.sign(part), part.diagonal(1), part.permute(1, 2, 0) * 2
        held[0].numpy()


def test_two_orders_of_axes_in_one_nest():
    """A gather at rows in one order, beside a permuted copy of the same values in another."""
    with checked_flushes():
        x = numbers(7, 5, 16, 3)
        largest, _ = x.max(3)
        held = largest * 2, x.permute(1, 0, 2, 3).clone() + 1, largest.sum(), (x * 2).sum()
        held[0].numpy()


def test_a_gather_waits_for_the_values_it_reads():
    with checked_flushes():
        x = numbers(5, 1)
        chosen, _ = (x * x).max(1)
        chosen.numpy()


def test_nothing_is_computed_of_nothing():
    with checked_flushes():
        x = numbers(0, 0).reshape(0, 1, 0)
        genesis.cat([x, x, x], 1).numpy()


def test_an_outer_product_of_integers():
    with checked_flushes():
        x = numbers(4, 1, dtype=np.int32)
        held = x @ numbers(1, 1, dtype=np.int32), genesis.argmax(x, 0)
        held[0].numpy()


def test_results_do_not_share_memory():
    array = np.zeros(4, np.float32)
    x = genesis.from_numpy(array)
    same, backwards = x.clone(), x.flip(0)
    same.numpy()[0] = 7
    array[1] = 5
    assert backwards.tolist() == [0, 0, 0, 0]
    assert same.tolist() == [7, 0, 0, 0]


def test_a_gradient_of_a_result_that_was_looked_at():
    for function in (lambda x: x.sum(1), lambda x: x.reshape(12), lambda x: genesis.cat([x, x], 1)):
        x = genesis.ones(3, 4, requires_grad=True)
        y = function(x)
        y.detach().numpy()
        y.sum().backward()
        assert x.grad.sum().item() in (12, 24)


def test_a_second_gradient_across_a_look_at_what_the_first_read():
    """create_graph: what was saved by a program that has run leads back into its derivation."""
    x = genesis.tensor([0.5, 2.0], dtype=genesis.float64).requires_grad_()
    y = x * x
    y.detach().numpy()
    (slope,) = genesis.autograd.grad((y * y).sum(), [x], create_graph=True)
    slope.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 12 * np.array([0.25, 4.0]))


def test_what_changes_nothing_has_a_gradient_of_its_own():
    for function in (lambda x: x.reshape(()), lambda x: x.sum(), lambda x: x.amax()):
        x = genesis.tensor(1.0, requires_grad=True)
        y = x * 2
        same = function(y)
        y.retain_grad()
        same.retain_grad()
        (same * 3 + y).backward()
        assert (same.grad.item(), y.grad.item()) == (3, 4)


def test_a_sum_over_all_does_not_overwrite_what_the_result_beside_it_reads():
    """The bias of a layer with one output: the loss, of as many bytes, was put where the bias lay before it was read."""
    x, bias = numbers(4, 1), genesis.tensor([0.5], requires_grad=True)
    loss = ((x + bias) ** 2).mean()
    loss.backward()
    with genesis.no_grad():
        bias -= 0.1 * bias.grad
    assert (loss.item(), bias.grad.item()) == (5.25, 4)
    np.testing.assert_allclose(bias.detach().numpy(), [0.1], rtol=1e-6)


def test_products_of_nothing_are_not_run_tile_by_tile():
    for batch, rows, width in ((3, 1, 0), (3, 0, 4), (0, 2, 4)):
        x = genesis.rand(batch, rows, width, requires_grad=True)
        y = ((x @ genesis.ones(width, 2)).tanh() @ genesis.ones(2, 3)).sum(1)
        y.sum().backward()
        assert (y.shape, x.grad.shape) == ((batch, 3), x.shape)


def test_attention_among_nothing_is_torchs():
    for length, keys, width, values in ((0, 0, 2, 2), (2, 0, 3, 4), (2, 3, 0, 4), (2, 3, 4, 0)):
        for masked in (False, True):
            found = []
            for lib in (genesis, torch):
                query, key = lib.ones(1, length, width, requires_grad=True), lib.ones(1, keys, width)
                value, mask = lib.arange(float(keys * values)).reshape(1, keys, values), lib.zeros(length, keys)
                y = lib.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask if masked else None)
                y.sum().backward()
                found.append([y.detach().numpy(), query.grad.numpy(), lib.softmax(mask, -1).numpy()])
            for ours, theirs in zip(*found, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-6)
