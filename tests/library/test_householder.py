"""QR and eigenvalues of real matrices by the library's own reflections: errors are a few roundings, for numbers of any size."""

import numpy as np
import pytest

import genesis

N = 37
LARGEST = {"float32": 1e37, "float64": 1e300}  # the sum of a column's squares overflows
LEAST = {"float32": 1e-41, "float64": 1e-310}  # denormal


def _graded(a):
    return a * 2.0 ** -np.arange(a.shape[-1])


KINDS = {
    "normal": lambda a, dtype: a,
    "graded columns": lambda a, dtype: _graded(a),
    "graded rows": lambda a, dtype: _graded(a.swapaxes(-1, -2)).swapaxes(-1, -2),
    "equal columns": lambda a, dtype: a[..., [0] * a.shape[-1]],
    "columns of 0": lambda a, dtype: a * (np.arange(a.shape[-1]) % 3 > 0),
    "nothing": lambda a, dtype: a * 0,
    "a triangle": lambda a, dtype: np.triu(a),
    "huge": lambda a, dtype: a / 4 * LARGEST[dtype],
    "denormal": lambda a, dtype: a * LEAST[dtype],
    "one huge row": lambda a, dtype: np.concatenate([a[..., :1, :] / 4 * LARGEST[dtype], a[..., 1:, :]], -2),
}


def _normal(shape):
    """The same numbers in every order of tests."""
    return np.random.default_rng(0).normal(size=shape)


def _scaled(*arrays):
    """In float64, divided by the largest number of the first."""
    largest = np.abs(arrays[0].astype("float64")).max() or 1.0
    return [a.astype("float64") / largest for a in arrays]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_factors_are_exact_to_a_few_roundings(kind, dtype):
    eps, denormal = np.finfo(dtype).eps, np.finfo(dtype).smallest_subnormal
    for shape, mode in (((N, N), "reduced"), ((3, 5, 2), "reduced"), ((70, 19), "complete"), ((2, 19, 70), "reduced")):
        a = KINDS[kind](_normal(shape), dtype).astype(dtype)
        q, r = (x.numpy() for x in genesis.linalg.qr(genesis.tensor(a), mode=mode))
        least = 4 * denormal / (np.abs(a.astype("float64")).max() or 1)
        a, r = _scaled(a, r)
        q = q.astype("float64")
        columns = np.linalg.norm(a, axis=-2)
        assert (np.linalg.norm(q @ r - a, axis=-2) <= 20 * eps * columns + N * least).all()
        assert np.abs(q.swapaxes(-1, -2) @ q - np.eye(q.shape[-1])).max() < 20 * eps
        assert not np.tril(r, -1).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_eigenvalues_are_numpys(kind, dtype):
    for shape, triangle in (((N, N), "L"), ((3, 18, 18), "U"), ((2, 2), "L"), ((1, 1), "U")):
        a = KINDS[kind](_normal(shape), dtype).astype(dtype)
        whole = np.tril(a) if triangle == "L" else np.triu(a)
        other = np.swapaxes(whole, -1, -2) * (1 - np.eye(shape[-1], dtype=dtype))
        given = np.where(whole == 0, np.nan, whole) if kind == "normal" else a
        values = genesis.linalg.eigvalsh(genesis.tensor(given), triangle).numpy()
        scaled, found = _scaled(whole + other, values)
        expected = np.linalg.eigvalsh(scaled)
        denormal = np.finfo(dtype).smallest_subnormal / (np.abs(whole.astype("float64")).max() or 1)
        bound = 20 * np.finfo(dtype).eps + denormal
        np.testing.assert_allclose(found, expected, atol=bound * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_are_none(dtype):
    a = _normal((9, 9)).astype(dtype)
    a[4, 3] = np.inf
    assert np.isnan(genesis.linalg.eigvalsh(genesis.tensor(a)).numpy()).all()
    a[4, 3] = np.nan
    assert np.isnan(genesis.linalg.qr(genesis.tensor(a)).R.numpy()[:, 3:]).any()


@pytest.mark.parametrize("n", [2, 3, 8, 40])
def test_no_eigenvalue_of_a_matrix_with_nan_is_a_number(n):
    for position in ((0, 0), (n - 1, 0), (n - 1, n - 1), (1, 0)):
        a = np.eye(n) + 0.1
        a[position] = np.nan
        try:
            values = genesis.linalg.eigvalsh(genesis.tensor(a)).numpy()
        except np.linalg.LinAlgError:  # as PyTorch's
            continue
        assert np.isnan(values).all()


@pytest.mark.parametrize("shape", [(70_000, 1), (2, 40_000, 2), (3, 90_000)])
def test_thin_matrices_larger_than_the_cache(shape):
    a = _normal(shape)
    q, r = (x.numpy() for x in genesis.linalg.qr(genesis.tensor(a)))
    np.testing.assert_allclose(q @ r, a, atol=1e-12)
    assert np.abs(q.swapaxes(-1, -2) @ q - np.eye(q.shape[-1])).max() < 1e-12
