"""A max pool of a relu comes before it, a small graph in and out; values and gradients are PyTorch's, whatever else is read."""

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.plan import plan_for
from genesis.lower.pool_first import pool_first
from genesis.tensor.dispatch import array_of
from tests.lower.text import cases, parsed, shown

CASES = cases("""
# the greatest of each window is masked, and the windows' gradients with it
%0 = input() : float32[2, 4]
%1 = relu(%0) : float32[2, 4]
%2 = permute(%1, shape=(2, 2, 2), strides=(2, 4, 1), offset=0) : float32[2, 2, 2]
%3 = reshape(%2, shape=(2, 4), strides=(4, 1), offset=0) : float32[2, 4]
%4 = max(%3, axes=(1,), first=True) : float32[2]
%5 = input() : float32[2]
%6 = argmax(%3, axes=(1,)) : int8[2]
%7 = iota() : int8[4]
%8 = expand(%7, shape=(2, 4), strides=(0, 1), offset=0) : int8[2, 4]
%9 = expand(%6, shape=(2, 4), strides=(1, 0), offset=0) : int8[2, 4]
%10 = eq(%8, %9) : bool[2, 4]
%11 = expand(%5, shape=(2, 4), strides=(1, 0), offset=0) : float32[2, 4]
%12 = constant(value=0.0) : float32[]
%13 = expand(%12, shape=(2, 4), strides=(0, 0), offset=0) : float32[2, 4]
%14 = where(%10, %11, %13) : float32[2, 4]
%15 = permute(%14, shape=(2, 2, 2), strides=(2, 4, 1), offset=0) : float32[2, 2, 2]
%16 = reshape(%15, shape=(2, 4), strides=(4, 1), offset=0) : float32[2, 4]
%17 = le(%1, %13) : bool[2, 4]
%18 = where(%17, %13, %16) : float32[2, 4]
return %4, %18
becomes
%0 = input() : float32[2, 4]
%1 = permute(%0, shape=(2, 2, 2), strides=(2, 4, 1), offset=0) : float32[2, 2, 2]
%2 = reshape(%1, shape=(2, 4), strides=(4, 1), offset=0) : float32[2, 4]
%3 = max(%2, axes=(1,), first=True) : float32[2]
%4 = relu(%3) : float32[2]
%5 = input() : float32[2]
%6 = argmax(%2, axes=(1,)) : int8[2]
%7 = iota() : int8[4]
%8 = expand(%7, shape=(2, 4), strides=(0, 1), offset=0) : int8[2, 4]
%9 = expand(%6, shape=(2, 4), strides=(1, 0), offset=0) : int8[2, 4]
%10 = eq(%8, %9) : bool[2, 4]
%11 = expand(%5, shape=(2, 4), strides=(1, 0), offset=0) : float32[2, 4]
%12 = constant(value=0.0) : float32[]
%13 = expand(%12, shape=(2, 4), strides=(0, 0), offset=0) : float32[2, 4]
%14 = where(%10, %11, %13) : float32[2, 4]
%15 = expand(%4, shape=(2, 4), strides=(1, 0), offset=0) : float32[2, 4]
%16 = le(%15, %13) : bool[2, 4]
%17 = where(%16, %13, %14) : float32[2, 4]
%18 = permute(%17, shape=(2, 2, 2), strides=(2, 4, 1), offset=0) : float32[2, 2, 2]
%19 = reshape(%18, shape=(2, 4), strides=(4, 1), offset=0) : float32[2, 4]
return %4, %19

# a relu that is wanted itself stays
%0 = input() : float32[2, 4]
%1 = relu(%0) : float32[2, 4]
%2 = permute(%1, shape=(4, 2), strides=(1, 4), offset=0) : float32[4, 2]
%3 = max(%2, axes=(1,), first=True) : float32[4]
return %3, %1

# as one whose windows' positions are
%0 = input() : float32[2, 4]
%1 = relu(%0) : float32[2, 4]
%2 = permute(%1, shape=(4, 2), strides=(1, 4), offset=0) : float32[4, 2]
%3 = max(%2, axes=(1,), first=True) : float32[4]
%4 = argmax(%2, axes=(1,)) : int8[4]
return %3, %4

# and where the gradients' image is in another order than the windows were taken from
%0 = input() : float32[2, 2]
%1 = relu(%0) : float32[2, 2]
%2 = permute(%1, shape=(2, 2), strides=(1, 2), offset=0) : float32[2, 2]
%3 = max(%2, axes=(1,), first=True) : float32[2]
%4 = input() : float32[2]
%5 = argmax(%2, axes=(1,)) : int8[2]
%6 = iota() : int8[2]
%7 = expand(%6, shape=(2, 2), strides=(0, 1), offset=0) : int8[2, 2]
%8 = expand(%5, shape=(2, 2), strides=(1, 0), offset=0) : int8[2, 2]
%9 = eq(%7, %8) : bool[2, 2]
%10 = expand(%4, shape=(2, 2), strides=(1, 0), offset=0) : float32[2, 2]
%11 = constant(value=0.0) : float32[]
%12 = expand(%11, shape=(2, 2), strides=(0, 0), offset=0) : float32[2, 2]
%13 = where(%9, %10, %12) : float32[2, 2]
%14 = flip(%13, shape=(2, 2), strides=(-1, -2), offset=3) : float32[2, 2]
%15 = le(%1, %12) : bool[2, 2]
%16 = where(%15, %12, %14) : float32[2, 2]
return %3, %16

# or shows them where no window is
%0 = input() : float32[2, 2]
%1 = relu(%0) : float32[2, 2]
%2 = slice(%1, shape=(2, 1), strides=(2, 1), offset=0) : float32[2, 1]
%3 = max(%2, axes=(1,), first=True) : float32[2]
%4 = input() : float32[2]
%5 = argmax(%2, axes=(1,)) : int8[2]
%6 = iota() : int8[1]
%7 = expand(%6, shape=(2, 1), strides=(0, 1), offset=0) : int8[2, 1]
%8 = expand(%5, shape=(2, 1), strides=(1, 0), offset=0) : int8[2, 1]
%9 = eq(%7, %8) : bool[2, 1]
%10 = expand(%4, shape=(2, 1), strides=(1, 0), offset=0) : float32[2, 1]
%11 = constant(value=0.0) : float32[]
%12 = expand(%11, shape=(2, 1), strides=(0, 0), offset=0) : float32[2, 1]
%13 = where(%9, %10, %12) : float32[2, 1]
%14 = expand(%13, shape=(2, 2), strides=(1, 0), offset=0) : float32[2, 2]
%15 = expand(%11, shape=(2, 2), strides=(0, 0), offset=0) : float32[2, 2]
%16 = le(%1, %15) : bool[2, 2]
%17 = where(%16, %15, %14) : float32[2, 2]
return %3, %17

# nor where positions are along another axis
%0 = input() : float32[4]
%1 = relu(%0) : float32[4]
%2 = reshape(%1, shape=(2, 2), strides=(2, 1), offset=0) : float32[2, 2]
%3 = max(%2, axes=(1,), first=True) : float32[2]
%4 = input() : float32[2]
%5 = argmax(%2, axes=(0,)) : int8[2]
%6 = iota() : int8[2]
%7 = expand(%6, shape=(2, 2), strides=(0, 1), offset=0) : int8[2, 2]
%8 = expand(%5, shape=(2, 2), strides=(1, 0), offset=0) : int8[2, 2]
%9 = eq(%7, %8) : bool[2, 2]
%10 = expand(%4, shape=(2, 2), strides=(1, 0), offset=0) : float32[2, 2]
%11 = constant(value=0.0) : float32[]
%12 = expand(%11, shape=(2, 2), strides=(0, 0), offset=0) : float32[2, 2]
%13 = where(%9, %10, %12) : float32[2, 2]
%14 = reshape(%13, shape=(4,), strides=(1,), offset=0) : float32[4]
%15 = expand(%11, shape=(4,), strides=(0,), offset=0) : float32[4]
%16 = le(%1, %15) : bool[4]
%17 = where(%16, %15, %14) : float32[4]
return %3, %17
""")


