"""Concatenations of concatenations are written once, a small graph in and out; pads and rolls are PyTorch's."""

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.plan import plan_for
from genesis.lower.join_concats import join_concats
from genesis.tensor.dispatch import array_of
from tests.lower.text import cases, parsed, shown

CASES = cases("""
# what the inner one is made of goes to its places in the outer one, in boxes, the largest first
%0 = input() : float32[2, 3]
%1 = input() : float32[2, 1]
%2 = cat(%0, %1, dim=1) : float32[2, 4]
%3 = slice(%2, shape=(1, 4), strides=(4, 1), offset=4) : float32[1, 4]
%4 = cat(%3, %2, dim=0) : float32[3, 4]
return %4
becomes
%0 = input() : float32[2, 3]
%1 = input() : float32[2, 1]
%2 = box(%0, shape=(1, 3), strides=(0, 1), offset=3) : float32[1, 3]
%3 = box(%1, shape=(1, 1), strides=(0, 1), offset=1) : float32[1, 1]
%4 = constant(value=0) : float32[]
%5 = expand(%4, shape=(3, 4), strides=(0, 0), offset=0) : float32[3, 4]
%6 = put(%5, %0, shape=(2, 3), strides=(4, 1), offset=4, rest='unread') : float32[3, 4]
%7 = put(%6, %2, shape=(1, 3), strides=(4, 1), offset=0, rest='unread') : float32[3, 4]
%8 = put(%7, %1, shape=(2, 1), strides=(4, 1), offset=7, rest='unread') : float32[3, 4]
%9 = put(%8, %3, shape=(1, 1), strides=(4, 1), offset=3, rest='unread') : float32[3, 4]
return %9

# one that is read elsewhere, too, stays
%0 = input() : float32[2, 3]
%1 = cat(%0, %0, dim=1) : float32[2, 6]
%2 = cat(%1, %1, dim=0) : float32[4, 6]
%3 = exp(%1) : float32[2, 6]
return %2, %3

# as does one of which no box is read, in one place at least
%0 = input() : float32[2, 3]
%1 = cat(%0, %0, dim=1) : float32[2, 6]
%2 = reshape(%1, shape=(6, 2), strides=(2, 1), offset=0) : float32[6, 2]
%3 = slice(%1, shape=(2, 2), strides=(6, 1), offset=1) : float32[2, 2]
%4 = cat(%2, %3, dim=0) : float32[8, 2]
return %4
""")


@pytest.mark.parametrize("claim", CASES)
def test_case(claim):
    before, after = CASES[claim]
    assert shown(join_concats(parsed(before))) == after


def signal(shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


PADS = [((3, 7), (2, 3)), ((2, 5, 6), (2, 1, 3, 4)), ((2, 3, 17, 9), (4, 4, 1, 0)), ((1, 2, 3, 4, 5), (1, 2, 2, 1, 2, 1)),
        ((2, 9, 12), (-1, 3, 2, -2))]


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(("shape", "pad"), PADS)
def test_pads_and_their_gradients_are_torchs(shape, pad, mode):
    array = signal(shape)
    found = []
    for library in (genesis, torch):
        x = library.tensor(array, requires_grad=True)
        y = library.nn.functional.pad(x, pad, mode=mode)
        (y * y).sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-6)


def test_pads_of_views_are_torchs():
    array = signal((11, 6, 13))
    for view in (lambda x: x.permute(1, 2, 0), lambda x: x[:, ::2, 1:], lambda x: x.flip(1)):
        found = [library.nn.functional.pad(view(library.tensor(array)), (3, 2, 1, 2), mode="reflect")
                 for library in (genesis, torch)]
        np.testing.assert_array_equal(found[0].numpy(), found[1].numpy())


@pytest.mark.parametrize(("shifts", "dims"), [((3, 5), (0, 1)), ((1, -2, 4), (2, 0, 1)), ((2, 3), (0, 0)), ((7,), None)])
def test_rolls_are_torchs(shifts, dims):
    array = signal((7, 9, 5))
    ours, theirs = (library.tensor(array).roll(shifts, dims).numpy() for library in (genesis, torch))
    np.testing.assert_array_equal(ours, theirs)


def test_a_pad_of_two_axes_is_a_kernel_for_each_shape_of_its_boxes():
    y = genesis.nn.functional.pad(genesis.tensor(signal((2, 9, 12))), (2, 2, 2, 2), mode="reflect")
    assert len(plan_for(array_of(y).trace).lowered.schedule.stages) == 4  # sides, rows above and below, corners, what is within


def test_parts_that_are_computed_of_a_sum_find_it():
    """The kernel that writes a part computes it, and reads the sum, which another kernel has computed, in memory."""
    x, y = signal((2, 2, 7))

    def product(library, p, q):
        v, w, a, b = p[..., :3], q[..., :3], p[..., 3:], q[..., 3:]
        return library.cat([a * w + b * v, a * b - (v * w).sum(-1, keepdim=True)], -1)

    def joined(library):
        p, q = library.tensor(x), library.tensor(y)
        return library.cat([p[..., :3] + q[..., :3], product(library, p[..., 3:], q[..., 3:])], -1)

    np.testing.assert_allclose(joined(genesis).numpy(), joined(torch).numpy(), rtol=1e-6)
    np.testing.assert_allclose(joined(genesis).sum().item(), joined(torch).sum().item(), rtol=1e-5)
