"""Matrices that are large enough for panels, strips and tiles, their edges among them, eliminated; against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.linalg

import genesis
from tests.tolerances import assert_close

REALS = ["float32", "float64"]
SIZES = [1, 7, 8, 17, 31, 33, 64, 100, 131, 200, 530]


def matrix(size, dtype, *batch):
    """Rows must be exchanged to eliminate it; its condition is moderate."""
    random = np.random.default_rng(size)
    x = random.normal(size=(*batch, size, size)) / size**0.5 + 2 * np.eye(size)
    return x[..., random.permutation(size), :].astype(dtype)


def normal(shape, dtype):
    return np.random.default_rng(7).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [1, 5, 150])
def test_solutions_are_numpys(size, width, dtype):
    a, b = matrix(size, dtype), normal((size, width), dtype)
    expected = np.linalg.solve(a.astype("float64"), b).astype(dtype)
    assert_close(genesis.linalg.solve(genesis.tensor(a), genesis.tensor(b)), expected, "solve", scale=100)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("size", SIZES)
def test_inverses_and_determinants_are_numpys(size, dtype):
    a = matrix(size, dtype)
    wide, ours = a.astype("float64"), genesis.tensor(a)
    assert_close(genesis.linalg.inv(ours), np.linalg.inv(wide).astype(dtype), "inv", scale=100)
    sign, logarithm = np.linalg.slogdet(wide)
    assert_close(genesis.linalg.slogdet(ours), (sign.astype(dtype), logarithm.astype(dtype)), "slogdet", scale=100)
    if size < 131:
        assert_close(genesis.linalg.det(ours), np.linalg.det(wide).astype(dtype), "det", scale=200)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("shape", [(8, 8), (33, 33), (131, 131), (70, 131), (131, 70), (3, 200), (200, 3), (530, 530)])
def test_factors_and_pivots_are_scipys(shape, dtype):
    a = normal(shape, dtype)
    factors, pivots = genesis.linalg.lu_factor(genesis.tensor(a))
    expected, places = scipy.linalg.lu_factor(a.astype("float64"))
    np.testing.assert_array_equal(pivots.numpy(), places + 1)
    assert_close(factors, expected.astype(dtype), "LU", scale=2000)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangles_are_scipys(size, upper, unit, dtype):
    a, b = normal((size, size), dtype) / size + np.eye(size, dtype=dtype), normal((size, 70), dtype)  # only a half may be read
    found = genesis.linalg.solve_triangular(genesis.tensor(a), genesis.tensor(b), upper=upper, unitriangular=unit)
    expected = scipy.linalg.solve_triangular(a.astype("float64"), b, lower=not upper, unit_diagonal=unit).astype(dtype)
    assert_close(found, expected, "solve_triangular", scale=50)


@pytest.mark.parametrize("dtype", REALS)
def test_the_other_half_of_a_triangle_may_hold_anything(dtype):
    a, b = normal((90, 90), dtype) / 90 + np.eye(90, dtype=dtype), normal((90, 20), dtype)
    for upper, half in ((True, np.triu), (False, np.tril)):
        spoilt = genesis.tensor(np.where(half(np.ones_like(a)) == 1, a, np.nan).astype(dtype))
        found = genesis.linalg.solve_triangular(spoilt, genesis.tensor(b), upper=upper)
        assert_close(found, np.linalg.solve(half(a), b), "solve_triangular", scale=50)


def definite(size, dtype, *batch):
    """Symmetric and positive definite."""
    x = np.random.default_rng(size).normal(size=(*batch, size, size))
    return (x @ x.swapaxes(-1, -2) / size + np.eye(size)).astype(dtype)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("size", [*SIZES, 1030])
def test_symmetric_factors_are_numpys_and_read_only_the_lower_half(size, dtype):
    a = definite(size, dtype)
    half = np.where(np.tri(size, dtype=bool), a, np.nan).astype(dtype)
    expected = np.linalg.cholesky(a.astype("float64")).astype(dtype)
    assert_close(genesis.linalg.cholesky(genesis.tensor(half)), expected, "cholesky", scale=10)
    a = definite(size, dtype, 2, 3)[:, 1:] if size < 131 else definite(size, dtype, 2)[1:]
    expected = np.linalg.cholesky(a.astype("float64")).astype(dtype)
    assert_close(genesis.linalg.cholesky(genesis.tensor(a)), expected, "cholesky", scale=10)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize(("size", "at"), [(5, 0), (5, 4), (70, 31), (70, 32), (600, 555)])
@pytest.mark.parametrize("value", [-1, 0, np.nan])
def test_the_first_pivot_that_is_not_positive_is_told(size, at, value, dtype):
    a = np.eye(size, dtype=dtype)
    a[at, at] = value
    a[-1, -1] = value
    assert genesis.linalg.cholesky_ex(genesis.tensor(a)).info.item() == at + 1
    with pytest.raises(np.linalg.LinAlgError, match="not positive-definite"):
        genesis.linalg.cholesky(genesis.tensor(a)).numpy()


def test_results_do_not_depend_on_the_number_of_threads():
    a, found, before = genesis.tensor(matrix(300, "float32")), [], genesis.get_num_threads()
    try:
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            found.append([genesis.linalg.inv(a).numpy(), genesis.linalg.solve(a, a[:, :150]).numpy(),
                          genesis.linalg.lu_factor(a).LU.numpy(), genesis.linalg.solve_triangular(a, a, upper=True).numpy()])
    finally:
        genesis.set_num_threads(before)
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("size", [5, 40, 200])
def test_singular_matrices_are_told(size, dtype):
    a = matrix(size, dtype)
    a[:, size // 2] = 0
    ours = genesis.tensor(a)
    for function in (genesis.linalg.inv, lambda x: genesis.linalg.solve(x, x)):
        with pytest.raises(np.linalg.LinAlgError, match=r"singular.*test_elimination.py"):
            function(ours).numpy()
    assert genesis.linalg.det(ours).item() == 0
    assert genesis.linalg.lu_factor_ex(ours).info.item() == size // 2 + 1


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("size", [5, 40])
def test_nan_is_an_answer_and_no_error(size, dtype):
    a = matrix(size, dtype)
    a[size // 2, 0] = np.nan
    ours = genesis.tensor(a)
    assert np.isnan(genesis.linalg.det(ours).item())
    assert np.isnan(genesis.linalg.inv(ours).numpy()).any()


@pytest.mark.parametrize("dtype", REALS)
def test_tiny_pivots_are_divided_by(dtype):
    tiny = np.finfo(dtype).smallest_subnormal * 4
    a = np.array([[tiny, 0, 0], [tiny / 2, 1, 0], [0, 0, 1]], dtype)
    factors = genesis.linalg.lu_factor(genesis.tensor(a)).LU.numpy()
    np.testing.assert_array_equal(factors, np.array([[tiny, 0, 0], [0.5, 1, 0], [0, 0, 1]], dtype))


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("size", [6, 32, 50])
def test_batches_are_their_matrices(size, dtype):
    a, b = matrix(size, dtype, 3, 4), normal((3, 4, size, 9), dtype)
    ours = [genesis.tensor(x) for x in (a, b)]
    assert_close(genesis.linalg.solve(*ours), np.linalg.solve(a.astype("float64"), b).astype(dtype), "solve", scale=100)
    assert_close(genesis.linalg.inv(ours[0]), np.linalg.inv(a.astype("float64")).astype(dtype), "inv", scale=100)
    found = genesis.linalg.solve_triangular(*ours, upper=True).numpy()
    for place in np.ndindex(3, 4):
        one = genesis.linalg.solve_triangular(genesis.tensor(a[place]), genesis.tensor(b[place]), upper=True)
        np.testing.assert_array_equal(found[place], one.numpy())
