"""Functions of matrices that programs call LAPACK for, one by one and in batches, against torch."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

CALLS = {
    "cholesky": lambda m, a, b: m.linalg.cholesky(a),
    "the upper factor": lambda m, a, b: m.linalg.cholesky(a, upper=True),
    "inverse": lambda m, a, b: m.linalg.inv(a),
    "equations": lambda m, a, b: m.linalg.solve(a, b),
    "determinant": lambda m, a, b: m.linalg.det(a + b @ b.mH),
    "its logarithm": lambda m, a, b: m.linalg.slogdet(m.cat((a[..., 1:, :], -a[..., :1, :]), -2)),
    "that of a singular matrix": lambda m, a, b: m.linalg.slogdet(a * 0),
    "eigenvectors": lambda m, a, b: [v * w[..., None, :] @ v.mH for w, v in [m.linalg.eigh(a)]],
    "singular vectors": lambda m, a, b: [m.linalg.svd(b, full_matrices=False).S, *[
        u[..., : s.shape[-1]] * s[..., None, :] @ v[..., : s.shape[-1], :] for u, s, v in [m.linalg.svd(b)]]],
    "wide factors": lambda m, a, b: [x @ y for x, y in [m.linalg.qr(b.mT)]],
    "rows exchanged": lambda m, a, b: list(m.linalg.lu(m.cat((a[..., 1:, :], a[..., :1, :]), -2))),
    "reflections": lambda m, a, b: list(m.geqrf(b)),
    "more unknowns than equations": lambda m, a, b: m.linalg.lstsq(b.mT, b.mT).solution,
    "eigenvalues": lambda m, a, b: m.linalg.eigvalsh(a.tril()),
    "of the upper triangle": lambda m, a, b: m.linalg.eigvalsh(a.triu(), "U"),
    "singular values": lambda m, a, b: m.linalg.svdvals(b),
    "orthogonal factors": lambda m, a, b: [x @ y for x, y in [m.linalg.qr(b, mode="complete")]],
    "a lower triangle": lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False),
    "an upper one of ones": lambda m, a, b: m.linalg.solve_triangular(a / 9, b, upper=True, unitriangular=True),
    "one batch of one": lambda m, a, b: m.linalg.inv(a[None]),
    "least squares": lambda m, a, b: m.linalg.lstsq(b, a).solution,
}


def operands(dtype, shape):
    *batch, size, width = shape
    random = np.random.default_rng(size)
    a, b = random.normal(size=(*batch, size, size)), random.normal(size=(*batch, size, width))
    if dtype.startswith("complex"):
        a, b = a + 1j * random.normal(size=a.shape), b + 1j * random.normal(size=b.shape)
    return (a @ a.conj().swapaxes(-1, -2) / size + np.eye(size)).astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("shape", [(20, 3), (2, 3, 5, 2), (3, 1)])
@pytest.mark.parametrize("name", CALLS)
def test_results_are_torchs(name, shape):
    given = [operands(dtype, shape) for dtype in ("float32", "float64", "complex64", "complex128")]
    ours, theirs = ([CALLS[name](m, *map(m.tensor, arrays)) for arrays in given] for m in (genesis, torch))
    for mine, other in zip(ours, theirs, strict=True):  # all of ours are one program
        assert_close(mine, other, name, scale=50)


@pytest.mark.parametrize("function", [genesis.linalg.inv, lambda a: genesis.linalg.solve(a, a), genesis.linalg.cholesky,
                                      lambda a: genesis.linalg.lu_factor(a).LU])
def test_a_replay_fails_for_some_matrices_and_goes_on_with_others(function):
    compiled = genesis.compile(function)
    good, bad = (genesis.tensor(a) for a in (np.stack([np.eye(3)] * 4), np.stack([np.eye(3)] * 3 + [np.zeros((3, 3))])))
    for _ in range(4):
        np.testing.assert_array_equal(compiled(good).numpy(), good.numpy())
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError, match=r"(singular|not positive-definite).*test_single_matrices.py"):
            compiled(bad).numpy()
        np.testing.assert_array_equal(compiled(good).numpy(), good.numpy())


def test_what_one_matrix_lacks_is_told_of_it_alone():
    a = np.stack([np.eye(3), np.diag([1.0, -1.0, 1.0])])
    assert genesis.linalg.cholesky_ex(genesis.tensor(a)).info.tolist() == [0, 2]
    a[1, 1] = 0
    assert genesis.linalg.lu_factor_ex(genesis.tensor(a)).info.tolist() == [0, 2]
