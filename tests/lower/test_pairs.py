"""Products of bfloat16 matrices by pairs of terms: small graphs in and out, and the numbers, whatever the processor."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis
from genesis.lower.legalize import legalize
from tests.lower.text import cases, parsed, shown

CASES = cases("""
# matrices whose terms are adjacent, or whose lines are, are read where they are
%0 = input() : bfloat16[40, 64]
%1 = input() : bfloat16[64, 48]
%2 = matmul(%0, %1) : bfloat16[40, 48]
return %2
becomes
%0 = input() : bfloat16[40, 64]
%1 = input() : bfloat16[64, 48]
%2 = matmul(%0, %1, pairs=True) : float32[40, 48]
%3 = cast(%2, dtype='bfloat16') : bfloat16[40, 48]
return %3

# a weight that a batch shares, of which neither is, is copied once
%0 = input() : bfloat16[3, 40, 64]
%1 = input() : bfloat16[64, 96]
%2 = slice(%1, shape=(3, 64, 48), strides=(0, 96, 2), offset=0) : bfloat16[3, 64, 48]
%3 = matmul(%0, %2) : float32[3, 40, 48]
return %3
becomes
%0 = input() : bfloat16[3, 40, 64]
%1 = input() : bfloat16[64, 96]
%2 = slice(%1, shape=(3, 64, 48), strides=(0, 96, 2), offset=0) : bfloat16[3, 64, 48]
%3 = slice(%1, shape=(3, 48, 64), strides=(0, 2, 96), offset=0) : bfloat16[3, 48, 64]
%4 = slice(%3, shape=(1, 48, 64), strides=(3072, 64, 1), offset=0) : bfloat16[1, 48, 64]
%5 = clone(%4) : bfloat16[1, 48, 64]
%6 = expand(%5, shape=(3, 48, 64), strides=(0, 64, 1), offset=0) : bfloat16[3, 48, 64]
%7 = expand(%5, shape=(3, 64, 48), strides=(0, 1, 64), offset=0) : bfloat16[3, 64, 48]
%8 = matmul(%0, %7, pairs=True) : float32[3, 40, 48]
return %8

# a zero goes behind an odd number of terms
%0 = input() : bfloat16[40, 63]
%1 = input() : bfloat16[48, 63]
%2 = permute(%1, shape=(63, 48), strides=(1, 63), offset=0) : bfloat16[63, 48]
%3 = matmul(%0, %2) : float32[40, 48]
return %3
becomes
%0 = input() : bfloat16[40, 63]
%1 = input() : bfloat16[48, 63]
%2 = permute(%1, shape=(63, 48), strides=(1, 63), offset=0) : bfloat16[63, 48]
%3 = constant(value=0) : bfloat16[]
%4 = expand(%3, shape=(40, 64), strides=(0, 0), offset=0) : bfloat16[40, 64]
%5 = put(%4, %0, shape=(40, 63), strides=(64, 1), offset=0) : bfloat16[40, 64]
%6 = terms(%5, shape=(40, 63), strides=(64, 1), offset=0) : bfloat16[40, 63]
%7 = permute(%1, shape=(48, 63), strides=(63, 1), offset=0) : bfloat16[48, 63]
%8 = expand(%3, shape=(48, 64), strides=(0, 0), offset=0) : bfloat16[48, 64]
%9 = put(%8, %7, shape=(48, 63), strides=(64, 1), offset=0) : bfloat16[48, 64]
%10 = terms(%9, shape=(48, 63), strides=(64, 1), offset=0) : bfloat16[48, 63]
%11 = terms(%9, shape=(63, 48), strides=(1, 64), offset=0) : bfloat16[63, 48]
%12 = matmul(%6, %11, pairs=True) : float32[40, 48]
return %12

