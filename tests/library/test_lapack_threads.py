"""Loops over matrices: in the matrices' dtype, in several threads, and BLAS has as many threads afterwards as before."""

import numpy as np
import pytest

import genesis
from genesis.ops import lapack


def batch(count, size, dtype="float64", seed=0):
    a = np.random.default_rng(seed).standard_normal((count, size, size))
    return (a @ a.swapaxes(1, 2) + np.eye(size)).astype(dtype)


@pytest.fixture
def threaded(monkeypatch):
    """Every batch is worth a second thread."""
    before = genesis.get_num_threads()
    monkeypatch.setattr(lapack, "_THREADED", 0)
    monkeypatch.setattr(lapack, "_ALONE", 0)
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
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        genesis.linalg.inv(genesis.tensor(a)).numpy()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        genesis.linalg.cholesky(genesis.tensor(-a)).numpy()


def test_where_no_thread_starts_one_computes_all(threaded, monkeypatch):
    def refuse(run, arguments):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(lapack._thread, "start_new_thread", refuse)
    a = batch(7, 5)
    np.testing.assert_allclose(genesis.linalg.inv(genesis.tensor(a)).numpy(), np.linalg.inv(a), rtol=1e-10)


@pytest.mark.parametrize("count", [1, 2])
def test_float32_is_computed_in_float32(count):
    a = batch(count, 30, "float32")
    (found,) = lapack.lapack("cholesky_lo", a)
    exact = np.linalg.cholesky(a.astype(np.float64))
    assert found.dtype == np.float32 and 0 < np.abs(found - exact).max() < 1e-4


def test_blas_keeps_its_threads():
    genesis.linalg.inv(genesis.tensor(batch(1, 4)[0])).numpy()  # SciPy's is loaded
    libraries = lapack._openblas()
    if not libraries:
        pytest.skip("neither NumPy's nor SciPy's BLAS is OpenBLAS")
    before = [library.get() for library in libraries]
    with lapack._BlasThreads(1), lapack._BlasThreads(1):
        assert {library.get() for library in libraries} == {1}
    genesis.linalg.inv(genesis.tensor(batch(2, 4))).numpy()
    assert [library.get() for library in libraries] == before


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
