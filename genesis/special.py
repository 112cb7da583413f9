"""Special functions under PyTorch's names, which are mostly SciPy's."""

from __future__ import annotations

from genesis.functions.methods import function_of
from genesis.ops.registry import OPERATIONS
from genesis.tensor.handle import Tensor, method

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit",
    "expm1", "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp",
    "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "ndtr", "ndtri",
    "polygamma", "psi", "round", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "softmax",
    "spherical_bessel_j0", "xlog1py", "xlogy", "zeta",
]

airy_ai = function_of(OPERATIONS["airy_ai"])
bessel_j0 = function_of(OPERATIONS["bessel_j0"])
bessel_j1 = function_of(OPERATIONS["bessel_j1"])
bessel_y0 = function_of(OPERATIONS["bessel_y0"])
bessel_y1 = function_of(OPERATIONS["bessel_y1"])
chebyshev_polynomial_t = function_of(OPERATIONS["chebyshev_polynomial_t"])
chebyshev_polynomial_u = function_of(OPERATIONS["chebyshev_polynomial_u"])
chebyshev_polynomial_v = function_of(OPERATIONS["chebyshev_polynomial_v"])
chebyshev_polynomial_w = function_of(OPERATIONS["chebyshev_polynomial_w"])
digamma = function_of(OPERATIONS["digamma"])
entr = function_of(OPERATIONS["entr"])
erf = function_of(OPERATIONS["erf"])
erfc = function_of(OPERATIONS["erfc"])
erfcx = function_of(OPERATIONS["erfcx"])
erfinv = function_of(OPERATIONS["erfinv"])
exp2 = function_of(OPERATIONS["exp2"])
expit = function_of(OPERATIONS["sigmoid"])
expm1 = function_of(OPERATIONS["expm1"])
gammainc = function_of(OPERATIONS["igamma"])
gammaincc = function_of(OPERATIONS["igammac"])
gammaln = function_of(OPERATIONS["lgamma"])
hermite_polynomial_h = function_of(OPERATIONS["hermite_polynomial_h"])
hermite_polynomial_he = function_of(OPERATIONS["hermite_polynomial_he"])
i0 = function_of(OPERATIONS["i0"])
i0e = function_of(OPERATIONS["i0e"])
i1 = function_of(OPERATIONS["i1"])
i1e = function_of(OPERATIONS["i1e"])
laguerre_polynomial_l = function_of(OPERATIONS["laguerre_polynomial_l"])
legendre_polynomial_p = function_of(OPERATIONS["legendre_polynomial_p"])
log1p = function_of(OPERATIONS["log1p"])
log_ndtr = function_of(OPERATIONS["log_ndtr"])
log_softmax = function_of(OPERATIONS["log_softmax"])
logit = function_of(OPERATIONS["logit"])
logsumexp = function_of(OPERATIONS["logsumexp"])
modified_bessel_i0 = function_of(OPERATIONS["modified_bessel_i0"])
modified_bessel_i1 = function_of(OPERATIONS["modified_bessel_i1"])
modified_bessel_k0 = function_of(OPERATIONS["modified_bessel_k0"])
modified_bessel_k1 = function_of(OPERATIONS["modified_bessel_k1"])
multigammaln = function_of(OPERATIONS["mvlgamma"])
ndtr = function_of(OPERATIONS["ndtr"])
ndtri = function_of(OPERATIONS["ndtri"])
polygamma = function_of(OPERATIONS["polygamma"])
psi = function_of(OPERATIONS["digamma"])
round = function_of(OPERATIONS["round"])
scaled_modified_bessel_k0 = function_of(OPERATIONS["scaled_modified_bessel_k0"])
scaled_modified_bessel_k1 = function_of(OPERATIONS["scaled_modified_bessel_k1"])
shifted_chebyshev_polynomial_t = function_of(OPERATIONS["shifted_chebyshev_polynomial_t"])
shifted_chebyshev_polynomial_u = function_of(OPERATIONS["shifted_chebyshev_polynomial_u"])
shifted_chebyshev_polynomial_v = function_of(OPERATIONS["shifted_chebyshev_polynomial_v"])
shifted_chebyshev_polynomial_w = function_of(OPERATIONS["shifted_chebyshev_polynomial_w"])
sinc = function_of(OPERATIONS["sinc"])
softmax = function_of(OPERATIONS["softmax"])
spherical_bessel_j0 = function_of(OPERATIONS["spherical_bessel_j0"])
xlog1py = function_of(OPERATIONS["xlog1py"])
xlogy = function_of(OPERATIONS["xlogy"])
zeta = function_of(OPERATIONS["zeta"])


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order `n` of the digamma function."""
    return polygamma(n, self)


method(_polygamma, "polygamma")