# where only some terms count, they are counted one by one
%0 = input() : bfloat16[40, 64]
%1 = input() : bfloat16[48, 64]
%2 = permute(%1, shape=(64, 48), strides=(1, 64), offset=0) : bfloat16[64, 48]
%3 = matmul(%0, %2, only='k<=m') : float32[40, 48]
return %3
becomes
%0 = input() : bfloat16[40, 64]
%1 = input() : bfloat16[48, 64]
%2 = permute(%1, shape=(64, 48), strides=(1, 64), offset=0) : bfloat16[64, 48]
%3 = cast(%0, dtype='float32') : float32[40, 64]
%4 = cast(%2, dtype='float32') : float32[64, 48]
%5 = matmul(%3, %4, only='k<=m') : float32[40, 48]
return %5
""")


@pytest.mark.parametrize("claim", CASES)
def test_case(claim):
    before, after = CASES[claim]
    assert shown(legalize(parsed(before), pairs=True)) == after


def lie(form, x):
    """`x` as a view of another tensor, or as a result that is computed with the product."""
    rows, columns = x.shape[-2:]
    wider = x.new_zeros((*x.shape[:-2], rows + 1, 2 * columns + 3))
    if form == "transposed":
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    if form == "in every other column":
        wider[..., 1:, 1 : 2 * columns : 2] = x
        return wider[..., 1:, 1 : 2 * columns : 2]
    if form == "inside":
        wider[..., 1:, 3 : columns + 3] = x
        return wider[..., 1:, 3 : columns + 3]
    return -x if form == "computed" else x


FORMS = st.sampled_from(["as it is", "transposed", "in every other column", "inside", "computed"])
EXTENTS = st.sampled_from([2, 7, 16, 33, 64, 65, 130])


@settings(max_examples=40)
@given(st.sampled_from([(), (2,), (3, 2)]), EXTENTS, EXTENTS, EXTENTS, FORMS, FORMS, st.booleans())
def test_sums_of_small_integers_are_exact(lead, rows, terms, columns, left, right, shared):
    random = np.random.default_rng(terms)
    a, b = random.integers(-4, 5, (*lead, rows, terms)), random.integers(-4, 5, (*(() if shared else lead), terms, columns))
    y = lie(left, genesis.tensor(a).bfloat16()) @ lie(right, genesis.tensor(b).bfloat16())
    wanted = (-1) ** ((left == "computed") + (right == "computed")) * torch.tensor(a @ b).bfloat16()
    np.testing.assert_array_equal(y.float().numpy(), wanted.float().numpy())


def test_windows_of_a_vector_are_a_left_operand():
    numbers, right = np.arange(200) % 7, np.arange(64 * 48).reshape(64, 48) % 5
    windows = genesis.tensor(numbers).bfloat16().unfold(0, 64, 1)
    wanted = torch.tensor(np.lib.stride_tricks.sliding_window_view(numbers, 64) @ right).bfloat16()
    np.testing.assert_array_equal((windows @ genesis.tensor(right).bfloat16()).float().numpy(), wanted.float().numpy())


@pytest.mark.parametrize("rows", [96, 97])
def test_a_step_under_autocast_is_torchs(rows):
    random = np.random.default_rng(rows)
    x, w, v = (random.normal(size=shape).astype(np.float32) for shape in ((rows, 64), (128, 64), (32, 128)))
    found = []
    for library in (genesis, torch):
        given = [library.tensor(each, requires_grad=True) for each in (x, w, v)]
        with library.autocast("cpu", dtype=library.bfloat16):
            linear = library.nn.functional.linear
            loss = linear(linear(given[0], given[1]).relu(), given[2]).float().square().mean()
        loss.backward()
        found.append([loss.detach().numpy(), *(each.grad.numpy() for each in given)])
    for got, wanted in zip(*found, strict=True):
        assert np.abs(got - wanted).max() <= 0.02 * np.abs(wanted).max()


@settings(max_examples=25)
@given(
    st.integers(1, 3), st.sampled_from([1, 3, 16]), st.sampled_from([2, 3, 24]), st.sampled_from([1, 2, 3]),
    st.sampled_from([7, 8, 14, 31]), st.sampled_from([1, 2]), st.sampled_from([1, 2]),
)
def test_convolutions_and_their_gradients_sum_small_integers_exactly(images, channels, out, taps, size, step, groups):
    random = np.random.default_rng(size)
    x = random.integers(-1, 2, (images, groups * channels, size, size + 1))
    w = random.integers(-1, 2, (groups * out, channels, taps, taps))
    found = []
    for library, dtype in ((genesis, genesis.bfloat16), (torch, torch.float64)):
        given = [library.tensor(each).to(dtype).requires_grad_() for each in (x, w)]
        y = library.nn.functional.conv2d(*given, stride=step, padding=1, groups=groups)
        y.backward(library.ones_like(y))
        found.append([y.detach(), *(each.grad for each in given)])
    for got, wanted in zip(*found, strict=True):
        np.testing.assert_array_equal(got.float().numpy(), wanted.bfloat16().float().numpy())
