"""Decompositions and what is made of them, against torch and NumPy; gradients by functions that no choice of signs changes."""

import numpy as np
import pytest
import scipy.linalg
import torch

import genesis
from genesis.autograd import gradcheck, gradgradcheck
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
SQUARE, TALL = RANDOM.normal(size=(2, 3, 3)), RANDOM.normal(size=(4, 3))


def symmetric(a):
    return a @ a.mT + 2 * genesis.eye(a.shape[-1], dtype=a.dtype)


def logarithm(a):
    w, v = genesis.linalg.eigh(a)
    return (v * w.log()[..., None, :]) @ v.mT


def leaf(array):
    return genesis.tensor(array, requires_grad=True)


FUNCTIONS = {
    "cholesky": lambda a: genesis.linalg.cholesky(symmetric(a)),
    "cholesky, upper": lambda a: genesis.linalg.cholesky(symmetric(a), upper=True),
    "eigenvalues": lambda a: genesis.linalg.eigvalsh(symmetric(a)),
    "eigenvectors": lambda a: genesis.linalg.eigh(symmetric(a)).eigenvectors ** 2,
    "logarithm": lambda a: logarithm(symmetric(a)),
}


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_finite_differences(name):
    gradcheck(FUNCTIONS[name], (leaf(SQUARE),))
    gradgradcheck(FUNCTIONS[name], (leaf(SQUARE[0]),))


def test_factors_multiply_to_the_matrix():
    a = genesis.tensor(SQUARE)
    for full in (True, False):
        u, s, vh = genesis.linalg.svd(genesis.tensor(TALL), full_matrices=full)
        assert_close(u[:, :3] * s @ vh, TALL)
        assert u.shape == ((4, 4) if full else (4, 3))
        assert_close(u.mT @ u, np.eye(u.shape[1]))
    u, s, v = genesis.svd(a)
    assert_close(u * s[..., None, :] @ v.mT, SQUARE)
    w, vectors = genesis.linalg.eigh(symmetric(a))
    assert_close(vectors * w[..., None, :] @ vectors.mT, symmetric(a))
    q, r = genesis.linalg.qr(genesis.tensor(TALL), mode="complete")
    assert_close(q @ r, TALL)
    assert q.shape == (4, 4)


@pytest.mark.parametrize("scale", [1e13, 1e-14])
def test_the_gradient_of_a_determinant_beyond_the_dtype_is_the_cofactors(scale):
    a = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(np.float32) * np.float32(scale)
    x = genesis.tensor(a, requires_grad=True)
    genesis.linalg.det(x).sum().backward()
    wide = a.astype(np.float64)
    want = np.linalg.det(wide)[:, None, None] * np.linalg.inv(wide).swapaxes(1, 2)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-5, atol=1e-6 * np.abs(want).max())


def test_cofactors_of_an_infinite_determinant_are_zeros_beside_infinities():
    x = genesis.tensor(np.eye(8) * 1e200, requires_grad=True)
    genesis.linalg.det(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.where(np.eye(8), np.inf, 0))


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    """The cofactors, where the inverse does not exist."""
    gradcheck(genesis.linalg.det, (leaf(np.array([[1.0, 2, 3], [2, 4, 6], [0, 1, 1]])),))


def test_equal_singular_values_have_gradients_of_their_own():
    x, y = leaf(np.eye(3)), torch.eye(3, dtype=torch.float64, requires_grad=True)
    genesis.linalg.svdvals(x).sum().backward()
    torch.linalg.svdvals(y).sum().backward()
    assert_close(x.grad, y.grad)


