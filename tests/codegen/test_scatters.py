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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("reduce", "fold"), [("amax", np.maximum), ("amin", np.minimum)])
def test_extremes_of_single_numbers_order_zeros_and_keep_nans(reduce, fold, dtype):
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(*[[0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]] * 2))
    at = genesis.zeros(len(x), 1, dtype=genesis.int64)
    found = genesis.tensor(x[:, None]).scatter_reduce(1, at, genesis.tensor(y[:, None]), reduce).numpy()[:, 0]
    np.testing.assert_array_equal(found, fold(x, y))
    zeros = (x == 0) & (y == 0)
    signs = np.signbit(x) & np.signbit(y) if reduce == "amax" else np.signbit(x) | np.signbit(y)
    np.testing.assert_array_equal(np.signbit(found[zeros]), signs[zeros])


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_reduce"])
def test_an_empty_index_of_any_rank_writes_nothing(name):
    for shape in ((2, 3), ()):
        y, nothing = genesis.ones(shape), genesis.empty(0, dtype=genesis.int64)
        for source in (genesis.zeros(shape), genesis.zeros(3)):
            y = getattr(y, f"{name}_")(0, nothing, source, *["amin"] * (name == "scatter_reduce"))
            assert y.shape == shape and (y == 1).all()


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_complex_numbers_are_summed_and_averaged(reduce, include_self):
    x, y = (RANDOM.normal(size=(n, 2)).astype(np.float32).view(np.complex64)[:, 0] for n in (20, 30))
    at = RANDOM.integers(0, 20, 30)
    have, want = (lib.as_tensor(x).scatter_reduce(0, lib.as_tensor(at), lib.as_tensor(y), reduce, include_self=include_self)
                  for lib in (genesis, torch))
    np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-6, atol=1e-6)
    with pytest.raises(TypeError, match="amax takes real numbers"):
        genesis.tensor(x).scatter_reduce(0, genesis.tensor(at), genesis.tensor(y), "amax")


def test_a_fold_is_a_kernel():
    x, at = genesis.tensor(RANDOM.normal(size=(20, 30)).astype(np.float32)), genesis.tensor(RANDOM.integers(0, 30, (20, 30)))
    y = x.scatter_reduce(1, at, x * 2, "amax")
    calls = [call for stage in plan_for(array_of(y).trace).lowered.schedule.stages for call in stage]
    assert all(isinstance(call, KernelCall) for call in calls) and any("mode=maximum" in call.kernel.text for call in calls)


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
@pytest.mark.parametrize(("rows", "width", "terms"), [(700, 800, 300), (22000, 24, 4000)], ids=["wide", "narrow"])
def test_rows_of_a_large_result_are_each_one_items(dtype, rows, width, terms):
    places = np.concatenate([RANDOM.integers(0, rows, terms), [5, 5, rows - 1, 0]])
    x, y = (RANDOM.integers(-9, 9, (n, width)).astype(dtype) for n in (rows, len(places)))
    found = []
    for lib in (genesis, torch):
        at = lib.tensor(places)
        wide = at.reshape(-1, 1).expand(-1, width)
        given, terms = lib.tensor(x), lib.tensor(y)
        found.append((given.index_add(0, at, terms), given.scatter_reduce(0, wide, terms, "amax")))
    for have, want in zip(*found, strict=True):
        np.testing.assert_array_equal(have.numpy(), want.numpy())
