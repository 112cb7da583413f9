"""What is put together of parts is not filled first, a small graph in and out; transposed convolutions are PyTorch's."""

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.plan import plan_for
from genesis.lower.drop_bases import drop_bases
from genesis.lower.stages import Loop
from genesis.tensor.dispatch import array_of
from tests.lower.text import cases, parsed, shown

CASES = cases("""
# parts that are all of a value are written alone
%0 = input() : float32[2, 2]
%1 = input() : float32[2, 1]
%2 = constant(value=0) : float32[]
%3 = expand(%2, shape=(2, 3), strides=(0, 0), offset=0) : float32[2, 3]
%4 = put(%3, %0, shape=(2, 2), strides=(3, 2), offset=0) : float32[2, 3]
%5 = put(%4, %1, shape=(2, 1), strides=(3, 2), offset=1) : float32[2, 3]
return %5
becomes
%0 = input() : float32[2, 2]
%1 = input() : float32[2, 1]
%2 = constant(value=0) : float32[]
%3 = expand(%2, shape=(2, 3), strides=(0, 0), offset=0) : float32[2, 3]
%4 = put(%3, %0, shape=(2, 2), strides=(3, 2), offset=0, rest='unread') : float32[2, 3]
%5 = put(%4, %1, shape=(2, 1), strides=(3, 2), offset=1, rest='unread') : float32[2, 3]
return %5

# of others the rest is filled
%0 = input() : float32[2, 2]
%1 = input() : float32[1, 1]
%2 = constant(value=0) : float32[]
%3 = expand(%2, shape=(2, 3), strides=(0, 0), offset=0) : float32[2, 3]
%4 = put(%3, %0, shape=(2, 2), strides=(3, 2), offset=0) : float32[2, 3]
%5 = put(%4, %1, shape=(1, 1), strides=(3, 2), offset=1) : float32[2, 3]
return %5

# as where parts lie over each other
%0 = input() : float32[2, 2]
%1 = constant(value=0) : float32[]
%2 = expand(%1, shape=(2, 4), strides=(0, 0), offset=0) : float32[2, 4]
%3 = put(%2, %0, shape=(2, 2), strides=(4, 1), offset=0) : float32[2, 4]
%4 = put(%3, %0, shape=(2, 2), strides=(4, 1), offset=1) : float32[2, 4]
return %4

# and where the value is read before it is whole
%0 = input() : float32[2, 2]
%1 = input() : float32[2, 1]
%2 = constant(value=0) : float32[]
%3 = expand(%2, shape=(2, 3), strides=(0, 0), offset=0) : float32[2, 3]
%4 = put(%3, %0, shape=(2, 2), strides=(3, 2), offset=0) : float32[2, 3]
%5 = put(%4, %1, shape=(2, 1), strides=(3, 2), offset=1) : float32[2, 3]
return %5, %4
""")


@pytest.mark.parametrize("claim", CASES)
def test_case(claim):
    before, after = CASES[claim]
    assert shown(drop_bases(parsed(before))) == after


def signal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


SETTINGS = [
    {"stride": 2, "padding": 1}, {"stride": 2, "padding": 1, "output_padding": 1}, {"stride": 3}, {"stride": 4},
    {"stride": (2, 1), "padding": (0, 1)}, {"stride": 2, "padding": 2, "groups": 2},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_transposed_convolutions_and_their_gradients_are_torchs(settings):
    arrays = signal(2, 4, 9, 8), signal(4, 6 // settings.get("groups", 1), 3, 3)
    found = []
    for library in (genesis, torch):
        x, w = (library.tensor(array, requires_grad=True) for array in arrays)
        y = library.nn.functional.conv_transpose2d(x, w, **settings)
        (y * y).sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy(), w.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_parts_of_a_large_value_are_written_in_one_loop(threads):
    x, w = signal(3, 16, 24, 24), signal(16, 48, 3, 3)
    before = genesis.get_num_threads()
    genesis.set_num_threads(threads)
    try:
        y = genesis.nn.functional.conv_transpose2d(*map(genesis.tensor, (x, w)), stride=2, padding=1)
        *_, last = [call for stage in plan_for(array_of(y).trace).lowered.schedule.stages for call in stage]
        (value,) = last.calls[-1].writes
        assert isinstance(last, Loop) and sum(value in call.writes for call in last.calls) == 4  # no zeros
        want = torch.nn.functional.conv_transpose2d(*map(torch.tensor, (x, w)), stride=2, padding=1)
        np.testing.assert_allclose(y.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
    finally:
        genesis.set_num_threads(before)
