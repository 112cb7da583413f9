# Written by tools/stubs.py from the operation table: do not edit.

from genesis.ops import (
    airy_ai as airy_ai, bessel_j0 as bessel_j0, bessel_j1 as bessel_j1, bessel_y0 as bessel_y0, bessel_y1 as bessel_y1,
    chebyshev_polynomial_t as chebyshev_polynomial_t, chebyshev_polynomial_u as chebyshev_polynomial_u,
    chebyshev_polynomial_v as chebyshev_polynomial_v, chebyshev_polynomial_w as chebyshev_polynomial_w, digamma as digamma,
    entr as entr, erf as erf, erfc as erfc, erfcx as erfcx, erfinv as erfinv, exp2 as exp2, expm1 as expm1,
    hermite_polynomial_h as hermite_polynomial_h, hermite_polynomial_he as hermite_polynomial_he, i0 as i0, i0e as i0e,
    i1 as i1, i1e as i1e, igamma, igammac, laguerre_polynomial_l as laguerre_polynomial_l,
    legendre_polynomial_p as legendre_polynomial_p, lgamma, log1p as log1p, log_ndtr as log_ndtr, log_softmax as log_softmax,
    logit as logit, logsumexp as logsumexp, modified_bessel_i0 as modified_bessel_i0, modified_bessel_i1 as modified_bessel_i1,
    modified_bessel_k0 as modified_bessel_k0, modified_bessel_k1 as modified_bessel_k1, mvlgamma, ndtr as ndtr, ndtri as ndtri,
    polygamma as polygamma, round as round, scaled_modified_bessel_k0 as scaled_modified_bessel_k0,
    scaled_modified_bessel_k1 as scaled_modified_bessel_k1, shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w, sigmoid, sinc as sinc, softmax as softmax,
    spherical_bessel_j0 as spherical_bessel_j0, xlog1py as xlog1py, xlogy as xlogy, zeta as zeta,
)

expit = sigmoid
gammainc = igamma
gammaincc = igammac
gammaln = lgamma
multigammaln = mvlgamma
psi = digamma
