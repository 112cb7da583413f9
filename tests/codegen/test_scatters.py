"""Scatters that fold elements into those that are there: by kernels, with torch's values."""

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.tensor.dispatch import array_of

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("reduce", ["amax", "amin", "prod"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
def test_folds_along_either_axis(reduce, dtype):
    for dim, shape in ((0, (40, 30)), (1, (20, 40))):
        x, y = ((RANDOM.normal(size=size) * 3).astype(dtype) for size in ((20, 30), shape))
        at = RANDOM.integers(0, (20, 30)[dim], shape)
        have = genesis.tensor(x).scatter_reduce(dim, genesis.tensor(at), genesis.tensor(y), reduce)
        want = torch.tensor(x).scatter_reduce(dim, torch.tensor(at), torch.tensor(y), reduce)
        np.testing.assert_array_equal(have.numpy(), want.numpy())


def test_nan_is_the_greatest_and_the_least():
    for reduce in ("amax", "amin"):
        y = genesis.zeros(3).scatter_reduce(0, genesis.tensor([0, 0, 2]), genesis.tensor([float("nan"), 9.0, 4.0]), reduce)
        np.testing.assert_array_equal(y.numpy(), [np.nan, 0, 4.0 if reduce == "amax" else 0])


def test_a_fold_is_a_kernel():
    x, at = genesis.tensor(RANDOM.normal(size=(20, 30)).astype(np.float32)), genesis.tensor(RANDOM.integers(0, 30, (20, 30)))
    y = x.scatter_reduce(1, at, x * 2, "amax")
    calls = [call for stage in plan_for(array_of(y).trace).lowered.schedule.stages for call in stage]
    assert all(isinstance(call, KernelCall) for call in calls) and any("mode=maximum" in call.kernel.text for call in calls)
