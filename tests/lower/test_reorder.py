"""Elementwise values are computed in the order of their readers, a small graph in and out; and images put together of parts."""

import numpy as np
import pytest
import torch

import genesis
from genesis.lower.reorder import reorder
from tests.lower.text import cases, parsed, shown

CASES = cases("""
# what is read in an order that no strides express is computed in it
%0 = input() : float32[2, 4]
%1 = input() : float32[2]
%2 = expand(%1, shape=(2, 4), strides=(1, 0), offset=0) : float32[2, 4]
%3 = mul(%0, %2) : float32[2, 4]
%4 = permute(%3, shape=(2, 2, 2), strides=(2, 4, 1), offset=0) : float32[2, 2, 2]
%5 = reshape(%4, shape=(4, 2), strides=(2, 1), offset=0) : float32[4, 2]
return %5
becomes
%0 = input() : float32[2, 4]
%1 = input() : float32[2]
%2 = permute(%0, shape=(2, 2, 2), strides=(2, 4, 1), offset=0) : float32[2, 2, 2]
%3 = permute(%1, shape=(2, 2, 2), strides=(0, 1, 0), offset=0) : float32[2, 2, 2]
%4 = mul(%2, %3) : float32[2, 2, 2]
%5 = reshape(%4, shape=(4, 2), strides=(2, 1), offset=0) : float32[4, 2]
return %5

# of what elementwise values read in parts, each computes its own, and the operands' own
%0 = input() : float32[2, 4]
%1 = input() : float32[4]
%2 = expand(%1, shape=(2, 4), strides=(0, 1), offset=0) : float32[2, 4]
%3 = neg(%0) : float32[2, 4]
%4 = add(%3, %2) : float32[2, 4]
%5 = slice(%4, shape=(2, 2), strides=(4, 1), offset=2) : float32[2, 2]
%6 = slice(%4, shape=(2, 2), strides=(4, 1), offset=0) : float32[2, 2]
%7 = mul(%5, %6) : float32[2, 2]
return %7
becomes
%0 = input() : float32[2, 4]
%1 = input() : float32[4]
%2 = slice(%0, shape=(2, 2), strides=(4, 1), offset=2) : float32[2, 2]
%3 = neg(%2) : float32[2, 2]
%4 = slice(%0, shape=(2, 2), strides=(4, 1), offset=0) : float32[2, 2]
%5 = neg(%4) : float32[2, 2]
%6 = slice(%1, shape=(2, 2), strides=(0, 1), offset=2) : float32[2, 2]
%7 = add(%3, %6) : float32[2, 2]
%8 = slice(%1, shape=(2, 2), strides=(0, 1), offset=0) : float32[2, 2]
%9 = add(%5, %8) : float32[2, 2]
%10 = mul(%7, %9) : float32[2, 2]
return %10

# not what is also read in its own
%0 = input() : float32[2, 4]
%1 = exp(%0) : float32[2, 4]
%2 = permute(%1, shape=(2, 2, 2), strides=(2, 4, 1), offset=0) : float32[2, 2, 2]
%3 = reshape(%2, shape=(4, 2), strides=(2, 1), offset=0) : float32[4, 2]
return %3, %1

# nor where strides express the order
%0 = input() : float32[2, 4]
%1 = exp(%0) : float32[2, 4]
%2 = permute(%1, shape=(4, 2), strides=(1, 4), offset=0) : float32[4, 2]
%3 = input() : float32[2, 3]
%4 = matmul(%2, %3) : float32[4, 3]
return %4

# nor parts of which one is no elementwise value's, or that overlap
%0 = input() : float32[2, 6]
%1 = exp(%0) : float32[2, 6]
%2 = slice(%1, shape=(2, 3), strides=(6, 1), offset=0) : float32[2, 3]
%3 = slice(%1, shape=(2, 3), strides=(6, 1), offset=3) : float32[2, 3]
%4 = log(%2) : float32[2, 3]
%5 = sum(%3, axes=(0, 1)) : float32[]
%6 = sin(%0) : float32[2, 6]
%7 = slice(%6, shape=(2, 4), strides=(6, 1), offset=0) : float32[2, 4]
%8 = slice(%6, shape=(2, 4), strides=(6, 1), offset=2) : float32[2, 4]
%9 = mul(%7, %8) : float32[2, 4]
return %4, %5, %9

# nor in many parts, of which each would be nodes of its own
%0 = input() : float32[9]
%1 = exp(%0) : float32[9]
%2 = slice(%1, shape=(1,), strides=(1,), offset=0) : float32[1]
%3 = slice(%1, shape=(1,), strides=(1,), offset=1) : float32[1]
%4 = slice(%1, shape=(1,), strides=(1,), offset=2) : float32[1]
%5 = slice(%1, shape=(1,), strides=(1,), offset=3) : float32[1]
%6 = slice(%1, shape=(1,), strides=(1,), offset=4) : float32[1]
%7 = slice(%1, shape=(1,), strides=(1,), offset=5) : float32[1]
%8 = slice(%1, shape=(1,), strides=(1,), offset=6) : float32[1]
%9 = slice(%1, shape=(1,), strides=(1,), offset=7) : float32[1]
%10 = slice(%1, shape=(1,), strides=(1,), offset=8) : float32[1]
%11 = log(%2) : float32[1]
%12 = add(%11, %3) : float32[1]
%13 = add(%12, %4) : float32[1]
%14 = add(%13, %5) : float32[1]
%15 = add(%14, %6) : float32[1]
%16 = add(%15, %7) : float32[1]
%17 = add(%16, %8) : float32[1]
%18 = add(%17, %9) : float32[1]
%19 = add(%18, %10) : float32[1]
return %19

# nor where a part of it is read, or a part twice
%0 = input() : float32[2, 4]
%1 = exp(%0) : float32[2, 4]
%2 = slice(%1, shape=(2, 2, 1), strides=(2, 4, 1), offset=0) : float32[2, 2, 1]
%3 = reshape(%2, shape=(4, 1), strides=(1, 1), offset=0) : float32[4, 1]
%4 = log(%0) : float32[2, 4]
%5 = expand(%4, shape=(2, 2, 2), strides=(2, 4, 0), offset=0) : float32[2, 2, 2]
%6 = reshape(%5, shape=(4, 2), strides=(2, 1), offset=0) : float32[4, 2]
return %3, %6
""")


