"""The modified Bessel functions I and K of the orders 0 and 1, and the same without their exponential growth or decay.

Near 0 by their power series, I. and K.'s logarithms by M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions" (1964),
9.6.10 to 9.6.13; beyond by e^x / sqrt(x) or e^-x / sqrt(x) times a function that is smooth to infinity (9.7.1 and 9.7.2). The
polynomials are fits of this project at Chebyshev's points (60 digits).
"""

from __future__ import annotations

from math import e

from genesis.codegen.cpu.vector_math.exponential import exp, exp_of_sum
from genesis.codegen.cpu.vector_math.logarithm import log
from genesis.codegen.cpu.vector_math.number import (
    INFINITY, NAN, DoubleWord, Number, copy_sign, fma, in_float64, polynomial, square_root, where,
)

# I0(x) = 1 + a p(a) and I1(x) = x / 2 (1 + a p(a)) of a = (x / 2)^2, for |x| <= 8: errors 2^-54.5 and 2^-54.4.
I0_NEAR = (
    1.0, 0.25, 0.02777777777777778, 0.0017361111111111106, 6.944444444444523e-05, 1.929012345678419e-06,
    3.936759889170454e-08, 6.151187325755852e-10, 7.59405845371784e-12, 7.594057959497694e-14, 6.276087726660225e-16,
    4.358324987723104e-18, 2.5794178351052894e-20, 1.3130874489257475e-22, 5.952735587576793e-25, 2.013075286051257e-27,
    1.2002672023650634e-29,
)  # fmt: skip
I1_NEAR = (
    0.5, 0.08333333333333333, 0.006944444444444444, 0.0003472222222222222, 1.1574074074074114e-05, 2.7557319223982823e-07,
    4.920949861441355e-09, 6.834652584783329e-11, 7.594058441354712e-13, 6.90368923783708e-15, 5.230071087726802e-17,
    3.3525740185918085e-19, 1.842345089173867e-21, 8.757924724769851e-24, 3.7092713417294716e-26, 1.2029294150405264e-28,
    6.525161138164069e-31,
)  # fmt: skip
# e^-x sqrt(x) I(x) in t = 16 / x - 1, for x >= 8: errors 2^-53.8 and 2^-53.8.
I0_FAR = (
    0.4021765094450081, 0.0033605519836678913, 0.00013621607438951463, 1.114303378845176e-05, 1.4838476780922646e-06,
    2.9735992084667734e-07, 8.872014585661555e-08, 3.932512321137824e-08, 2.156780676115673e-08, 7.559364098665437e-09,
    -6.856484545962442e-09, -1.3427511481900905e-08, -5.0175940345046716e-09, 7.600254486433509e-09, 6.522264862032271e-09,
    -3.5862834111582305e-09, -4.5305710768621196e-09, 1.6084886155781772e-09, 2.163681278413876e-09, -6.327909921997027e-10,
    -6.494591114401118e-10, 1.7698085539456536e-10, 9.114760157514253e-11, -2.4421972688131832e-11,
)  # fmt: skip
I1_FAR = (
    0.38939845902587233, -0.009749577193235765, -0.00021923576383137776, -1.5038547198221758e-05, -1.8349102493990178e-06,
    -3.4838563464253135e-07, -1.0001075046243961e-07, -4.3128498031006734e-08, -2.3394122958362557e-08,
    -8.432168972932417e-09, 6.84757829926934e-09, 1.4051746928735543e-08, 5.5720183980930355e-09, -7.687251308765992e-09,
    -6.9444186339873875e-09, 3.501765193290176e-09, 4.763780078020254e-09, -1.5218214060680734e-09, -2.2624401109204446e-09,
    5.870664618471487e-10, 6.7727478454462e-10, -1.6283264322621244e-10, -9.491890392992048e-11, 2.2421768596847442e-11,
)  # fmt: skip
# K0(x) = p(x^2) - log(x) I0(x) and K1(x) = 1 / x + log(x) I1(x) + x p(x^2), for 0 < x <= 1: errors 2^-57.0 and 2^-55.8.
K0_NEAR = (
    0.11593151565841245, 0.2789828789146031, 0.025248929932162698, 0.0008460350907081938, 1.4914719299410551e-05,
    1.627105606146431e-07, 1.208426900211292e-09, 6.507971505261944e-12, 2.6984361912313664e-14,
)  # fmt: skip
K1_NEAR = (
    -0.3079657578292062, -0.08537071972865078, -0.004642182766471561, -0.00011253607036630417, -1.5592887702114463e-06,
    -1.4030163678364844e-08, -8.87189995422256e-11, -4.161426795175456e-13, -1.5262686869512895e-15,
)  # fmt: skip
# e^x sqrt(x) K(x) in t = (3 - x) / (1 + x), for x >= 1: errors 2^-54.2 and 2^-53.2.
K0_FAR = (
    1.2085585393824039, -0.05190414200069995, -0.00904785430370095, -0.0023443540383625114, -0.0005746200406777097,
    -0.0001627828238061989, -4.3525609282081264e-05, -1.301058207219738e-05, -3.591154264768326e-06,
    -1.1249506691021663e-06, -3.100583765168069e-07, -1.0311396002889544e-07, -2.720542013830896e-08,
    -1.0014823762541936e-08, -2.2485764425697697e-09, -1.0980514288305175e-09, -2.534962611131572e-10,
    -7.756865906652488e-11, 8.171677671415756e-11, -6.955546197094687e-11, -4.333435952253373e-11, 2.381136777868482e-11,
    1.4206264802595551e-11, -8.544687974527335e-12,
)  # fmt: skip
K1_FAR = (
    1.3970089271126294, 0.1775377338208504, 0.04365061563750093, 0.012635408079179747, 0.00369284692882528,
    0.0011269348875547968, 0.0003441268502886614, 0.00010771774144596948, 3.355631501557472e-05, 1.0673190325449988e-05,
    3.3583677698746134e-06, 1.0820501474861638e-06, 3.415583323004056e-07, 1.1158059949245672e-07, 3.4987990689600544e-08,
    1.1739811597314177e-08, 3.6733507860279804e-09, 1.1902632799323938e-09, 2.916260216601199e-10, 1.9865303899308486e-10,
    7.335982989734298e-11, -1.6755274747471858e-11, -7.31017112741015e-12, 1.1803034312397926e-11,
)  # fmt: skip


