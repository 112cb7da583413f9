"""Batches of matrices: in their dtype, by several threads, and BLAS has as many threads afterwards as before."""

import contextlib
import ctypes
from array import array

import numpy as np
import pytest

import genesis
from genesis.codegen.cpu.lapack import kernel, launch
from genesis.codegen.cpu.lapack.routines import ARGUMENTS, blas_threads
from genesis.lower.stages import PARALLEL_COST
from genesis.ops import lapack
from genesis.runtime.kernel_cache import get_or_compile
from genesis.runtime.native import FAULT, Block, NativeLaunch, NativeProgram


def batch(count, size, dtype="float64", seed=0):
    a = np.random.default_rng(seed).standard_normal((count, size, size))
    return (a @ a.swapaxes(1, 2) + np.eye(size)).astype(dtype)


@pytest.fixture
def threaded(monkeypatch):
    """Every batch is worth a second thread."""
    before = genesis.get_num_threads()
    monkeypatch.setattr(launch, "OVERHEAD", PARALLEL_COST)
    genesis.set_num_threads(3)
    yield
    genesis.set_num_threads(before)


@pytest.mark.parametrize("name", ["solve", "inv", "det", "slogdet", "eigh", "svd", "cholesky"])
def test_batches_in_parts_are_numpys(threaded, name):
    a = batch(7, 5)
    arguments = (a, batch(7, 5, seed=1)) if name == "solve" else (a,)
    ours = getattr(genesis.linalg, name)(*[genesis.tensor(x) for x in arguments])
    theirs = getattr(np.linalg, name)(*arguments)
    for one, other in zip(ours if isinstance(theirs, tuple) else [ours], theirs if isinstance(theirs, tuple) else [theirs],
                          strict=True):
        np.testing.assert_allclose(np.abs(one.numpy()), np.abs(other), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("at", [0, 6])
def test_a_matrix_that_fails_in_any_part_is_told(threaded, at):
    a = batch(7, 5)
    a[at] = 0
    with pytest.raises(np.linalg.LinAlgError, match="the input matrix is singular"):
        genesis.linalg.inv(genesis.tensor(a)).numpy()
    with pytest.raises(np.linalg.LinAlgError, match="not positive-definite"):
        genesis.linalg.cholesky(genesis.tensor(-a)).numpy()


@pytest.mark.parametrize("count", [1, 2])
def test_float32_is_computed_in_float32(count):
    a = batch(count, 30, "float32")
    (found,) = lapack.lapack("cholesky_lo", a)
    exact = np.linalg.cholesky(a.astype(np.float64))
    assert found.dtype == np.float32 and 0 < np.abs(found - exact).max() < 1e-4


def openblas():
    """The functions that tell and set how many threads SciPy's BLAS has."""
    limits = blas_threads()
    if not limits.set:
        pytest.skip("SciPy's BLAS is not OpenBLAS")
    return ctypes.CFUNCTYPE(ctypes.c_int)(limits.get), ctypes.CFUNCTYPE(None, ctypes.c_int)(limits.set)


@pytest.mark.parametrize("a", [batch(1, 4)[0], batch(2, 4), 0 * batch(2, 4)])
def test_blas_keeps_its_threads(a):
    get, set_threads = openblas()
    before = get()
    set_threads(2)
    try:
        with contextlib.suppress(np.linalg.LinAlgError):
            genesis.linalg.inv(genesis.tensor(a)).numpy()
        assert get() == 2
    finally:
        set_threads(before)


@pytest.mark.parametrize("chosen", [1, 4])
def test_blas_has_the_threads_that_a_launch_says(chosen):
    """Of steps that ask for their number, before, within and after."""
    get, set_threads = openblas()
    before, seen = get(), []
    state = array("q", [0, 0, 0])
    told = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * ARGUMENTS)(lambda *arguments: seen.append(get()))
    step = (kernel.STEPS.index("call"), ctypes.cast(told, ctypes.c_void_p).value, *[0] * (ARGUMENTS * kernel.POINTER_WORDS))
    limits = blas_threads()
    [code] = get_or_compile([kernel.source("float64")])
    words = ((step,), 1, 3, limits.get, limits.set, state.buffer_info()[0], FAULT, 0)
    set_threads(chosen)
    try:
        NativeProgram([NativeLaunch(code, [Block(words, 2)])]).run()
        assert (seen, get()) == ([1 if chosen == 1 else 3] * 2, chosen)
    finally:
        set_threads(before)


@pytest.mark.parametrize("shape", [(60, 50), (50, 60), (3, 64, 64)])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_large_matrices_have_orthogonal_factors(shape, dtype, mode):
    rng = np.random.default_rng(3)
    a = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape) if dtype == "complex128"
         else rng.standard_normal(shape)).astype(dtype)
    q, r = [f.numpy() for f in genesis.linalg.qr(genesis.tensor(a), mode)]
    assert [q.shape, r.shape] == [f.shape for f in np.linalg.qr(a, mode)]
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(q @ r, a, atol=tolerance)
    products = q.conj().swapaxes(-1, -2) @ q
    np.testing.assert_allclose(products, np.broadcast_to(np.eye(q.shape[-1]), products.shape), atol=tolerance)
    assert (np.tril(r, -1) == 0).all()