@pytest.mark.parametrize("claim", CASES)
def test_case(claim):
    before, after = CASES[claim]
    assert shown(reorder(parsed(before))) == after


def test_chains_of_any_length_are_computed_in_parts():
    length = 2000
    steps = [f"%{n + 1} = {('neg', 'exp')[n % 2]}(%{n}) : float32[2, 4]" for n in range(length)]
    ends = [f"%{length + n} = slice(%{length}, shape=(2, 2), strides=(4, 1), offset={2 * n - 2}) : float32[2, 2]"
            for n in (1, 2)]
    last = f"%{length + 3} = add(%{length + 1}, %{length + 2}) : float32[2, 2]\nreturn %{length + 3}"
    found = reorder(parsed("\n".join(["%0 = input() : float32[2, 4]", *steps, *ends, last])))
    assert [node.shape for node in found.nodes] == [(2, 4)] + [(2, 2)] * (2 * length + 3)


@pytest.mark.parametrize("layers", ["pool", "shuffle", "unshuffle"])
def test_convolutions_of_images_made_of_parts(layers):
    random = np.random.default_rng(0)
    x, w = random.normal(size=(3, 4, 6, 6)), random.normal(size=(4, 4, 3, 3))
    found = []
    for lib in (torch, genesis):
        F = lib.nn.functional
        image, weight = lib.tensor(x, requires_grad=True), lib.tensor(w, requires_grad=True)
        y = F.conv2d(image, weight, padding=1)
        y = F.relu(F.max_pool2d(y, 2)) if layers == "pool" else \
            F.pixel_shuffle(y.tanh(), 2).tanh() if layers == "shuffle" else F.pixel_unshuffle(y.tanh(), 3).tanh()
        (y * y).sum().backward()
        found.append([v.detach().numpy() for v in (y, image.grad, weight.grad)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