def growing(x: Number, order: int, scaled: bool) -> Number:
    """I(x), or e^-|x| I(x): within 8 ulp, and 4."""
    size = abs(x)
    square = size * size * 0.25
    near = fma(square, polynomial(square, I1_NEAR if order else I0_NEAR), 1.0)
    near = size * 0.5 * near if order else near
    beyond = where(size > 8.0, size, 8.0)
    far = polynomial(16.0 / beyond - 1.0, I1_FAR if order else I0_FAR) / square_root(beyond)
    if scaled:
        near = exp(-size) * near
    else:  # e^x far is finite where e^x is not: e^10 is part of the factor
        far = where(size > 720.0, INFINITY, exp_of_sum(DoubleWord(size - 10.0), far * e**10))
    value = ended(size, where(size <= 8.0, near, far), 0.0 if scaled else INFINITY)
    return copy_sign(value, x) if order else value


def ended(x: Number, value: Number, limit: float) -> Number:
    """`value`, the limit at infinity, and NaN of NaN, for x >= 0."""
    return where(x.is_nan(), x, where(x.equals(INFINITY), limit, value))


def k_near(order: int, x: Number) -> Number:
    """K(x) for 0 <= x <= 1; the first terms of I's polynomials serve there."""
    square = x * x
    if order == 0:
        return fma(-log(x), fma(square * 0.25, polynomial(square * 0.25, I0_NEAR[:10]), 1.0), polynomial(square, K0_NEAR))
    growth = log(x) * fma(square * 0.25, polynomial(square * 0.25, I1_NEAR[:10]), 1.0)
    return 1.0 / x + where(x.equals(0.0), 0.0, x * fma(growth, 0.5, polynomial(square, K1_NEAR)))


def decayed(x: Number, order: int, scaled: bool) -> Number:
    """K(x), or e^x K(x), infinite at 0, NaN below: within 4 ulp."""
    is_near = x <= 1.0
    near = k_near(order, where(is_near, x, 1.0))
    beyond = where(is_near, 1.0, x)
    far = polynomial((3.0 - beyond) / (1.0 + beyond), K1_FAR if order else K0_FAR) / square_root(beyond)
    if scaled:
        near = near * exp(x)
    else:
        far = exp_of_sum(DoubleWord(-beyond), far)
    value = where(is_near, near, ended(x, far, 0.0))
    return where(x < 0.0, NAN, where(x.equals(0.0), INFINITY, value))


i0, i1 = in_float64(lambda x: growing(x, 0, scaled=False)), in_float64(lambda x: growing(x, 1, scaled=False))
i0e, i1e = in_float64(lambda x: growing(x, 0, scaled=True)), in_float64(lambda x: growing(x, 1, scaled=True))
modified_bessel_k0 = in_float64(lambda x: decayed(x, 0, scaled=False))
modified_bessel_k1 = in_float64(lambda x: decayed(x, 1, scaled=False))
scaled_modified_bessel_k0 = in_float64(lambda x: decayed(x, 0, scaled=True))
scaled_modified_bessel_k1 = in_float64(lambda x: decayed(x, 1, scaled=True))
