"""Linear algebra of complex matrices: values beside NumPy's, gradients beside differences."""

import numpy as np
import pytest

import genesis
from genesis.autograd import gradcheck, gradgradcheck

rng = np.random.default_rng(0)


def matrix(*shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def definite(a):
    return a @ a.mH + 3 * genesis.eye(a.shape[-1], dtype=a.dtype)


def rebuilt(name, a):
    """A matrix from its factors."""
    linalg = genesis.linalg
    if name == "qr":
        q, r = linalg.qr(a)
        return q @ r
    if name == "svd":
        u, s, vh = linalg.svd(a, full_matrices=False)
        return (u * s.unsqueeze(-2)) @ vh
    if name == "eigh":
        values, vectors = linalg.eigh(a + a.mH)
        return (vectors * values.unsqueeze(-2)) @ vectors.mH - a.mH
    if name == "eig":
        values, vectors = linalg.eig(a)
        return (vectors * values.unsqueeze(-2)) @ linalg.inv(vectors)
    if name == "lu":
        p, lower, upper = linalg.lu(a)
        return p.to(a.dtype) @ lower @ upper
    factor = linalg.cholesky(definite(a))
    return factor @ factor.mH - definite(a) + a


@pytest.mark.parametrize("name", ["qr", "svd", "eigh", "eig", "lu", "cholesky"])
def test_factors_multiply_to_the_matrix(name):
    for dtype, bound in (("complex64", 1e-4), ("complex128", 1e-10)):
        a = matrix(2, 4, 4).astype(dtype)
        found = rebuilt(name, genesis.tensor(a))
        assert found.dtype.name == dtype
        np.testing.assert_allclose(found.numpy(), a, bound, bound)


def test_values_of_real_kinds_are_real():
    a = genesis.tensor(matrix(3, 3))
    for values in (genesis.linalg.svdvals(a), genesis.linalg.eigvalsh(a + a.mH), genesis.linalg.slogdet(a).logabsdet,
                   genesis.linalg.matrix_norm(a, 2), genesis.linalg.vector_norm(a), genesis.linalg.cond(a)):
        assert values.dtype is genesis.float64
    assert genesis.linalg.eigvals(a.real).dtype is genesis.complex128


SOLVED = {
    "solve": lambda a, b: (genesis.linalg.solve(a, b), np.linalg.solve(a.numpy(), b.numpy())),
    "inv": lambda a, b: (genesis.linalg.inv(a), np.linalg.inv(a.numpy())),
    "det": lambda a, b: (genesis.linalg.det(a), np.linalg.det(a.numpy())),
    "logdet": lambda a, b: (genesis.logdet(a).exp(), np.linalg.det(a.numpy())),
    "pinv": lambda a, b: (genesis.linalg.pinv(b), np.linalg.pinv(b.numpy())),
    "eigvals": lambda a, b: (genesis.linalg.eigvals(a), np.linalg.eigvals(a.numpy())),
    "triangular": lambda a, b: (genesis.linalg.solve_triangular(a, b, upper=True),
                                np.linalg.solve(np.triu(a.numpy()), b.numpy())),
    "lu_solve": lambda a, b: (genesis.linalg.lu_solve(*genesis.linalg.lu_factor(a), b, adjoint=True),
                              np.linalg.solve(a.numpy().conj().T, b.numpy())),
    "cholesky_solve": lambda a, b: (genesis.cholesky_solve(b, genesis.linalg.cholesky(definite(a))),
                                    np.linalg.solve(definite(a).numpy(), b.numpy())),
    "lstsq": lambda a, b: (genesis.linalg.lstsq(b, a).solution, np.linalg.lstsq(b.numpy(), a.numpy(), rcond=None)[0]),
}


@pytest.mark.parametrize("name", SOLVED)
def test_equations(name):
    found, wanted = SOLVED[name](genesis.tensor(matrix(4, 4)), genesis.tensor(matrix(4, 2)))
    np.testing.assert_allclose(found.numpy(), wanted, 1e-8, 1e-10)


DERIVED = {
    "solve": lambda a, b: genesis.linalg.solve(a, b), "inv": lambda a, b: genesis.linalg.inv(a),
    "det": lambda a, b: genesis.linalg.det(a), "slogdet": lambda a, b: tuple(genesis.linalg.slogdet(a)),
    "cholesky": lambda a, b: genesis.linalg.cholesky(definite(a)), "qr": lambda a, b: genesis.linalg.qr(b).R,
    "svd": lambda a, b: genesis.linalg.svdvals(b), "eigh": lambda a, b: genesis.linalg.eigvalsh(a + a.mH),
    "vectors": lambda a, b: genesis.linalg.eigh(a + a.mH).eigenvectors.abs(), "pinv": lambda a, b: genesis.linalg.pinv(b),
    "singular vectors": lambda a, b: genesis.linalg.svd(b, full_matrices=False).U.abs(),
    "lu": lambda a, b: genesis.linalg.lu_factor(a).LU, "matrix_exp": lambda a, b: genesis.linalg.matrix_exp(a * 0.1),
    "triangular": lambda a, b: genesis.linalg.solve_triangular(a, b, upper=True),
    "eigvals": lambda a, b: genesis.linalg.eigvals(a),
    "eigenvectors": lambda a, b: genesis.linalg.eig(a).eigenvectors.abs(), "rebuilt": lambda a, b: rebuilt("svd", b),
}


@pytest.mark.parametrize("name", DERIVED)
def test_gradients(name, by_references):
    a, b = (genesis.tensor(matrix(3, n), requires_grad=True) for n in (3, 2))
    assert gradcheck(DERIVED[name], (a, b))
    if name in ("solve", "inv", "det", "cholesky"):
        assert gradgradcheck(DERIVED[name], (a, b))
