"""Functions of complex numbers beside torch's."""

import contextlib

import numpy as np
import pytest
import torch

import genesis


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize("ends", [(0, 1j), (1 + 2j, 3.0), (-1j, 2 - 1j)])
def test_ranges_between_complex_ends(name, ends):
    np.testing.assert_allclose(
        getattr(genesis, name)(*ends, 5).numpy(), getattr(torch, name)(*ends, 5).numpy(), rtol=1e-5, atol=1e-6)
    first = genesis.tensor(ends[0], dtype=genesis.complex128)
    found = getattr(genesis, name)(first, ends[1], 5, dtype=genesis.complex128)
    assert found.dtype is genesis.complex128
    np.testing.assert_allclose(found.numpy(), getattr(torch, name)(*ends, 5, dtype=torch.complex128).numpy())


def test_ranges_of_real_numbers_refuse_complex_ends():
    with pytest.raises(TypeError, match="want complex64"):
        genesis.linspace(0, 1j, 3, dtype=genesis.float32)
    with pytest.raises(TypeError, match="arange: wants real numbers, got 3j"):
        genesis.arange(0, 3j)


# ---- functions with gradients, beside torch's ----
RANDOM = np.random.default_rng(5)
MATRICES = RANDOM.normal(size=(2, 4, 3)) + 1j * RANDOM.normal(size=(2, 4, 3))
SQUARE = RANDOM.normal(size=(2, 3, 3)) + 1j * RANDOM.normal(size=(2, 3, 3))
FUNCTIONS = {
    "householder_product": (lambda m, x: m.linalg.householder_product(*m.geqrf(x.detach()))[..., :2] * x[..., :2], MATRICES),
    "of the reflections": (lambda m, x: m.linalg.householder_product(x / 4, x[:, 0] / 4), MATRICES),
    "ormqr": (lambda m, x: m.ormqr(x.detach() / 4, x[:, 0].detach() / 4, x, transpose=True), MATRICES),
    "ormqr from the right": (lambda m, x: m.ormqr(x.detach() / 4, x[:, 0].detach() / 4, x.mT, left=False), MATRICES),
    "logcumsumexp": (lambda m, x: m.logcumsumexp(x, 1), MATRICES * 3),
    "logaddexp": (lambda m, x: m.logaddexp(x[0], x[1]), MATRICES * 3),
    "embedding": (lambda m, x: m.nn.functional.embedding(m.tensor([1, 0]), x[0]) if m is genesis else x[0][[1, 0]], MATRICES),
    "svdvals of a singular matrix": (lambda m, x: m.linalg.svdvals(x @ m.tensor(np.diag([1.0, 2, 0]) + 0j)), SQUARE),
    "ldl_solve of symmetric matrices": (lambda m, x: _solved(m, x + x.mT, x, False), SQUARE),
    "ldl_solve of Hermitian matrices": (lambda m, x: _solved(m, x + x.mH, x, True), SQUARE),
}


def _solved(library, matrix, x, hermitian):
    """In torch by another way, which has a gradient."""
    if library is torch:
        return torch.linalg.solve(matrix.detach(), x)
    return genesis.linalg.ldl_solve(*genesis.linalg.ldl_factor(matrix.detach(), hermitian=hermitian), x, hermitian=hermitian)


@pytest.mark.parametrize("mode", ["kernels", "references"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_torchs(name, mode):
    function, values = FUNCTIONS[name]
    with genesis.eager() if mode == "references" else contextlib.nullcontext():
        ours, theirs = (m.tensor(values, requires_grad=True) for m in (genesis, torch))
        found, wanted = function(genesis, ours), function(torch, theirs)
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-9)
        for result in (found, wanted):
            (result * result + result).abs().sum().backward()
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.resolve_conj().numpy(), rtol=1e-8, atol=1e-8)


def test_sums_of_exponentials_of_complex_infinities():
    x = [complex(-np.inf, 0), 1 + 1j, complex(-np.inf, 2), 800 + 1j, 800 - 1j]
    found, wanted = genesis.tensor(x).logcumsumexp(0), torch.tensor(x).logcumsumexp(0)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)


def test_places_that_are_not_zero():
    assert genesis.nonzero_static(genesis.tensor([0j, 1j, 0, 2]), size=3, fill_value=-1).tolist() == [[1], [3], [-1]]
