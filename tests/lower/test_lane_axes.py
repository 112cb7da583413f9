"""Lane axes: which axis of a kernel its vectors run along."""

import numpy as np
import pytest

import genesis
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.nn import functional as F
from genesis.tracing.state import current_trace


def sums_of_products() -> list[KernelCall]:
    calls = [call for stage in plan_for(current_trace()).lowered.schedule.stages for call in stage]
    return [call for call in calls if isinstance(call, KernelCall) and call.kernel.factors is not None]


@pytest.mark.parametrize("stride", [1, 2])
def test_windows_of_small_images_run_along_their_rows(stride):
    random = np.random.default_rng(0)
    shapes = (32, 24, 4 * stride, 4 * stride), (24, 1, 3, 3)
    x, w = (random.integers(-3, 4, size=shape).astype(np.float32) for shape in shapes)
    y = F.conv2d(genesis.tensor(x), genesis.tensor(w), padding=1, stride=stride, groups=24)
    [call] = sums_of_products()
    assert call.kernel.lane is not None and not call.kernel.lane_is_reduced
    assert call.extents[call.kernel.lane] == 4
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    np.testing.assert_array_equal(y.numpy(), np.einsum("nchwij,cij->nchw", windows[:, :, ::stride, ::stride], w[:, 0]))


def test_a_depthwise_gradient_by_the_weight_is_one_sum():
    x, w = genesis.ones(8, 6, 4, 4), genesis.ones(6, 1, 3, 3, requires_grad=True)
    F.conv2d(x, w, padding=1, groups=6).sum().backward()
    [call] = sums_of_products()
    assert sorted(call.extents) == [3, 3, 4, 4, 6, 8]
    assert w.grad[0, 0].tolist() == [[8.0 * n * m for n in (3, 4, 3)] for m in (3, 4, 3)]
