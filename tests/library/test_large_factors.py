"""Orthogonal factors of matrices that are large enough to be done in panels, and least squares by them, against NumPy."""

import numpy as np
import pytest

import genesis
from genesis.codegen.cpu.lapack import blocked
from tests.tolerances import assert_close

DTYPES = ["float32", "float64", "complex64", "complex128"]


def normal(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=shape)
    return (x + 1j * random.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(131, 131), (300, 90), (130, 200)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_factors_are_numpys(shape, dtype, mode):
    x = normal(shape, dtype)
    q, r = genesis.linalg.qr(genesis.tensor(x), mode=mode)
    assert_close((q, r), tuple(np.linalg.qr(x, mode=mode)), "Q and R", scale=50)


def test_factors_of_a_batch_are_numpys(monkeypatch):
    monkeypatch.setattr(blocked, "second_cache_bytes", lambda: 0)
    x = normal((3, 140, 91), "float64")
    assert_close(tuple(genesis.linalg.qr(genesis.tensor(x))), tuple(np.linalg.qr(x)), "Q and R", scale=50)


def test_factors_do_not_depend_on_the_number_of_threads():
    x, found, before = genesis.tensor(normal((300, 300), "float32")), [], genesis.get_num_threads()
    try:
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            found.append(genesis.linalg.qr(x).Q.numpy())
    finally:
        genesis.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", ["full", "less"])
@pytest.mark.parametrize(("shape", "size"), [((131, 131), 1e-25), ((300, 90), 1.0), ((200, 140), 1e25)])
def test_solutions_are_the_shortest(shape, size, dtype, rank):
    a, b = normal(shape, dtype) + 20 * np.eye(*shape, dtype=dtype), normal((shape[0], 5), dtype, 1)
    if rank == "less":
        a[:, 7] = a[:, 3] + a[:, 11]
    a = (a * size).astype(dtype)
    found = genesis.linalg.lstsq(genesis.tensor(a), genesis.tensor(b))
    assert found.rank.item() == shape[1] - (rank == "less")
    wide = "complex128" if dtype.startswith("complex") else "float64"
    expected, *_ = np.linalg.lstsq(a.astype(wide), b, rcond=1e-4)
    assert_close(found.solution * size, (expected * size).astype(dtype), "lstsq", scale=200)


def test_rcond_counts_in_matrices_of_full_rank():
    a, b = np.eye(200), normal((200, 2), "float64")
    a[0, 0] = 1e-3
    for rcond, rank in ((1e-5, 200), (1e-2, 199)):
        found = genesis.linalg.lstsq(genesis.tensor(a), genesis.tensor(b), rcond=rcond)
        assert found.rank.item() == rank
        np.testing.assert_allclose(found.solution.numpy(), np.linalg.lstsq(a, b, rcond=rcond)[0], atol=1e-12)


def test_numbers_that_are_none_end():
    a = normal((150, 150), "float64")
    a[3, 4] = np.nan
    assert np.isnan(genesis.linalg.qr(genesis.tensor(a)).R.numpy()).any()
