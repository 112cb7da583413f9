"""Batches of narrow products are one product, a small graph in and out; and convolutions of images of any size are torch's."""

import numpy as np
import pytest
import torch

import genesis
from genesis.lower.join_batches import join_batches
from tests.lower.text import cases, parsed, shown

CASES = cases("""
# a matrix times each of four narrow ones is a product with all of them, side by side
%0 = input() : float32[32, 40]
%1 = expand(%0, shape=(4, 32, 40), strides=(0, 40, 1), offset=0) : float32[4, 32, 40]
%2 = input() : float32[4, 40, 16]
%3 = matmul(%1, %2) : float32[4, 32, 16]
return %3
becomes
%0 = input() : float32[32, 40]
%1 = input() : float32[4, 40, 16]
%2 = permute(%1, shape=(40, 4, 16), strides=(16, 640, 1), offset=0) : float32[40, 4, 16]
%3 = reshape(%2, shape=(40, 64), strides=(64, 1), offset=0) : float32[40, 64]
%4 = matmul(%0, %3) : float32[32, 64]
%5 = permute(%4, shape=(4, 32, 16), strides=(16, 64, 1), offset=0) : float32[4, 32, 16]
return %5

# groups stay a batch
%0 = input() : float32[3, 32, 40]
%1 = expand(%0, shape=(4, 3, 32, 40), strides=(0, 1280, 40, 1), offset=0) : float32[4, 3, 32, 40]
%2 = input() : float32[4, 3, 40, 16]
%3 = matmul(%1, %2) : float32[4, 3, 32, 16]
return %3
becomes
%0 = input() : float32[3, 32, 40]
%1 = input() : float32[4, 3, 40, 16]
%2 = permute(%1, shape=(3, 40, 4, 16), strides=(640, 16, 1920, 1), offset=0) : float32[3, 40, 4, 16]
%3 = reshape(%2, shape=(3, 40, 64), strides=(2560, 64, 1), offset=0) : float32[3, 40, 64]
%4 = matmul(%0, %3) : float32[3, 32, 64]
%5 = permute(%4, shape=(4, 3, 32, 16), strides=(16, 2048, 64, 1), offset=0) : float32[4, 3, 32, 16]
return %5

# a sum of products of few terms has those of all one after the other
%0 = input() : float32[4, 32, 16]
%1 = input() : float32[4, 16, 40]
%2 = matmul(%0, %1) : float32[4, 32, 40]
%3 = sum(%2, axes=(0,)) : float32[32, 40]
return %3
becomes
%0 = input() : float32[4, 32, 16]
%1 = input() : float32[4, 16, 40]
%2 = permute(%0, shape=(32, 4, 16), strides=(16, 512, 1), offset=0) : float32[32, 4, 16]
%3 = reshape(%2, shape=(32, 64), strides=(64, 1), offset=0) : float32[32, 64]
%4 = permute(%1, shape=(64, 40), strides=(40, 1), offset=0) : float32[64, 40]
%5 = matmul(%3, %4) : float32[32, 40]
return %5

# with many columns for the terms, and with a matrix for each, nothing changes
%0 = input() : float32[4, 32, 40]
%1 = input() : float32[4, 40, 16]
%2 = matmul(%0, %1) : float32[4, 32, 16]
%3 = input() : float32[32, 40]
%4 = expand(%3, shape=(4, 32, 40), strides=(0, 40, 1), offset=0) : float32[4, 32, 40]
%5 = input() : float32[4, 40, 64]
%6 = matmul(%4, %5) : float32[4, 32, 64]
return %2, %6
""")


@pytest.mark.parametrize("claim", CASES)
def test_case(claim):
    before, after = CASES[claim]
    assert shown(join_batches(parsed(before))) == after


@pytest.mark.parametrize(("side", "stride"), [(4, 1), (7, 2), (8, 1), (14, 2)])
def test_convolutions_of_small_images(side, stride):
    random = np.random.default_rng(side)
    x, w = random.normal(size=(6, 32, side, side)), random.normal(size=(40, 32, 3, 3))
    found = []
    for lib in (torch, genesis):
        image, weight = lib.tensor(x, requires_grad=True), lib.tensor(w, requires_grad=True)
        y = lib.nn.functional.conv2d(image, weight, stride=stride, padding=1)
        (y * y).sum().backward()
        found.append([v.detach().numpy() for v in (y, image.grad, weight.grad)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