CALLS = {
    "matrix_rank": [((np.outer([1.0, 2], [3.0, 4]),), {}), ((SQUARE,), {"atol": 0.5}), ((SQUARE,), {"rtol": 0.5})],
    "cond": [((SQUARE,), {}), ((SQUARE, 1), {}), ((SQUARE, -2), {}), ((SQUARE, "fro"), {})],
    "tensorinv": [((SQUARE.reshape(6, 3)[:6].reshape(18)[:16].reshape(2, 2, 4),), {})],
    "tensorsolve": [((RANDOM.normal(size=(2, 3, 6)), RANDOM.normal(size=(2, 3))), {})],
    "vander": [((TALL,), {}), ((TALL,), {"N": 5})],
    "matrix_exp": [((SQUARE,), {})],
    "matrix_power": [((SQUARE, -2), {}), ((SQUARE, 0), {}), ((SQUARE, 3), {})],
    "cross": [((SQUARE, SQUARE[::-1].copy()), {}), ((TALL.T.copy(), TALL.T[::-1].copy()), {"dim": 0})],
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_torchs(name):
    for given, keywords in CALLS[name]:
        ours, theirs = (
            getattr(lib.linalg, name)(*[lib.tensor(a) if isinstance(a, np.ndarray) else a for a in given], **keywords)
            for lib in (genesis, torch)
        )
        assert_close(ours, theirs, name, scale=100)


EXPONENTS = [
    [[1, 1e6], [0, -1]], [[-1e5, 0], [0, 1]], [[1, 1e3], [-1e-3, -2]], [[1, 1e12], [0, -1]], [[0.1, 0.2], [-0.3, 0]],
    [[3, -1], [2, 0.5]], [[-20, 30], [1, -40]],
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_exponentials_of_a_batch_have_scipys_digits_whatever_their_norms(dtype):
    a, allowed = np.array(EXPONENTS, dtype), max(4 * np.finfo(dtype).eps, 2e-14)
    for given, have in [(a, genesis.linalg.matrix_exp(genesis.tensor(a)).numpy()),
                        *[(x[None], genesis.linalg.matrix_exp(genesis.tensor(x)).numpy()[None]) for x in a[::4]]]:
        want = scipy.linalg.expm(given.astype(np.result_type(given, np.float64)))
        assert have.dtype == a.dtype
        assert (np.abs(have - want).max((1, 2)) <= allowed * np.abs(want).max((1, 2))).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_exponentials_have_scipys_digits(dtype):
    a = np.concatenate([RANDOM.normal(size=(6, 2, 2)), EXPONENTS[4:], EXPONENTS[2:3]]).astype(dtype)
    x, g = leaf(a), RANDOM.normal(size=a.shape).astype(dtype)
    (genesis.linalg.matrix_exp(x) * genesis.tensor(g)).sum().backward()
    want = np.array([scipy.linalg.expm_frechet(m.T.astype(float), d.astype(float))[1] for m, d in zip(a, g, strict=True)])
    allowed = max(8 * np.finfo(dtype).eps, 1e-11) * np.abs(want).max((1, 2))
    assert (np.abs(x.grad.numpy() - want).max((1, 2)) <= allowed).all()


def test_exponentials_of_what_is_not_finite_or_overflows_are_nan_alone():
    a = np.array([[[np.inf, 1], [1, 0]], [[0, 0], [0, 0]], [[np.nan, 1], [1, 0]], [[-3e38] * 2] * 2], np.float32)
    have = genesis.linalg.matrix_exp(genesis.tensor(a)).numpy()
    np.testing.assert_array_equal(have[1], np.eye(2))
    assert np.isnan(have[[0, 2, 3]]).all()


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_pseudo_inverses_of_infinities_are_nan_or_an_error(hermitian, dtype):
    a = np.array([[np.inf, 1], [1, 1]], dtype)
    try:
        have = genesis.linalg.pinv(genesis.tensor(a), hermitian=hermitian).numpy()
    except genesis.linalg.LinAlgError:
        return
    assert np.isnan(have).any()


def test_least_squares_are_numpys():
    a, b = TALL, RANDOM.normal(size=(4, 2))
    solution, residuals, rank, sizes = genesis.linalg.lstsq(genesis.tensor(a), genesis.tensor(b), driver="gelsd")
    want = np.linalg.lstsq(a, b)
    assert_close((solution, residuals, sizes), (want[0], want[1], want[3]), scale=10)
    assert rank.item() == want[2]


@pytest.mark.parametrize("driver", [None, "gels", "gelsd"])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_least_squares_of_vectors_are_pytorchs(driver, lead):
    a, b = RANDOM.normal(size=(*lead, 5, 3)), RANDOM.normal(size=(*lead, 5))
    ours, theirs = (lib.linalg.lstsq(lib.tensor(a), lib.tensor(b), driver=driver) for lib in (genesis, torch))
    assert_close(ours, theirs, scale=10)
    assert [tuple(x.shape) for x in ours] == [tuple(x.shape) for x in theirs]


def test_least_squares_of_any_rank_are_the_shortest():
    for m, n, rank in ((6, 4, 2), (4, 6, 3), (6, 6, 6), (70, 60, 40)):
        a, b = RANDOM.normal(size=(2, m, rank)) @ RANDOM.normal(size=(rank, n)), RANDOM.normal(size=(m, 3))
        found = genesis.linalg.lstsq(genesis.tensor(a), genesis.tensor(b)).solution.numpy()
        np.testing.assert_allclose(found, np.linalg.pinv(a, 1e-12) @ b, rtol=1e-8, atol=1e-9)
        told = genesis.linalg.lstsq(genesis.tensor(a), genesis.tensor(np.stack([b, b])), rcond=1e-12).rank
        assert told.tolist() == [rank, rank]
    rough = genesis.linalg.lstsq(genesis.tensor([[1.0, 0], [0, 1e-3]]), genesis.ones(2, 1), rcond=0.1).solution
    np.testing.assert_allclose(rough.numpy(), [[1.0], [0.0]])


def test_gradients_of_least_squares_are_those_of_the_pseudo_inverse():
    for m, n in ((5, 3), (3, 5)):
        arrays, g = (RANDOM.normal(size=(m, n)), RANDOM.normal(size=(m, 2))), RANDOM.normal(size=(n, 2))
        ours, theirs = ([lib.tensor(array, requires_grad=True) for array in arrays] for lib in (genesis, torch))
        genesis.linalg.lstsq(*ours).solution.backward(genesis.tensor(g))
        (torch.linalg.pinv(theirs[0]) @ theirs[1]).backward(torch.tensor(g))
        assert_close([x.grad for x in ours], [x.grad for x in theirs], scale=100)


REFUSED = [
    (lambda x: genesis.linalg.inv(x), ValueError, r"inv: shape \(4, 3\); want \(\.\., n, n\)"),
    (lambda x: genesis.linalg.solve(x.mT @ x, x), ValueError, r"solve: shapes \(3, 3\) and \(4, 3\); want"),
    (lambda x: genesis.det(x.long() @ x.long().T), TypeError, r"det: wants a floating tensor, got int64"),
    (lambda x: genesis.linalg.qr(x, mode="full"), ValueError, r"mode is 'full'; want 'reduced'"),
    (lambda x: genesis.linalg.lstsq(x, x[0]), ValueError, r"lstsq: shapes"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_errors_tell_what_would_be_right(call, error, message):
    with pytest.raises(error, match=message):
        call(genesis.tensor(TALL))


def test_a_singular_matrix_is_told_when_it_is_computed():
    x = genesis.zeros(2, 2)
    y = genesis.linalg.inv(x)
    with pytest.raises(genesis.linalg.LinAlgError, match=r"the input matrix is singular \(at .*test_decompositions.py"):
        y.tolist()
    with pytest.raises(RuntimeError, match="was lost"):
        y.tolist()
    assert (x + 1).tolist() == [[1, 1], [1, 1]]
