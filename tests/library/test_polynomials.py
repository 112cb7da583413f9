"""Orthogonal polynomials against SciPy's, to any derivative, and what is made of them."""

import numpy as np
import pytest
import scipy.special
import torch

import genesis
from tests.tolerances import assert_close

SCIPY = {
    "chebyshev_polynomial_t": "chebyt", "chebyshev_polynomial_u": "chebyu", "hermite_polynomial_h": "hermite",
    "hermite_polynomial_he": "hermitenorm", "laguerre_polynomial_l": "laguerre", "legendre_polynomial_p": "legendre",
    "shifted_chebyshev_polynomial_t": "sh_chebyt", "shifted_chebyshev_polynomial_u": "sh_chebyu",
}
POINTS = np.linspace(-1.2, 1.3, 11)


@pytest.mark.parametrize("name", SCIPY)
def test_polynomials_and_their_derivatives_are_scipys(name):
    for degree in (0, 1, 2, 5, 9):
        x = genesis.tensor(POINTS, requires_grad=True)
        found, wanted = getattr(genesis.special, name)(x, degree), getattr(scipy.special, SCIPY[name])(degree)
        for order in range(3):
            assert_close(found, wanted.deriv(order)(POINTS) if order else wanted(POINTS), f"{name} {degree} {order}", scale=1e3)
            if order < 2:
                (found,) = genesis.autograd.grad(found.sum(), x, create_graph=True)


def test_legendres_polynomials_are_orthogonal():
    """Integrals of products over [-1, 1], by Gauss' quadrature; the squares' are 2 / (2 n + 1)."""
    places, weights = np.polynomial.legendre.leggauss(20)
    degrees = genesis.arange(12).unsqueeze(1)
    values = genesis.special.legendre_polynomial_p(genesis.tensor(places), degrees)
    assert_close((values * genesis.tensor(weights)) @ values.T, np.diag(2 / (2 * np.arange(12.0) + 1)), scale=10)


def test_degrees_are_numbers_rounded_towards_zero():
    x = genesis.tensor([0.5, float("nan")])
    t = genesis.special.chebyshev_polynomial_t
    assert_close(t(x, 2.9), np.array([-0.5, np.nan], np.float32))
    assert_close(t(x, 0), np.ones(2, np.float32))
    assert_close(t(0.5, genesis.tensor([-3, -1, 1, 2])), np.array([0, 0, 0.5, -0.5], np.float32))
    assert t(genesis.zeros(0, 2), genesis.tensor([1, 2])).shape == (0, 2)
    with pytest.raises(ValueError, match="degree 2000000 of a polynomial; want at most 1048576"):
        t(x, genesis.tensor(2e6)).tolist()


def test_airys_function_solves_its_equation():
    x = genesis.linspace(-4, 2, 13, dtype=genesis.float64).requires_grad_()
    y = genesis.special.airy_ai(x)
    (slope,) = genesis.autograd.grad(y.sum(), x, create_graph=True)
    (bend,) = genesis.autograd.grad(slope.sum(), x)
    assert_close(slope, scipy.special.airy(x.tolist())[1])
    assert_close(bend, x * y)
    assert genesis.special.airy_ai(genesis.tensor(float("nan"))).isnan()


def test_airys_function_far_from_zero():
    """SciPy's is NaN there; PyTorch's in float64 is not. The expansion begins at 10^6."""
    x = genesis.tensor([-5e6, -4.9e6, -1e7, -2e8, 1e7], dtype=genesis.float64, requires_grad=True)
    y = genesis.special.airy_ai(x)
    want = torch.special.airy_ai(torch.tensor(x.tolist(), dtype=torch.float64))
    np.testing.assert_allclose(y.detach().numpy(), want.numpy(), rtol=1e-4)  # angles have nine digits
    near = genesis.tensor([-1000000.5, -999999.5], dtype=genesis.float64, requires_grad=True)
    value = genesis.special.airy_ai(near)
    value.sum().backward()
    found, slope = scipy.special.airy(near.detach().numpy())[:2]
    np.testing.assert_allclose(value.detach().numpy(), found, rtol=1e-6)
    np.testing.assert_allclose(near.grad.numpy(), slope, rtol=1e-6)


def test_spherical_bessel_j0_has_exact_derivatives_near_zero():
    x = genesis.tensor([1e-6, 1e-3, 0.1, 0.499, 0.501, 3.0, 40.0], dtype=genesis.float64, requires_grad=True)
    y = genesis.special.spherical_bessel_j0(x)
    y.sum().backward()
    assert_close(y, scipy.special.spherical_jn(0, x.tolist()))
    assert_close(x.grad, scipy.special.spherical_jn(0, x.tolist(), derivative=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_of_log_ndtr_is_exact_far_below_zero(dtype):
    x = genesis.tensor([-1e5, -1e3, -40.0, -1.0, 0.0, 1.0, 8.0], dtype=getattr(genesis, dtype), requires_grad=True)
    genesis.special.log_ndtr(x).sum().backward()
    assert_close(x.grad, (np.sqrt(2 / np.pi) / scipy.special.erfcx(-np.array(x.tolist()) / np.sqrt(2))).astype(dtype))
