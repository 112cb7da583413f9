"""Lane axes: which axis of a kernel its vectors run along, and the blocks of sums that it computes at once."""

import numpy as np
import pytest
import torch

import genesis
from genesis.codegen.cpu.loops import blocks_in_loop
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.lower.stages import Loop, parts
from genesis.nn import functional as F
from genesis.tracing.state import current_trace


def sums_of_products():
    """The calls that sum products, each with the stage's call that it is a part of."""
    stages = plan_for(current_trace()).lowered.schedule.stages
    found = [(call, part) for stage in stages for call in stage for part in parts(call)]
    return [(call, part) for call, part in found if isinstance(part, KernelCall) and part.kernel.factors is not None]


@pytest.mark.parametrize("stride", [1, 2])
def test_windows_of_small_images_run_along_their_rows(stride):
    random = np.random.default_rng(0)
    texts = set()
    for images in (2, 5, 40):
        shapes = (images, 24, 4 * stride, 4 * stride), (24, 1, 3, 3)
        x, w = (random.integers(-3, 4, size=shape).astype(np.float32) for shape in shapes)
        y = F.conv2d(genesis.tensor(x), genesis.tensor(w), padding=1, stride=stride, groups=24)
        [(_, call)] = sums_of_products()
        assert not call.kernel.lane_is_reduced and call.extents[call.kernel.lane] == 4
        texts.add(call.kernel.text)
    assert len(texts) == 1
    wanted = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), padding=1, stride=stride, groups=24)
    np.testing.assert_array_equal(y.numpy(), wanted.numpy())


def test_padded_windows_are_computed_in_blocks_tile_by_tile():
    random = np.random.default_rng(0)
    x, w = (random.integers(-3, 4, size=shape).astype(np.float32) for shape in ((32, 128, 7, 8), (128, 1, 3, 3)))
    y = F.conv2d(genesis.tensor(x), genesis.tensor(w), padding=1, groups=128)
    [(loop, call)] = sums_of_products()
    blocks = blocks_in_loop(loop, call).keys() - {call.kernel.lane}
    assert isinstance(loop, Loop) and [call.extents[axis] for axis in blocks] == [7]
    wanted = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), padding=1, groups=128)
    np.testing.assert_array_equal(y.numpy(), wanted.numpy())


def test_a_depthwise_gradient_by_the_weight_is_one_sum():
    x, w = genesis.ones(8, 6, 4, 4), genesis.ones(6, 1, 3, 3, requires_grad=True)
    F.conv2d(x, w, padding=1, groups=6).sum().backward()
    [(_, call)] = sums_of_products()
    assert sorted(call.extents) == [3, 3, 4, 4, 6, 8]
    assert w.grad[0, 0].tolist() == [[8.0 * n * m for n in (3, 4, 3)] for m in (3, 4, 3)]
