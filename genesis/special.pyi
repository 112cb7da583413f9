# Written by tools/stubs.py from the operation table: do not edit.

from builtins import bool as Bool, float as Float, int as Int
from genesis.ir.dtypes import DType
from genesis.tensor.handle import Operand, Tensor

def airy_ai(input: Tensor) -> Tensor:
    """Airy's function Ai: the solution of y'' = x y that vanishes at infinity."""
def bessel_j0(input: Tensor) -> Tensor:
    """The Bessel function J0."""
def bessel_j1(input: Tensor) -> Tensor:
    """The Bessel function J1."""
def bessel_y0(input: Tensor) -> Tensor:
    """The Bessel function Y0."""
def bessel_y1(input: Tensor) -> Tensor:
    """The Bessel function Y1."""
def chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's T: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's U: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's V: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's W: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def digamma(input: Tensor) -> Tensor:
    """The derivative of `lgamma`."""
def entr(input: Tensor) -> Tensor:
    """-x log(x) where x is positive, 0 at 0, -inf below."""
def erf(input: Tensor) -> Tensor:
    """2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
def erfc(input: Tensor) -> Tensor:
    """1 - erf(x), without cancellation."""
def erfcx(input: Tensor) -> Tensor:
    """exp(x^2) erfc(x)."""
def erfinv(input: Tensor) -> Tensor:
    """The inverse of `erf`."""
def exp2(input: Tensor) -> Tensor:
    """As `numpy.exp2`."""
def expit(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
def expm1(input: Tensor) -> Tensor:
    """As `numpy.expm1`."""
def gammainc(input: Operand, other: Operand) -> Tensor:
    """The regularized lower incomplete gamma function."""
def gammaincc(input: Operand, other: Operand) -> Tensor:
    """The regularized upper incomplete gamma function."""
def gammaln(input: Tensor) -> Tensor:
    """The logarithm of |gamma(x)|."""
def hermite_polynomial_h(input: Operand, n: Operand) -> Tensor:
    """Hermite's H, of physics: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def hermite_polynomial_he(input: Operand, n: Operand) -> Tensor:
    """Hermite's He, of probability: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function I0."""
def i0e(input: Tensor) -> Tensor:
    """exp(-|x|) I0(x)."""
def i1(input: Tensor) -> Tensor:
    """The modified Bessel function I1."""
def i1e(input: Tensor) -> Tensor:
    """exp(-|x|) I1(x)."""
def laguerre_polynomial_l(input: Operand, n: Operand) -> Tensor:
    """Laguerre's L: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def legendre_polynomial_p(input: Operand, n: Operand) -> Tensor:
    """Legendre's P: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def log1p(input: Tensor) -> Tensor:
    """As `numpy.log1p`."""
def log_ndtr(input: Tensor) -> Tensor:
    """log(ndtr(x))."""
def log_softmax(input: Tensor, dim: Int = -1, dtype: DType | None = None) -> Tensor:
    """log(softmax(x)) along `dim`, without overflow."""
def logit(input: Tensor, eps: Float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of `sigmoid`; with `eps`, of x held within [eps, 1 - eps]."""
def logsumexp(input: Tensor, dim: Int | tuple[Int, ...], keepdim: Bool = False) -> Tensor:
    """log(sum(exp(x))) over `dim`, without overflow; -inf of no elements."""
def modified_bessel_i0(input: Tensor) -> Tensor:
    """As `i0`."""
def modified_bessel_i1(input: Tensor) -> Tensor:
    """As `i1`."""
def modified_bessel_k0(input: Tensor) -> Tensor:
    """The modified Bessel function K0."""
def modified_bessel_k1(input: Tensor) -> Tensor:
    """The modified Bessel function K1."""
def multigammaln(input: Tensor, p: Int) -> Tensor:
    """The logarithm of the multivariate gamma function in `p` dimensions."""
def ndtr(input: Tensor) -> Tensor:
    """The integral of the standard normal density up to x."""
def ndtri(input: Tensor) -> Tensor:
    """The inverse of `ndtr`."""
def polygamma(n: Int, input: Tensor) -> Tensor:
    """The `n`-th derivative of `digamma`. Raises ValueError for a negative `n`."""
def psi(input: Tensor) -> Tensor:
    """The derivative of `lgamma`."""
def round(input: Tensor, *, decimals: Int = 0) -> Tensor:
    """`input` rounded to so many `decimals`, ties to even; negative ones round to tens, hundreds, and so on."""
def scaled_modified_bessel_k0(input: Tensor) -> Tensor:
    """exp(x) K0(x)."""
def scaled_modified_bessel_k1(input: Tensor) -> Tensor:
    """exp(x) K1(x)."""
def shifted_chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_t` at 2 x - 1, for x in [0, 1]."""
def shifted_chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_u` at 2 x - 1, for x in [0, 1]."""
def shifted_chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_v` at 2 x - 1, for x in [0, 1]."""
def shifted_chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_w` at 2 x - 1, for x in [0, 1]."""
def sinc(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0."""
def softmax(input: Tensor, dim: Int = -1, dtype: DType | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`."""
def spherical_bessel_j0(input: Tensor) -> Tensor:
    """The spherical Bessel function j0: sin(x) / x, and 1 at 0; below 1/2 by its series, which has exact derivatives."""
def xlog1py(input: Operand, other: Operand) -> Tensor:
    """x * log(1 + y), and 0 where x is 0."""
def xlogy(input: Operand, other: Operand) -> Tensor:
    """x * log(y), and 0 where x is 0."""
def zeta(input: Operand, other: Operand) -> Tensor:
    """The Hurwitz zeta function: the sum of (k + q)^-x."""
