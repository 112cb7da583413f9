"""Functions of a single matrix, which LAPACK is handed as it lies, against torch."""

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
    "its logarithm": lambda m, a, b: m.linalg.slogdet(m.cat((a[1:], -a[:1]))),
    "that of a singular matrix": lambda m, a, b: m.linalg.slogdet(a * 0),
    "eigenvalues": lambda m, a, b: m.linalg.eigvalsh(a.tril()),
    "of the upper triangle": lambda m, a, b: m.linalg.eigvalsh(a.triu(), "U"),
    "singular values": lambda m, a, b: m.linalg.svdvals(b),
    "orthogonal factors": lambda m, a, b: [x @ y for x, y in [m.linalg.qr(b, mode="complete")]],
    "a lower triangle": lambda m, a, b: m.linalg.solve_triangular(a, b, upper=False),
    "an upper one of ones": lambda m, a, b: m.linalg.solve_triangular(a / 9, b, upper=True, unitriangular=True),
    "one batch of one": lambda m, a, b: m.linalg.inv(a[None]),
    "least squares": lambda m, a, b: m.linalg.lstsq(b, a).solution,
}


def operands(dtype, size):
    random = np.random.default_rng(size)
    a, b = random.normal(size=(size, size)), random.normal(size=(size, 3))
    if dtype == "complex64":
        a, b = a + 1j * random.normal(size=a.shape), b + 1j * random.normal(size=b.shape)
    return (a @ a.conj().T / size + np.eye(size)).astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("by_references")
def test_results_are_torchs(name, dtype):
    arrays = operands(dtype, 50)
    ours, theirs = (CALLS[name](m, *[m.tensor(a) for a in arrays]) for m in (genesis, torch))
    assert_close(ours, theirs, name, scale=50)


@pytest.mark.usefixtures("by_references")
def test_failures_are_told():
    a = -operands("float64", 5)[0]
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        genesis.linalg.cholesky(genesis.tensor(a)).numpy()
    for function in (genesis.linalg.inv, lambda x: genesis.linalg.solve(x, x)):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            function(genesis.tensor(a * 0)).numpy()

