"""What cuBLAS is asked to compute, by a BLAS in NumPy that takes such calls on the host's memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis
from genesis.codegen.cuda.product import CALLS, Matrices, gemms_of
from genesis.runtime.cuda.cublas import WORKSPACE, cublas_handle, gemm_call

KINDS = {0: np.float32, 1: np.float64, 2: np.float16}
FLOAT32, TF32 = 68, 77


class Blas:
    """cublasGemmStridedBatchedEx by its documentation: matrices are stored by columns."""

    def __init__(self):
        self.compute_types = []

    def gemm_strided_batched_ex_64(
        self, handle, transa, transb, m, n, k, alpha, a, a_type, lda, a_step, b, b_type, ldb, b_step, beta,
        c, c_type, ldc, c_step, batch, compute_type, algorithm,
    ):
        assert lda >= (k if transa else m) and ldb >= (n if transb else k) and ldc >= m and min(m, n, k, batch) > 0
        self.compute_types.append(compute_type)
        one, zero = (at(x, (1,), (1,), np.float64 if compute_type == 70 else np.float32) for x in (alpha, beta))
        for z in range(batch):
            x = at(a, (m, k), (lda, 1) if transa else (1, lda), KINDS[a_type], z * a_step)
            y = at(b, (k, n), (ldb, 1) if transb else (1, ldb), KINDS[b_type], z * b_step)
            into = at(c, (m, n), (1, ldc), KINDS[c_type], z * c_step)
            wide = x.astype(into.dtype) @ y.astype(into.dtype)
            into[:] = one * wide + (zero * into if zero else 0)


def at(address, shape, strides, dtype, offset=0):
    """An array of the host's memory, strides and offset in elements."""
    size = np.dtype(dtype).itemsize
    interface = {"data": (address + offset * size, False), "shape": shape, "typestr": np.dtype(dtype).str, "version": 3,
                 "strides": tuple(s * size for s in strides)}
    return np.asarray(type("Memory", (), {"__array_interface__": interface})())


