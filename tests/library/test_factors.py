"""Factors by elimination and Cholesky's, and matrices that have none, against torch."""

import numpy as np
import pytest
import torch

import genesis
from genesis.autograd import gradcheck
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
SQUARES = RANDOM.normal(size=(2, 3, 3))
SINGULAR = np.stack([SQUARES[0], np.outer([1.0, 2, 4], [1.0, 2, 1]), np.zeros((3, 3))])
INDEFINITE = np.array([[[2.0, 1], [1, 2]], [[1, 2], [2, 1]], [[-1, 0], [0, 1]]])


def both(call, *arrays):
    """What genesis and torch give."""
    return [call(library, *[library.tensor(a) for a in arrays]) for library in (genesis, torch)]


CALLS = {
    "lu": (lambda m, a: m.linalg.lu(a), RANDOM.normal(size=(2, 2, 4, 3))),
    "lu of a wide matrix": (lambda m, a: m.linalg.lu(a), RANDOM.normal(size=(2, 4))),
    "lu of a singular matrix": (lambda m, a: m.linalg.lu_factor_ex(a)[1:], SINGULAR),
    "no rows": (lambda m, a: m.linalg.lu_factor(a), np.zeros((2, 0, 3))),
    "no matrices": (lambda m, a: m.linalg.lu(a), np.zeros((0, 2, 2))),
    "unpacked": (lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a)), SQUARES),
    "solve_ex": (lambda m, a: m.linalg.solve_ex(a, m.ones(3, 1, dtype=m.float64)), SINGULAR[:2]),
    "info of inverses": (lambda m, a: m.linalg.inv_ex(a).info, SINGULAR),
    "cholesky_ex": (lambda m, a: m.linalg.cholesky_ex(a)[1], INDEFINITE),
    "the factor so far": (lambda m, a: m.linalg.cholesky_ex(a).L[..., 0], INDEFINITE[:2]),
    "a zero on a triangle's diagonal": (
        lambda m, a: m.linalg.solve_triangular(a, m.ones(2, 1, dtype=m.float64), upper=True), np.array([[1.0, 2], [0, 0]])),
    "pinv": (lambda m, a: m.linalg.pinv(a, atol=0.5), SINGULAR),
    "pinv, relative": (lambda m, a: m.linalg.pinv(a, rtol=0.4), SQUARES),
    "pinv, symmetric": (lambda m, a: m.linalg.pinv(a, hermitian=True), INDEFINITE),
    "qr": (lambda m, a: m.qr(a, some=False).R.abs(), RANDOM.normal(size=(4, 3))),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_torchs(name):
    call, array = CALLS[name]
    assert_close(*both(call, array), name, scale=10)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_systems_are_solved_by_factors(left, adjoint):
    def call(m, a, b):
        return m.linalg.lu_solve(*m.linalg.lu_factor(a), b, left=left, adjoint=adjoint)

    assert_close(*both(call, SQUARES, RANDOM.normal(size=(4, 1, 3, 3))), scale=10)
    a, b = genesis.tensor(SQUARES[0]), genesis.tensor(RANDOM.normal(size=(3, 2)))
    assert_close(a @ b.lu_solve(*a.lu()), b, scale=10)


def test_without_pivots_rows_stay():
    a = genesis.tensor(SQUARES + 4 * np.eye(3))
    p, lower, upper = genesis.linalg.lu(a, pivot=False)
    assert p.shape == (0,)
    assert_close(lower @ upper, a)
    factored = genesis.linalg.lu_factor(a, pivot=False)
    assert factored.pivots.tolist() == [[1, 2, 3]] * 2
    assert_close(genesis.linalg.lu_solve(*factored, a), np.broadcast_to(np.eye(3), (2, 3, 3)))


def test_what_is_solved_by_factors_is_differentiated_through_them():
    a, b = (genesis.tensor(RANDOM.normal(size=(3, k)), requires_grad=True) for k in (3, 2))
    gradcheck(lambda a, b: genesis.linalg.lu_solve(*genesis.linalg.lu_factor(a), b), (a, b))
    gradcheck(lambda a: genesis.linalg.cholesky_ex(a @ a.mT + genesis.eye(3, dtype=a.dtype)).L, (a,))
    gradcheck(lambda a: genesis.linalg.inv_ex(a).inverse, (a,))


