"""Products, sums of products and norms under PyTorch's names: what rows do not show by themselves, and what is refused."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
MATRIX, CUBE = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(2, 3, 4))


@pytest.mark.parametrize(("ord", "dim"), [
    (None, None), (None, 1), (3, 0), (1, None), ("fro", None), (np.inf, (1, 0)), (2, (1,)),
])
def test_linalg_norm_tells_vectors_from_matrices(ord, dim):
    assert_close(genesis.linalg.norm(genesis.tensor(MATRIX), ord, dim), torch.linalg.norm(torch.tensor(MATRIX), ord, dim))


@pytest.mark.parametrize("order", [2, 1, 3, 1.5, np.inf])
def test_the_gradient_of_the_norm_of_zeros_is_torchs(order):
    found = []
    for library in (genesis, torch):
        x = library.zeros(3, dtype=library.float64, requires_grad=True)
        library.linalg.vector_norm(x, order).backward()
        found.append(x.grad)
    assert_close(*found)


def test_distances_of_equal_points_have_gradient_zero():
    x = genesis.tensor(MATRIX, requires_grad=True)
    genesis.cdist(x, x).sum().backward()
    expected = torch.tensor(MATRIX, requires_grad=True)
    torch.cdist(expected, expected).sum().backward()
    assert_close(x.grad, expected.grad, scale=100)


def test_powers_and_chains_of_matrices_are_torchs():
    square = RANDOM.normal(size=(2, 3, 3))
    for n in (0, 1, 2, 7):
        ours, theirs = (m.linalg.matrix_power(m.tensor(square), n) for m in (genesis, torch))
        assert_close(ours, theirs, scale=10)
    chain = [MATRIX, MATRIX.T, MATRIX, MATRIX[0]]
    ours, theirs = (m.linalg.multi_dot([m.tensor(a) for a in chain]) for m in (genesis, torch))
    assert_close(ours, theirs, scale=10)
    assert_close(genesis.linalg.diagonal(genesis.tensor(CUBE)), torch.linalg.diagonal(torch.tensor(CUBE)))


def test_einsum_takes_a_list_and_spaces():
    arrays = [MATRIX, RANDOM.normal(size=(4, 5))]
    ours = genesis.einsum("i j, j k -> k i", [genesis.tensor(a) for a in arrays])
    assert_close(ours, torch.einsum("ij,jk->ki", *map(torch.tensor, arrays)))


@pytest.mark.parametrize("names", [
    ([0, 1], [1, 2], [0, 2]), ([0, 1], [1, 2]), ([..., 0, 1], [1, 2], [..., 2, 0]), ([30, 2], [2, 3]), ([0, 1], [1, 1], []),
])
def test_einsum_takes_numbers_as_names_of_axes(names):
    given = []
    for library in (genesis, torch):
        x, y = library.tensor(MATRIX), library.tensor(MATRIX.T @ MATRIX)
        given.append(library.einsum(x, names[0], y, *names[1:]))
    assert_close(*given, scale=10)


def test_einsum_names_52_axes():
    for library in (genesis, torch):
        x = library.tensor(MATRIX)
        assert library.einsum(x, [51, 0]).shape == tuple(MATRIX.T.shape)
        for unknown in (52, -1):
            with pytest.raises(ValueError, match=r"52|51"):
                library.einsum(x, [unknown, 0])


def test_condition_numbers_of_singular_and_empty_matrices_are_torchs():
    square = np.array([[[1.0, 2], [3, 4]], [[0, 0], [0, 0]], [[1, 2], [2, 4]]])
    for p in (1, "fro", -np.inf):
        assert_close(*[m.linalg.cond(m.tensor(square), p) for m in (genesis, torch)], scale=10)
    for shape in ((0, 0), (2, 0, 0), (3, 0), (0, 3, 3)):
        assert genesis.linalg.cond(genesis.ones(shape)).tolist() == torch.linalg.cond(torch.ones(shape)).tolist()


def test_arguments_have_torchs_other_spellings():
    a = genesis.tensor(MATRIX)
    assert_close(genesis.linalg.norm(a, ord=1, axis=(-2, -1), keepdims=True), genesis.linalg.norm(a, 1, (-2, -1), True))
    square = genesis.tensor(MATRIX @ MATRIX.T)
    assert_close(genesis.linalg.eigvalsh(square, "u"), genesis.linalg.eigvalsh(square, "U"))
    assert genesis.linalg.matrix_rank(square, 1e-3, True) == 3


def test_addr_promotes_as_torchs():
    for dtype in ("int64", "float32", "float64"):
        ours, theirs = (m.addr(m.ones(2, 2, dtype=getattr(m, dtype)), m.ones(2), m.ones(2)) for m in (genesis, torch))
        assert_close(ours, theirs)


def test_attention_by_einsum_trains_as_torchs():
    arrays = RANDOM.normal(size=(3, 2, 5, 3, 4))
    found = []
    for library in (genesis, torch):
        q, k, v = (library.tensor(a, requires_grad=True) for a in arrays)
        weights = library.softmax(library.einsum("bqhd,bkhd->bhqk", q, k) * 0.5, dim=-1)
        (library.einsum("bhqk,bkhd->bqhd", weights, v) ** 2).sum().backward()
        found.append([x.grad for x in (q, k, v)])
    assert_close(*found, scale=10)


A, B = genesis.ones(3, 4), genesis.ones(2, 3, 4)


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda: genesis.einsum("ij,jk->ik", A), ValueError, "'ij,jk->ik' has 2 terms for 1 operands"),
    (lambda: genesis.einsum("ijk->i", A), ValueError, r"'ijk' in 'ijk->i' does not name the 2 axes of shape \(3, 4\)"),
    (lambda: genesis.einsum("ij->ik", A), ValueError, "has 'k' on the right and nowhere on the left"),
    (lambda: genesis.einsum("ij->ii", A), ValueError, "a letter twice on the right"),
    (lambda: genesis.einsum("ij,ik->jk", A, B[0].T), ValueError, "'i' in 'ij,ik->jk' has extents 3 and 4"),
    (lambda: genesis.einsum("ii->i", A), ValueError, "'i' in 'ii->i' has extents 3 and 4"),
    (lambda: genesis.einsum("i1->i", A), ValueError, "cannot be read; want letters"),
    (lambda: genesis.einsum("ij,ij->i", A, A.double()), TypeError, "dtypes differ: float32 and float64"),
    (lambda: genesis.mm(A, B), ValueError, r"mm: mat2 has shape \(2, 3, 4\); want 2 axes, or use matmul"),
    (lambda: genesis.bmm(B, genesis.ones(3, 4, 2)), ValueError, r"bmm: batches differ.*want \(2, ..\) on the right"),
    (lambda: genesis.dot(A, A), ValueError, "dot: input has shape .*want a vector"),
    (lambda: genesis.addmm(genesis.ones(3), A, A.T.double()), TypeError, "dtypes differ"),
    (lambda: genesis.addmm(genesis.ones(2), A, A.T), ValueError, "broadcast"),
    (lambda: genesis.addmm(genesis.ones(2, 3, 3), A, A.T), ValueError, r"input \(2, 3, 3\) does not broadcast to"),
    (lambda: genesis.tensordot(A, B, 3), ValueError, "tensordot: 3 axes of shapes .* want 0 to 2"),
    (lambda: genesis.tensordot(A, B, ([0], [0])), ValueError, r"axes \(0,\) of \(3, 4\) do not fit axes \(0,\) of \(2, 3, 4\)"),
    (lambda: A.long().norm(), TypeError, "norm: wants floating numbers, got int64; convert with"),
    (lambda: A.norm("nut"), ValueError, "p is 'nut'; want a number, 'fro', 'nuc' or None"),
    (lambda: genesis.zeros(0).norm(float("inf")), ValueError, "has no elements along dim"),
    (lambda: genesis.linalg.matrix_norm(A, 3), ValueError, "want 'fro', 'nuc', 1, 2, inf, -1, -2 or -inf"),
    (lambda: genesis.linalg.norm(B, 1), ValueError, "want a vector or a matrix"),
    (lambda: genesis.cdist(A, A, compute_mode="mm"), ValueError, "compute_mode is 'mm'; want one of"),
    (lambda: genesis.cdist(A, genesis.ones(2, 3)), ValueError, r"want \(.., m, k\) and \(.., n, k\)"),
    (lambda: genesis.cdist(A, A, -1), ValueError, "p is -1; want 0 or more"),
    (lambda: genesis.linalg.matrix_power(A @ A.T, 1.5), TypeError, "'float' object cannot be interpreted as an integer"),
    (lambda: genesis.linalg.multi_dot([A, B, A]), ValueError, "the first or last may be a vector"),
    (lambda: genesis.linalg.matrix_rank(A[0]), ValueError, r"shape \(4,\); want \(.., m, n\)"),
    (lambda: genesis.linalg.lstsq(A, A, driver="qr"), ValueError, "driver is 'qr'; want 'gels'"),
    (lambda: genesis.addmm(A, A, genesis.eye(4), alpha=1j), TypeError, "alpha 1j and beta 1 for float32; want real numbers"),
    (lambda: genesis.linalg.matrix_power(A, 2), ValueError, r"power 2 of shape \(3, 4\); want \(.., m, m\)"),
])
def test_what_does_not_fit_is_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize(("rows", "mode", "exact"), [
    (25, "use_mm_for_euclid_dist_if_necessary", True), (26, "use_mm_for_euclid_dist_if_necessary", False),
    (3, "use_mm_for_euclid_dist", False), (26, "donot_use_mm_for_euclid_dist", True),
])
def test_distances_are_computed_from_products_where_torchs_are(rows, mode, exact):
    x = 100 + np.random.default_rng(0).standard_normal((rows, 8)).astype(np.float32) * 0.01
    ours = genesis.cdist(genesis.tensor(x), genesis.tensor(x), compute_mode=mode).numpy()
    wanted = np.linalg.norm(x[:, None].astype(np.float64) - x, axis=-1)
    assert (np.abs(ours - wanted).max() < 1e-5) == exact
    np.testing.assert_allclose(ours, wanted, atol=0.3)
