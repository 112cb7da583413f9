"""Matrix products on panels, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from genesis.runtime.gemm import gemm_block, gemm_kernel
from genesis.runtime.native import Launch, Program, Slot

from .kernels import kernel

TOLERANCE = {"float32": 1e-5, "float64": 1e-13}


def multiply(a: np.ndarray, b: np.ndarray, c: np.ndarray, workers: int = 2, **options) -> None:
    """c = a @ b + beta * c by the kernel; a and b are 2-d, or 4-d with two batch axes, and may be transposed views."""

    def stored(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
        transposed = matrix.strides[-1] != matrix.itemsize
        return (matrix.swapaxes(-1, -2) if transposed else matrix), transposed

    (a_stored, transpose_a), (b_stored, transpose_b) = stored(a), stored(b)
    block = gemm_block(
        str(c.dtype),
        (c.shape[-2], c.shape[-1], a.shape[-1]),
        *(Slot(0), a_stored.strides[-2] // a.itemsize),
        *(Slot(1), b_stored.strides[-2] // b.itemsize),
        *(Slot(2), c.strides[-2] // c.itemsize),
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        batch=c.shape[:2] if c.ndim == 4 else (1, 1),
        a_strides=a.strides[:2] if a.ndim == 4 else (0, 0),
        b_strides=b.strides[:2] if b.ndim == 4 else (0, 0),
        c_strides=c.strides[:2] if c.ndim == 4 else (0, 0),
        **options,
    )
    program = Program([Launch(gemm_kernel(str(c.dtype)), [block], workers)], "QQQ")
    assert program.run((a_stored.ctypes.data, b_stored.ctypes.data, c.ctypes.data)) is None


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), [*itertools.product([False, True], repeat=2)])
@pytest.mark.parametrize("split_columns", [False, True])
def test_products_of_every_layout_cut_into_panels(random, dtype, transpose_a, transpose_b, split_columns):
    a = random.standard_normal((5, 13) if transpose_a else (13, 5)).astype(dtype)
    b = random.standard_normal((9, 5) if transpose_b else (5, 9)).astype(dtype)
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    for panels in (1, 2, 3, 7, 20):
        c = np.full((13, 9), np.nan, dtype)
        multiply(a, b, c, panels=panels, split_columns=split_columns)
        np.testing.assert_allclose(c, a @ b, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_batches_repeat_operands_and_skip_padding(random, workers):
    a = random.standard_normal((2, 1, 6, 4)).repeat(3, axis=1)
    b = np.broadcast_to(random.standard_normal((3, 4, 8))[..., :5], (2, 3, 4, 5))
    c = random.standard_normal((2, 3, 6, 7))
    before = c.copy()
    multiply(a, b, c[..., :5], workers, panels=2, beta=-0.5)
    np.testing.assert_allclose(c[..., :5], a @ b - 0.5 * before[..., :5], rtol=1e-13, atol=1e-13)
    assert np.array_equal(c[..., 5:], before[..., 5:])


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_epilogue_sees_each_row_of_the_batch_once(random, workers):
    a, b = random.standard_normal((2, 3, 11, 4)), random.standard_normal((2, 3, 4, 5))
    c = np.empty((2, 3, 11, 5))
    multiply(a, b, c, workers, panels=4, epilogue=kernel("square_rows"), epilogue_words=(Slot(2), 5))
    np.testing.assert_allclose(c, (a @ b) ** 2, rtol=1e-12, atol=1e-12)


def test_the_epilogue_of_column_panels_counts_columns(random):
    a, b = random.standard_normal((1, 2, 3, 4)), random.standard_normal((1, 2, 4, 10))
    c, seen = np.empty((1, 2, 3, 10)), np.zeros(20, np.int64)
    multiply(a, b, c, panels=3, split_columns=True, epilogue=kernel("increment"), epilogue_words=(seen.ctypes.data, 1))
    assert seen.tolist() == [1] * 20


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 2), (3, 0, 2), (3, 4, 0), (1, 1, 1)])
def test_degenerate_extents(m, n, k):
    a, b, c = np.ones((m, max(k, 1)))[:, :k], np.ones((max(k, 1), max(n, 1)))[:k, :n], np.full((m, max(n, 1)), np.nan)
    multiply(a, b, c[:, :n], panels=2)
    assert (c[:, :n] == k).all()


def test_nan_and_infinity_pass_through():
    a, b, c = np.array([[1.0, np.nan], [np.inf, 1.0]]), np.array([[1.0], [0.0]]), np.empty((2, 1))
    multiply(a, b, c)
    np.testing.assert_array_equal(c, [[np.nan], [np.inf]])


def test_a_large_product_on_many_panels_agrees(random):
    a, b = random.standard_normal((300, 200)).astype("f"), random.standard_normal((200, 150)).astype("f")
    c = np.empty((300, 150), "f")
    multiply(a, b, c, workers=3, panels=5)
    np.testing.assert_allclose(c, a.astype("d") @ b, rtol=1e-4, atol=1e-4)
