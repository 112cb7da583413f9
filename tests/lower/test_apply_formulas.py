"""Host operations with a formula become it: a small graph in and out, and values that are the references'."""

import numpy as np
import pytest

import genesis
from genesis.lower.apply_formulas import apply_formulas
from genesis.ops.registry import PRIMITIVES
from tests.lower.text import cases, parsed, shown
from tests.tolerances import assert_close

CASES = cases("""
# sums of exponentials by a running maximum
%0 = input() : float32[3]
%1 = logcumsumexp(%0, dim=0) : float32[3]
return %1
becomes
%0 = input() : float32[3]
%1 = running_max(%0, dim=0) : float32[3]
%2 = slice(%1, shape=(2,), strides=(1,), offset=0) : float32[2]
%3 = constant(value=-inf) : float32[]
%4 = expand(%3, shape=(1,), strides=(0,), offset=0) : float32[1]
%5 = cat(%4, %2, dim=0) : float32[3]
%6 = eq(%5, %1) : bool[3]
%7 = sub(%5, %1) : float32[3]
%8 = exp(%7) : float32[3]
%9 = constant(value=1.0) : float32[]
%10 = expand(%9, shape=(3,), strides=(0,), offset=0) : float32[3]
%11 = where(%6, %10, %8) : float32[3]
%12 = eq(%0, %1) : bool[3]
%13 = sub(%0, %1) : float32[3]
%14 = exp(%13) : float32[3]
%15 = where(%12, %11, %14) : float32[3]
%16 = recurrence(%11, %15, dim=0) : float32[3]
%17 = add(%16, %10) : float32[3]
%18 = log(%17) : float32[3]
%19 = sub(%17, %10) : float32[3]
%20 = sub(%16, %19) : float32[3]
%21 = div(%20, %17) : float32[3]
%22 = add(%18, %21) : float32[3]
%23 = add(%1, %22) : float32[3]
return %23
""")


@pytest.mark.parametrize("name", CASES)
def test_graphs(name):
    before, after = CASES[name]
    assert shown(apply_formulas(parsed(before), True)) == after


@pytest.mark.parametrize("options", [{}, {"hermitian": True}, {"atol": 0.5}, {"rtol": 0.3}], ids=str)
def test_a_pseudo_inverse_is_numpys_though_no_matrix_is_inverted_by_it(options):
    a = np.random.default_rng(0).normal(size=(3, 6, 2))
    a = a @ a.swapaxes(1, 2)
    s = np.linalg.svd(a)[1]
    rtol = np.maximum(options.get("atol", 0), options.get("rtol", 1e-14) * s.max(-1)) / s.max(-1)
    assert_close(genesis.linalg.pinv(genesis.tensor(a), **options).numpy(), np.linalg.pinv(a, rtol))


def test_only_host_operations_have_formulas():
    assert {row.kind for row in PRIMITIVES.values() if row.formula} == {"host"}