@pytest.mark.parametrize("claim", CASES)
def test_case(claim):
    before, after = CASES[claim]
    assert shown(pool_first(parsed(before))) == after


def steps(lib, data, size, also):
    """The pool of a relu, its gradient and what else is asked for, of numbers that are often equal and below 0."""
    F = lib.nn.functional
    x = lib.tensor(data, requires_grad=True)
    positive = F.relu(x * 2)
    if also == "the relu's gradient":
        positive.retain_grad()
    asked = also == "indices"
    pooled, *indices = F.max_pool2d(positive, size, return_indices=True) if asked else [F.max_pool2d(positive, size)]
    loss = (pooled * lib.arange(pooled.numel()).reshape(pooled.shape)).sum()
    if also == "the relu":
        loss = loss + (positive * positive).sum()
    kept = positive if also == "the relu's gradient" else None
    del positive
    loss.backward()
    found = [pooled, x.grad, *indices, *([kept.grad] if kept is not None else [])]
    return [value.detach().numpy() for value in found]


def test_a_step_keeps_no_image_for_the_relu():
    x, w = (genesis.tensor(np.ones(shape, np.float32), requires_grad=True) for shape in ((2, 3, 8, 8), (4, 3, 3, 3)))
    y = genesis.nn.functional.max_pool2d(genesis.relu(genesis.nn.functional.conv2d(x, w, padding=1)), 2)
    y.sum().backward()
    lowered = plan_for(array_of(w.grad).trace).lowered
    assert [node.shape for node in lowered.nodes if node.op == "relu"] == [(2, 4, 4, 4)]


@pytest.mark.parametrize("also", ["", "indices", "the relu", "the relu's gradient"])
@pytest.mark.parametrize("size", [2, (2, 3), (3, 4)], ids=str)
def test_pools_of_relus(size, also):
    random = np.random.default_rng(0)
    data = random.integers(-3, 2, size=(2, 3, 6, 12)).astype(np.float64)
    for theirs, ours in zip(steps(torch, data, size, also), steps(genesis, data, size, also), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_infinities_and_windows_of_nothing_but_zeros():
    data = np.array([[[[-np.inf, -1, np.inf, 2], [-2, -np.inf, 5, np.inf], [-0.0, -1, 0, 0], [-3, -0.0, 0, -0.0]]]])
    for theirs, ours in zip(steps(torch, data, 2, ""), steps(genesis, data, 2, ""), strict=True):
        np.testing.assert_array_equal(ours, theirs)