REFUSED = [
    (lambda m: m.linalg.lu_factor(m.zeros(2, 2)), "the input matrix is singular: element 1 of the diagonal of U is zero"),
    (lambda m: m.lu(m.ones(2, 2))[0], "the input matrix is singular: element 2"),
    (lambda m: m.linalg.inv_ex(m.ones(2, 2), check_errors=True).inverse, "the input matrix is singular: element 2"),
    (lambda m: m.linalg.cholesky_ex(-m.eye(2), check_errors=True).L, "not positive-definite"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_has_no_factors_is_told_when_it_is_computed(call, message):
    result = call(genesis)
    with pytest.raises(genesis.linalg.LinAlgError, match=message + r".* \(at .*test_factors.py"):
        (result if isinstance(result, genesis.Tensor) else result[0]).tolist()


def test_what_does_not_fit_is_refused():
    lu, pivots = genesis.linalg.lu_factor(genesis.eye(3))
    with pytest.raises(ValueError, match=r"lu_solve: shapes \(3, 3\) and \(2, 3\); want \(\.\., n, n\) and \(\.\., n, k\)"):
        genesis.linalg.lu_solve(lu, pivots, genesis.ones(2, 3))
    with pytest.raises(ValueError, match=r"pivots have shape \(2,\); want \(3,\)"):
        genesis.linalg.lu_solve(lu, pivots[:2], genesis.ones(3, 3))
    with pytest.raises(TypeError, match="lu_factor: wants a floating tensor, got int64"):
        genesis.linalg.lu(genesis.eye(3).long())
    with pytest.raises(IndexError, match="pivots of 3 rows must be 1 to 3, got 4"):
        genesis.lu_unpack(lu, genesis.tensor([1, 4, 3])).P.tolist()


def test_reflections_have_torchs_gradients():
    data, tau = torch.geqrf(torch.tensor(RANDOM.normal(size=(2, 4, 3))))
    weight, other = RANDOM.normal(size=(2, 4, 3)), RANDOM.normal(size=(2, 4, 3))
    found = []
    for lib in (genesis, torch):
        a, t, o, w = (lib.tensor(np.array(x), requires_grad=True) for x in (data, tau, other, weight))
        (lib.linalg.householder_product(a, t) * w).sum().backward()
        found.append([a.grad, t.grad])
        (lib.ormqr(a, t, o, True, True) * w).sum().backward()
        found[-1] += [a.grad, t.grad, o.grad]
    assert_close(*found, scale=100)


def test_systems_of_indefinite_matrices_have_gradients_by_their_right_sides():
    symmetric = SQUARES + SQUARES.swapaxes(-1, -2)
    factors = genesis.linalg.ldl_factor(genesis.tensor(symmetric))
    right = genesis.tensor(RANDOM.normal(size=(3, 2)), requires_grad=True)
    assert_close(genesis.tensor(symmetric) @ genesis.linalg.ldl_solve(*factors, right), right.expand(2, 3, 2), scale=100)
    gradcheck(lambda b: genesis.linalg.ldl_solve(*factors, b), (right,))
    with pytest.raises(np.linalg.LinAlgError, match="exactly zero"):
        genesis.linalg.ldl_factor(genesis.zeros(2, 2)).LD.tolist()


@pytest.mark.parametrize("shape", [(20, 9), (2, 9, 20)])
def test_few_singular_vectors_make_up_a_matrix_of_low_rank(shape):
    low = RANDOM.normal(size=(*shape[:-1], 3)) @ RANDOM.normal(size=(*shape[:-2], 3, shape[-1]))
    U, S, V = genesis.svd_lowrank(genesis.tensor(low), q=4)
    assert_close(U @ S.diag_embed() @ V.mT, low, scale=100)
    assert_close(S, torch.svd_lowrank(torch.tensor(low), q=4)[1], scale=100)
    ours, theirs = genesis.pca_lowrank(genesis.tensor(low), q=3), torch.pca_lowrank(torch.tensor(low), q=3)
    assert_close(ours.S, theirs[1], scale=100)
    assert_close(ours.V.abs(), theirs[2].abs(), scale=1000)
    with pytest.raises(ValueError, match="q is 10; want 0 to 9"):
        genesis.svd_lowrank(genesis.tensor(low), q=10)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("generalized", [True, False])
def test_few_eigenvalues_are_those_of_the_whole(largest, generalized):
    m = 40
    basis = np.linalg.qr(RANDOM.normal(size=(m, m)))[0]
    a = basis * np.linspace(1, 9, m) ** 2 @ basis.T
    b = np.eye(m) + np.diag(RANDOM.uniform(size=m)) / 9 if generalized else None
    E, X = genesis.lobpcg(genesis.tensor(a), k=3, B=b if b is None else genesis.tensor(b), largest=largest, tol=1e-10)
    half = np.linalg.inv(np.linalg.cholesky(np.eye(m) if b is None else b))
    whole = np.linalg.eigvalsh(half @ a @ half.T)
    np.testing.assert_allclose(E.numpy(), whole[::-1][:3] if largest else whole[:3], rtol=1e-6)
    right = X if b is None else genesis.tensor(b) @ X
    np.testing.assert_allclose((genesis.tensor(a) @ X).numpy(), (right * E).numpy(), atol=1e-4)


def test_counts_have_their_distributions_moments_and_no_gradients():
    genesis.manual_seed(0)
    rate = genesis.full((20000,), 3.0, requires_grad=True)
    counts = genesis.poisson(rate)
    assert abs(counts.mean().item() - 3) < 0.05 and abs(counts.var().item() - 3) < 0.15
    counts.sum().backward()
    assert not rate.grad.any()
    wins = genesis.binomial(genesis.full((20000, 1), 10.0), genesis.tensor([0.3, 1.0]))
    assert wins.shape == (20000, 2) and abs(wins[:, 0].mean().item() - 3) < 0.05 and (wins[:, 1] == 10).all()
    genesis.manual_seed(0)
    assert (genesis.poisson(rate) == counts).all()
    with pytest.raises(ValueError, match="poisson: a parameter is infinite, NaN or negative"):
        genesis.poisson(-rate)


@pytest.mark.parametrize("pivots", [[0, 1, 2, 3], [9, 1, 2, 3], [-9, -9, 3, 4], [1, 2, 3, -4], [1, -2, 3, 4], [-1, -9, 3, 4]])
def test_pivots_that_no_factorization_gives_raise(pivots):
    with pytest.raises(RuntimeError, match="want those of ldl_factor"):
        genesis.linalg.ldl_solve(genesis.eye(4), genesis.tensor(pivots, dtype=genesis.int32), genesis.ones(4, 1)).tolist()
