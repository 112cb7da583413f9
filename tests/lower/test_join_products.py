"""Sums of products of few terms are one product, a small graph in and out."""

import numpy as np
import pytest
import torch

import genesis
from genesis.lower.join_products import join_products
from tests.lower.text import cases, parsed, shown

CASES = cases("""
# what two products add up to is one product; what is added besides follows
%0 = input() : float32[9, 2]
%1 = input() : float32[2, 9]
%2 = input() : float32[9, 1]
%3 = input() : float32[1, 9]
%4 = input() : float32[9, 9]
%5 = matmul(%0, %1) : float32[9, 9]
%6 = add(%5, %4) : float32[9, 9]
%7 = matmul(%2, %3) : float32[9, 9]
%8 = add(%6, %7) : float32[9, 9]
return %8
becomes
%0 = input() : float32[9, 2]
%1 = input() : float32[2, 9]
%2 = input() : float32[9, 1]
%3 = input() : float32[1, 9]
%4 = input() : float32[9, 9]
%5 = permute(%2, shape=(1, 9), strides=(1, 1), offset=0) : float32[1, 9]
%6 = permute(%0, shape=(2, 9), strides=(1, 2), offset=0) : float32[2, 9]
%7 = cat(%5, %6, dim=0) : float32[3, 9]
%8 = permute(%7, shape=(9, 3), strides=(1, 9), offset=0) : float32[9, 3]
%9 = cat(%3, %1, dim=0) : float32[3, 9]
%10 = matmul(%8, %9) : float32[9, 9]
%11 = add(%10, %4) : float32[9, 9]
return %11

# column sums of what was joined are those of the whole
%0 = input() : float32[2, 9]
%1 = input() : float32[2, 9]
%2 = input() : float32[2, 9]
%3 = input() : float32[2, 9]
%4 = permute(%0, shape=(9, 2), strides=(1, 9), offset=0) : float32[9, 2]
%5 = matmul(%4, %1) : float32[9, 9]
%6 = sum(%0, axes=(0,)) : float32[9]
%7 = permute(%2, shape=(9, 2), strides=(1, 9), offset=0) : float32[9, 2]
%8 = matmul(%7, %3) : float32[9, 9]
%9 = add(%5, %8) : float32[9, 9]
%10 = sum(%2, axes=(0,)) : float32[9]
%11 = add(%6, %10) : float32[9]
return %9, %11
becomes
%0 = input() : float32[2, 9]
%1 = input() : float32[2, 9]
%2 = input() : float32[2, 9]
%3 = input() : float32[2, 9]
%4 = cat(%2, %0, dim=0) : float32[4, 9]
%5 = permute(%4, shape=(9, 4), strides=(1, 9), offset=0) : float32[9, 4]
%6 = cat(%3, %1, dim=0) : float32[4, 9]
%7 = matmul(%5, %6) : float32[9, 9]
%8 = sum(%4, axes=(0,)) : float32[9]
return %7, %8

# a product that is read elsewhere is computed in any case
%0 = input() : float32[9, 2]
%1 = input() : float32[2, 9]
%2 = matmul(%0, %1) : float32[9, 9]
%3 = input() : float32[9, 2]
%4 = matmul(%3, %1) : float32[9, 9]
%5 = add(%2, %4) : float32[9, 9]
%6 = mul(%2, %5) : float32[9, 9]
return %6

# with as many terms it is quicker to add the results
%0 = input() : float32[4, 4]
%1 = input() : float32[4, 4]
%2 = input() : float32[4, 4]
%3 = matmul(%0, %1) : float32[4, 4]
%4 = matmul(%0, %2) : float32[4, 4]
%5 = add(%3, %4) : float32[4, 4]
return %5
""")


@pytest.mark.parametrize("claim", CASES)
def test_case(claim):
    before, after = CASES[claim]
    assert shown(join_products(parsed(before))) == after


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_gradients_of_recurrent_layers_are_torch_s(layer):
    torch.manual_seed(0)
    theirs, ours = (getattr(lib.nn, layer)(5, 48, 2, dtype=lib.float64) for lib in (torch, genesis))
    ours.load_state_dict({name: genesis.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(6, 3, 5))
    for lib, model in ((torch, theirs), (genesis, ours)):
        (model(lib.tensor(x))[0] ** 2).sum().backward()
    for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
        np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy(), rtol=1e-10, atol=1e-12)
