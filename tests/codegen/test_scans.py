"""Running sums, taken by a kernel: along each axis one element after the other, the other axes side by side."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.flush import flush
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.ops.registry import PRIMITIVES
from genesis.tensor.dispatch import array_of
from genesis.tracing.state import current_trace
from tests.tolerances import assert_close


@pytest.fixture(autouse=True)
def nothing_is_pending():
    flush(current_trace())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(5,), (1,), (0,), (3, 0), (70_000,), (4, 33, 5), (1000, 130)])
def test_running_sums_are_numpys_along_every_axis(shape, threads):
    genesis.set_num_threads(threads)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for axis in range(x.ndim):
        np.testing.assert_array_equal(genesis.tensor(x).cumsum(axis).numpy(), x.cumsum(axis))
        np.testing.assert_array_equal(genesis.tensor(x).T.cumsum(axis).numpy(), x.T.cumsum(axis))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "int64", "bool"])
def test_running_sums_have_numpys_values_in_every_dtype(dtype):
    x = (np.random.default_rng(0).normal(size=(6, 40)) * 3).astype(dtype)
    wide = x.astype(np.float32) if dtype == "float16" else x
    for axis in (0, 1):
        have = genesis.tensor(x).cumsum(axis).numpy()
        np.testing.assert_array_equal(have, wide.cumsum(axis).astype(have.dtype))


def test_nothing_before_an_infinity_is_touched_by_it():
    x = [1.0, 3.0, float("inf"), 2.0, float("-inf"), 3.0]
    np.testing.assert_array_equal(genesis.tensor(x).cumsum(0).numpy(), [1.0, 4.0, np.inf, np.inf, np.nan, np.nan])


def test_a_running_sum_is_a_kernel_among_others():
    x = genesis.tensor(np.ones((30, 20), np.float32), requires_grad=True)
    loss = (x.exp().cumsum(1) * 2).sum()
    loss.backward()
    calls = [call for stage in plan_for(array_of(loss).trace).lowered.schedule.stages for call in stage]
    assert all(isinstance(call, KernelCall) for call in calls) and sum("scan(" in call.kernel.text for call in calls) == 2
    np.testing.assert_allclose(x.grad.numpy(), np.e * 2 * np.arange(20, 0, -1) * np.ones((30, 1)), rtol=1e-6)


@pytest.mark.parametrize("shape", [(5,), (1,), (0,), (3, 0), (4, 33, 5), (300, 130)])
def test_running_products_are_numpys_and_their_gradients_torchs_along_every_axis(shape):
    x, y = np.random.default_rng(0).normal(size=(2, *shape)).astype(np.float32)
    for axis in range(x.ndim):
        np.testing.assert_array_equal(genesis.tensor(x).cumprod(axis).numpy(), x.cumprod(axis))
        t, other = genesis.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        (t.cumprod(axis) * genesis.tensor(y)).sum().backward()
        (other.cumprod(axis) * torch.tensor(y)).sum().backward()
        assert_close(t.grad, other.grad)


def test_a_product_after_an_infinity_at_the_front_is_infinite():
    x = [float("inf"), 2.0, 0.0, 3.0]
    np.testing.assert_array_equal(genesis.tensor(x).cumprod(0).numpy(), [np.inf, np.inf, np.nan, np.nan])


def test_a_running_product_and_its_gradient_are_scans():
    x = genesis.tensor(np.full((30, 20), 1.25, np.float32), requires_grad=True)
    x.cumprod(0).sum().backward()
    calls = [call for stage in plan_for(array_of(x.grad).trace).lowered.schedule.stages for call in stage]
    assert all(isinstance(call, KernelCall) for call in calls)
    assert sorted(mode for call in calls for mode in ("prod", "recurrence") if f"mode={mode}" in call.kernel.text) == [
        "prod", "recurrence"]


@pytest.mark.parametrize("name", ["cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("shape", [(5,), (1,), (0,), (3, 0), (4, 33, 5), (40, 130)])
def test_running_extremes_and_sums_of_exponentials_and_their_gradients_are_torchs(name, shape):
    x, y = np.random.default_rng(0).normal(size=(2, *shape)).round(1).astype(np.float32)
    for axis in range(x.ndim):
        t, other = genesis.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        have, want = (getattr(z, name)(axis) for z in (t, other))
        if name != "logcumsumexp":
            np.testing.assert_array_equal(have[1].numpy(), want[1].numpy())
            have, want = have[0], want[0]
        assert_close(have, want)
        (have * genesis.tensor(y)).sum().backward()
        (want * torch.tensor(y)).sum().backward()
        assert_close(t.grad, other.grad)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "uint8", "int64", "bool"])
def test_running_extremes_are_torchs_in_every_dtype(dtype):
    x = (np.random.default_rng(0).normal(size=(18, 40)) * 3).round()
    for name, axis in itertools.product(("cummax", "cummin", "cumsum"), (0, 1)):
        have, want = (getattr(library.tensor(x).to(getattr(library, dtype)), name)(axis) for library in (genesis, torch))
        for a, b in zip(have, want, strict=True) if name != "cumsum" else [(have, want)]:
            np.testing.assert_array_equal(a.to(genesis.float64).numpy(), b.to(torch.float64).numpy())


def test_extremes_and_sums_after_infinities_and_nan_are_torchs():
    x = np.array([[-np.inf, -np.inf, 700, 710, -5], [np.inf, 1, np.inf, -np.inf, 2], [1, np.nan, 5, np.nan, 2]], np.float32)
    for name, axis in itertools.product(("cummax", "cummin", "logcumsumexp"), (0, 1)):
        have, want = (getattr(library.tensor(x), name)(axis) for library in (genesis, torch))
        if name != "logcumsumexp":
            np.testing.assert_array_equal(have[1].numpy(), want[1].numpy())
            have, want = have[0], want[0]
        assert_close(have, want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_running_extremes_have_the_signs_of_the_zeros_at_their_indices(dtype):
    for name, axis in itertools.product(("cummax", "cummin"), (0, 1)):
        have, want = (
            getattr(library.tensor([[-0.0, 0.0, -0.0], [0.0, -0.0, 1.0]], dtype=getattr(library, dtype)), name)(axis).values
            for library in (genesis, torch))
        np.testing.assert_array_equal(have.signbit().numpy(), want.signbit().numpy())


def test_the_references_of_running_extremes_have_the_last_zeros_sign():
    node = SimpleNamespace(attrs={"dim": 0})
    for name in ("running_max", "running_min"):
        have = PRIMITIVES[name].reference(node, np.array([-0.0, 0.0, -0.0] * 20))
        np.testing.assert_array_equal(np.signbit(have), [True, False, True] * 20)


@pytest.mark.parametrize("x", [[0, -20, -20], [-20, 0, -30], [-20, -20, 0, 0], [-np.inf, -np.inf, 0, -20], [np.nan, 0, -20]])
def test_sums_of_exponentials_near_0_keep_their_digits(x):
    for dtype in ("float32", "float64"):
        have, want = (library.tensor(x, dtype=getattr(library, dtype)).logcumsumexp(0).numpy() for library in (genesis, torch))
        np.testing.assert_allclose(have, want, rtol=32 * np.finfo(dtype).eps)


def test_rows_that_are_scanned_go_through_tiles():
    y = genesis.tensor(np.ones((20, 30), np.float32)).cumsum(1)
    calls = [call for stage in plan_for(array_of(y).trace).lowered.schedule.stages for call in stage]
    assert [("tiled" in call.kernel.text, "scan(" in call.kernel.text) for call in calls] == [(True, True)]
