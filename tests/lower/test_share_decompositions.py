"""Values beside vectors are a view of the decomposition, a small graph in and out."""

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.plan import plan_for
from genesis.lower.share_decompositions import share_decompositions
from genesis.tensor.dispatch import array_of
from tests.lower.text import cases, parsed, shown
from tests.tolerances import assert_close

CASES = cases("""
# eigenvalues of a matrix whose vectors are computed later
%0 = input() : float32[2, 2]
%1 = eigvalsh(%0, dim=0, UPLO='L') : float32[2]
%2 = exp(%1) : float32[2]
%3 = eigh(%0, dim=0, UPLO='L') : float32[6]
return %2, %3
becomes
%0 = input() : float32[2, 2]
%1 = eigh(%0, dim=0, UPLO='L') : float32[6]
%2 = slice(%1, shape=(2,), strides=(1,), offset=0) : float32[2]
%3 = exp(%2) : float32[2]
return %3, %1

# singular values of one that was decomposed before
%0 = input() : float32[2, 3]
%1 = svd(%0, dim=0, full=False) : float32[12]
%2 = svdvals(%0, dim=0, full=False) : float32[2]
return %1, %2
becomes
%0 = input() : float32[2, 3]
%1 = svd(%0, dim=0, full=False) : float32[12]
%2 = slice(%1, shape=(2,), strides=(1,), offset=4) : float32[2]
return %1, %2

# another triangle's are another matrix's
%0 = input() : float32[2, 2]
%1 = eigvalsh(%0, dim=0, UPLO='U') : float32[2]
%2 = eigh(%0, dim=0, UPLO='L') : float32[6]
return %1, %2
""")


@pytest.mark.parametrize("name", CASES)
def test_graphs(name):
    before, after = CASES[name]
    assert shown(share_decompositions(parsed(before))) == after


@pytest.mark.parametrize("name", ["eigvalsh", "svdvals"])
def test_a_step_computes_the_decomposition_once(name):
    a = np.random.default_rng(0).normal(size=(2, 4, 4))
    x, y = (library.tensor(a + a.swapaxes(1, 2), requires_grad=True) for library in (genesis, torch))
    for library, z in ((genesis, x), (torch, y)):
        (getattr(library.linalg, name)(z) ** 2).sum().backward()
    operations = [node.op for node in plan_for(array_of(x.grad).trace).lowered.nodes]
    assert operations.count(name) == 0 and operations.count({"eigvalsh": "eigh", "svdvals": "svd"}[name]) == 1
    assert_close(x.grad, y.grad, name, scale=10)
