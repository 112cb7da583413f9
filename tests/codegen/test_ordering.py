"""Rows in order, by kernels: the places that NumPy's stable sort finds, of every size of element and on all ways."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis
from genesis.execution.plan import plan_for
from genesis.runtime.counters import stats
from genesis.tensor.dispatch import array_of

KINDS = ["float32", "int64", "int8", "float16"]  # elements of 4, 8, 1 and 2 bytes


@pytest.fixture(autouse=True)
def two_threads():
    before = genesis.get_num_threads()
    genesis.set_num_threads(2)
    yield
    genesis.set_num_threads(before)


def elements(shape, dtype, seed=0, spread=40):
    """Elements with many equal ones; of floats some are NaN, infinite or either zero."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=shape) * spread).clip(-127, 127)
    if "float" in dtype and x.size:
        odd = rng.integers(0, 20, shape)
        for n, value in enumerate([np.nan, np.inf, -np.inf, -0.0, 0.0]):
            x[odd == n] = value
    return x.astype(dtype)


def order(x, descending=False):
    """The places of a stable sort, NaN last; descending, first."""
    if not descending:
        return np.argsort(x, -1, kind="stable")
    return x.shape[-1] - 1 - np.flip(np.argsort(np.flip(x, -1), -1, kind="stable"), -1)


@given(st.sampled_from(KINDS), st.integers(0, 3), st.integers(0, 400), st.booleans(), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_places_and_first_places_are_those_of_a_stable_sort(dtype, rows, n, descending, seed):
    x = elements((rows, n), dtype, seed, spread=4 if seed % 2 else 40)
    want = order(x, descending)
    np.testing.assert_array_equal(genesis.argsort(genesis.tensor(x), 1, descending).numpy(), want)
    for k in (1, n // 8, n // 2):
        found = genesis.topk(genesis.tensor(x), min(k, n), 1, descending)
        np.testing.assert_array_equal(found.indices.numpy(), want[:, : min(k, n)])
        np.testing.assert_array_equal(found.values.numpy(), np.take_along_axis(x, want[:, : min(k, n)], 1))


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("n", [16, 17, 100, 4096, 4097])
def test_elements_of_any_bits_have_their_rank(dtype, n):
    rng, size = np.random.default_rng(n), np.dtype(dtype).itemsize
    x = rng.integers(0, 256, (4, n * size), np.uint8).view(dtype).copy()
    least, greatest = (-np.inf, np.nan) if dtype == "float32" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x[0], x[1], x[2, ::2], x[2, 1::2] = greatest, least, greatest, least
    for k in (1, n // 2, n):
        found = genesis.kthvalue(genesis.tensor(x), k).indices.numpy()
        np.testing.assert_array_equal(found, np.argsort(x, 1, kind="stable")[:, k - 1])


@given(st.sampled_from(KINDS), st.integers(1, 3), st.integers(1, 400), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_single_elements_are_those_of_a_stable_sort(dtype, rows, n, seed):
    x = elements((rows, n), dtype, seed, spread=4 if seed % 2 else 40)
    g, want, middle = genesis.tensor(x), order(x), (n - 1) // 2
    for k in (1, n // 3 + 1, n):
        np.testing.assert_array_equal(genesis.kthvalue(g, k).indices.numpy(), want[:, k - 1])
    missing = np.isnan(x).sum(1)
    np.testing.assert_array_equal(
        genesis.median(g, 1).indices.numpy(),
        [row[n - m] if m else row[middle] for row, m in zip(want, missing, strict=True)])
    np.testing.assert_array_equal(
        genesis.nanmedian(g, 1).indices.numpy(),
        [row[max(n - m - 1, 0) // 2] for row, m in zip(want, missing, strict=True)])
    for row, found in zip(x, genesis.mode(g).indices.numpy(), strict=True):
        kinds, counts = np.unique(row, return_counts=True)
        same = np.isnan(row) if np.isnan(kinds[counts.argmax()]) else row == kinds[counts.argmax()]
        assert found == np.flatnonzero(same)[-1]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("ascending", [False, True])
def test_a_long_row_is_everybodys(dtype, ascending):
    x = elements((150_001,), dtype, spread=1000)
    x = np.sort(x) if ascending else x
    for descending in (False, True):
        want = order(x, descending)
        np.testing.assert_array_equal(genesis.argsort(genesis.tensor(x), 0, descending).numpy(), want)
        np.testing.assert_array_equal(genesis.topk(genesis.tensor(x), 70, 0, descending).indices.numpy(), want[:70])


def test_blocks_of_a_row_are_never_shorter_than_what_is_taken_of_each():
    genesis.set_num_threads(130)  # 512 blocks, aligned to 64 elements
    n, k = (512 << 15) + 1, 1000
    last = genesis.arange(n - 65, n)
    x = genesis.zeros(n, dtype=genesis.uint8).index_fill(0, last, 2)
    found = genesis.topk(x, k).indices.numpy()
    np.testing.assert_array_equal(found, [*range(n - 65, n), *range(k - 65)])


def test_ends_of_the_range_are_in_order():
    for dtype in ("int64", "uint64", "uint8", "int32"):
        ends = np.iinfo(dtype)
        x = np.array([ends.max, 1, ends.min, ends.max - 1, 0, ends.min + 1], dtype)
        np.testing.assert_array_equal(genesis.sort(genesis.tensor(x)).values.numpy(), np.sort(x))
    for sign in (1.0, -1.0):
        x = np.nextafter(np.zeros(3), [sign, 2 * sign, 0]) * [1, 7, 0]
        np.testing.assert_array_equal(genesis.sort(genesis.tensor(x)).values.numpy(), np.sort(x))


def test_any_axis_of_any_layout_is_sorted():
    x = elements((5, 6, 7), "float32")
    g = genesis.tensor(x)
    for axis in range(3):
        np.testing.assert_array_equal(g.sort(axis).values.numpy(), np.sort(x, axis))
        np.testing.assert_array_equal(g.mT.flip(0).sort(axis).values.numpy(), np.sort(np.flip(x.swapaxes(1, 2), 0), axis))
        np.testing.assert_array_equal(g[:, 1:].sort(axis).indices.numpy(), np.argsort(x[:, 1:], axis, kind="stable"))


def test_other_sizes_compile_nothing_and_python_is_not_entered():
    genesis.sort(genesis.tensor(elements((3, 10), "float32"))).values.numpy()
    before = stats()["kernels_compiled"], stats()["kernels_loaded"]
    values, _ = genesis.sort(genesis.tensor(elements((2, 300), "float32")))
    segments = plan_for(array_of(values).trace).segments
    assert [segment.host for segment in segments] == [None]
    values.numpy()
    assert (stats()["kernels_compiled"], stats()["kernels_loaded"]) == before
