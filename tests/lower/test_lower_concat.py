"""Sums of slices among zeros are concatenations, a small graph in and out."""

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.plan import plan_for
from genesis.lower.lower_concat import lower_concat
from genesis.tensor.dispatch import array_of
from tests.lower.text import cases, parsed, shown

CASES = cases("""
# slices side by side are joined
%0 = input() : float32[2, 3]
%1 = input() : float32[2, 2]
%2 = constant(value=0) : float32[]
%3 = expand(%2, shape=(2, 5), strides=(0, 0), offset=0) : float32[2, 5]
%4 = put(%3, %0, shape=(2, 3), strides=(5, 1), offset=2) : float32[2, 5]
%5 = put(%3, %1, shape=(2, 2), strides=(5, 1), offset=0) : float32[2, 5]
%6 = add(%4, %5) : float32[2, 5]
return %6
becomes
%0 = input() : float32[2, 3]
%1 = input() : float32[2, 2]
%2 = cat(%1, %0, dim=1) : float32[2, 5]
return %2

# of three, all are; what lies between them is zero
%0 = input() : float32[2, 3]
%1 = constant(value=0) : float32[]
%2 = expand(%1, shape=(8, 3), strides=(0, 0), offset=0) : float32[8, 3]
%3 = put(%2, %0, shape=(2, 3), strides=(3, 1), offset=0) : float32[8, 3]
%4 = put(%2, %0, shape=(2, 3), strides=(3, 1), offset=6) : float32[8, 3]
%5 = add(%3, %4) : float32[8, 3]
%6 = put(%2, %0, shape=(2, 3), strides=(3, 1), offset=15) : float32[8, 3]
%7 = add(%5, %6) : float32[8, 3]
return %7
becomes
%0 = input() : float32[2, 3]
%1 = constant(value=0) : float32[]
%2 = expand(%1, shape=(1, 3), strides=(0, 0), offset=0) : float32[1, 3]
%3 = cat(%0, %0, %2, %0, %2, dim=0) : float32[8, 3]
return %3

# slices that overlap are added
%0 = input() : float32[2, 3]
%1 = constant(value=0) : float32[]
%2 = expand(%1, shape=(2, 5), strides=(0, 0), offset=0) : float32[2, 5]
%3 = put(%2, %0, shape=(2, 3), strides=(5, 1), offset=0) : float32[2, 5]
%4 = put(%2, %0, shape=(2, 3), strides=(5, 1), offset=2) : float32[2, 5]
%5 = add(%3, %4) : float32[2, 5]
return %5

# slices of a value that is not zero are no concatenation
%0 = input() : float32[2, 2]
%1 = constant(value=1) : float32[]
%2 = expand(%1, shape=(2, 5), strides=(0, 0), offset=0) : float32[2, 5]
%3 = put(%2, %0, shape=(2, 2), strides=(5, 1), offset=0) : float32[2, 5]
%4 = put(%2, %0, shape=(2, 2), strides=(5, 1), offset=2) : float32[2, 5]
%5 = add(%3, %4) : float32[2, 5]
return %5

# neither are every second element, nor rows beside columns
%0 = input() : float32[2, 2]
%1 = constant(value=0) : float32[]
%2 = expand(%1, shape=(2, 4), strides=(0, 0), offset=0) : float32[2, 4]
%3 = put(%2, %0, shape=(2, 2), strides=(4, 2), offset=0) : float32[2, 4]
%4 = put(%2, %0, shape=(2, 2), strides=(4, 1), offset=2) : float32[2, 4]
%5 = add(%3, %4) : float32[2, 4]
%6 = put(%2, %0, shape=(4,), strides=(1,), offset=0) : float32[2, 4]
%7 = add(%4, %6) : float32[2, 4]
return %5, %7
""")


@pytest.mark.parametrize("claim", CASES)
def test_case(claim):
    before, after = CASES[claim]
    assert shown(lower_concat(parsed(before))) == after


def parts_multiplied(x):
    q, k, v = (part.reshape(4, 6, 2, 4).transpose(1, 2) for part in (x * 2).chunk(3, dim=-1))
    return q @ k.transpose(2, 3) @ v


SLICED = {
    "chunks, their axes exchanged": parts_multiplied,
    "with a gap": lambda x: (lambda y: y[:, 1:2].sin() * y[:, 4:].cos())(x * 2),
    "rows": lambda x: (lambda y: y[:1].sin() * y[2:3].cos() * y[3:].exp())(x * 2),
}


@pytest.mark.parametrize("name", SLICED)
def test_gradients_of_slices_are_torchs_and_nothing_is_padded(name):
    array = np.random.default_rng(0).standard_normal((4, 6, 24))
    found = []
    for library in (genesis, torch):
        x = library.tensor(array, requires_grad=True)
        SLICED[name](x).sum().backward()
        found.append(x.grad)
    nodes = plan_for(array_of(found[0]).trace).lowered.nodes
    assert "put" not in {node.op for node in nodes}
    np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), rtol=1e-10, atol=1e-12)