def matrices_of_arrays(a, b, c):
    strides = [[s // x.itemsize for s in x.strides] for x in (a, b, c)]
    (m, k), n = a.shape[-2:], b.shape[-1]
    batch = tuple(zip(c.shape[:-2], *(s[:-2] for s in strides), strict=True))
    (ar, ac), (br, bc), (cr, _) = (s[-2:] for s in strides)
    return Matrices(batch, ((m, ar),), ((k, ac),), ((k, br),), ((n, bc),), cr)


def operand(random, shape, turned, dtype, rows_apart):
    """An array of which each matrix lies by rows or by columns, with gaps between these."""
    *batch, rows, columns = shape
    stored = (*batch, columns, rows + rows_apart) if turned else (*batch, rows, columns + rows_apart)
    x = random.normal(size=stored).astype(dtype)
    return x.swapaxes(-1, -2)[..., :rows, :] if turned else x[..., :columns]


@settings(max_examples=200)
@given(
    st.tuples(*[st.integers(1, 6)] * 3), st.lists(st.integers(1, 3), max_size=2), st.booleans(), st.booleans(),
    st.integers(0, 2), st.sampled_from(["float32", "float64", "float16"]), st.booleans(),
)
def test_calls_compute_the_product(extents, batch, a_turned, b_turned, apart, dtype, shared):
    (m, n, k), random = extents, np.random.default_rng(0)
    a = operand(random, (*batch, m, k), a_turned, dtype, apart)
    b = operand(random, (*([1] * len(batch) if shared else batch), k, n), b_turned, dtype, 0)
    b = np.broadcast_to(b, (*batch, k, n))
    c = np.full((*batch, m, n), np.nan, dtype)
    gemms = gemms_of(matrices_of_arrays(a, b, c), dtype)
    assert gemms
    for gemm in gemms:
        gemm_call(0, gemm, a.ctypes.data, b.ctypes.data, c.ctypes.data, Blas())()
    np.testing.assert_allclose(c, np.matmul(a, b), 2e-2 if dtype == "float16" else 1e-5, 1e-2 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize(("dtype", "stored"), [("float32", "float32"), ("float64", "float64"), ("float16", "float32")])
def test_calls_add_to_sums_that_may_be_wider(dtype, stored):
    random = np.random.default_rng(0)
    a, b = (random.normal(size=size).astype(dtype) for size in ((3, 2, 4), (3, 4, 5)))
    c = np.full((3, 2, 5), np.nan, stored)
    for adds in (False, True):
        for gemm in gemms_of(matrices_of_arrays(a, b, c), dtype, stored, adds):
            gemm_call(0, gemm, a.ctypes.data, b.ctypes.data, c.ctypes.data, Blas())()
    np.testing.assert_allclose(c, 2 * np.matmul(a.astype(stored), b.astype(stored)), 1e-5, 1e-5)


@pytest.mark.parametrize("matrices", [
    Matrices((), ((4, 6),), ((3, 2),), ((3, 5),), ((5, 1),), 5),  # every other element
    Matrices((), ((4, 1),), ((3, 1),), ((3, 5),), ((5, 1),), 5),  # windows that lie over each other
    Matrices((), ((4, 6),), ((2, 9), (3, 1)), ((2, 15), (3, 5)), ((5, 1),), 5),  # two stretches of terms
    Matrices((), ((4, 0),), ((3, 1),), ((3, 5),), ((5, 1),), 5),  # one row for all
    Matrices(((CALLS + 1, 40, 40, 40), (CALLS + 1, 900, 900, 900)), ((4, 3),), ((3, 1),), ((3, 5),), ((5, 1),), 5),
    Matrices((), ((4, 3),), ((0, 1),), ((0, 5),), ((5, 1),), 5),  # no terms
], ids=["gaps", "windows", "stretches", "broadcast", "batches", "empty"])
def test_what_a_library_does_not_take_is_left_to_the_kernel(matrices):
    assert gemms_of(matrices, "float32") == []


def test_integers_are_not_the_librarys():
    assert gemms_of(Matrices((), ((4, 3),), ((3, 1),), ((3, 5),), ((5, 1),), 5), "int64") == []


def test_float32_is_rounded_to_tf32_only_if_that_is_allowed():
    a, b, c = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32), np.zeros((2, 4), np.float32)
    (gemm,) = gemms_of(matrices_of_arrays(a, b, c), "float32")
    blas, settings_ = Blas(), genesis.backends.cuda.matmul
    try:
        for allowed in (False, True):
            settings_.allow_tf32 = allowed
            gemm_call(0, gemm, a.ctypes.data, b.ctypes.data, c.ctypes.data, blas)()
    finally:
        settings_.allow_tf32 = False
    assert blas.compute_types == [FLOAT32, TF32]


@pytest.mark.parametrize("workspace", [4096, 0])
def test_a_handle_has_its_workspace_after_its_stream_and_sums_in_float32(workspace):
    class Library:
        def __getattr__(self, name):
            return lambda *arguments: asked.append((name, *arguments)) or 7

    asked = []
    assert cublas_handle(5, workspace, Library()) == 7
    given = [("set_workspace", 7, workspace, WORKSPACE)] if workspace else []
    assert asked == [("create",), ("set_stream", 7, 5), *given, ("set_math_mode", 7, 16)]


def test_the_precision_of_products_by_its_name():
    try:
        for precision in ("high", "medium", "highest"):
            genesis.set_float32_matmul_precision(precision)
            assert genesis.backends.cuda.matmul.allow_tf32 == (precision != "highest")
            assert genesis.get_float32_matmul_precision() == ("highest" if precision == "highest" else "high")
    finally:
        genesis.backends.cuda.matmul.allow_tf32 = False
    with pytest.raises(ValueError, match="wants \"highest\", \"high\" or \"medium\", got 'low'"):
        genesis.set_float32_matmul_precision("low")


def test_the_setting_is_true_or_false():
    with pytest.raises(TypeError, match="allow_tf32: wants True or False, got int 1"):
        genesis.backends.cuda.matmul.allow_tf32 = 1
    with pytest.raises(AttributeError):
        genesis.backends.cuda.matmul.alow_tf32 = True
