"""The Bessel functions J and Y of the orders 0 and 1.

Up to 8 a polynomial, J's divided by its zeros there, as in S. Moshier's Cephes (1989), and Y's logarithm taken off (M.
Abramowitz, I. Stegun, "Handbook of Mathematical Functions" (1964), 9.1.13 and 9.1.11). Beyond, sqrt(2 / (pi x)) (P cos(h) - Q
sin(h)) for J and the same with sin and -cos for Y, h = x - (2n + 1) pi / 4 (9.2.5 and 9.2.6). The polynomials are fits of this
project at Chebyshev's points (60 digits). Near the zeros beyond 8, and all of Y's, the error is bounded absolutely.
"""

from __future__ import annotations

from math import pi

from genesis.codegen.cpu.vector_math.logarithm import log
from genesis.codegen.cpu.vector_math.number import (
    INFINITY, NAN, Number, copy_sign, fma, in_float64, polynomial, square_root, where,
)
from genesis.codegen.cpu.vector_math.trigonometric import cos, sin

# The first two zeros of J0 and J1 in two words each.
ZEROS = (
    ((2.404825557695773, -1.176691651530894e-16), (5.520078110286311, 8.088597146146722e-17)),
    ((3.8317059702075125, -1.5269184090088067e-16), (7.015586669815619, -9.414165653410389e-17)),
)
# J0(x) / ((x^2 - r^2) (x^2 - s^2)) and J1(x) / (x (x^2 - r^2) (x^2 - s^2)) in t = x^2 / 32 - 1, r and s the first zeros,
# for |x| <= 8: errors 2^-49.9 and 2^-49.8.
J0_NEAR = (
    0.0011434937743762545, -0.002119794289479692, 0.0015636431645931661, -0.0006415390646406127, 0.00016977200713997844,
    -3.157342540223125e-05, 4.366932324640495e-06, -4.677128021500441e-07, 3.9988393455463595e-08, -2.7948629190183006e-09,
    1.627648933419121e-10, -8.023536504698471e-12, 3.3923485209602274e-13, -1.2440365199268069e-14, 3.995431878450121e-16,
    -1.1360491593488979e-17, 2.865730728890263e-19,
)  # fmt: skip
J1_NEAR = (
    0.00019498936985895625, -0.0002697522746716368, 0.00015860016799369874, -5.408003239085507e-05, 1.224217365301561e-05,
    -1.98909351591414e-06, 2.442522260751993e-07, -2.3521922546334384e-08, 1.8268547695516134e-09, -1.1696932385905797e-10,
    6.284733786371772e-12, -2.8755486561821196e-13, 1.1343174530679343e-14, -3.898564467101555e-16, 1.1781240746709251e-17,
    -3.1622441364751904e-19, 7.555970132543037e-21,
)  # fmt: skip
# Y0(x) = 2 / pi (log(x) J0(x) + p(t)) and Y1(x) = 2 / pi (log(x) J1(x) - 1 / x + x p(t)), for
# 0 < x <= 8: errors 2^-53.1 and 2^-55.0.
Y0_NEAR = (
    -0.6004379239398101, -1.3013040535632683, 2.587253098892946, 0.22639309985145503, -1.6926080222331334,
    1.0558532856171805, -0.34393759111096456, 0.07283318818218384, -0.011036008245771537, 0.0012663109772053892,
    -0.00011434677650227678, 8.35870776357636e-06, -5.055620211950602e-07, 2.574702511563471e-08, -1.1200589807620366e-09,
    4.212596363492414e-11, -1.3839546559432691e-12, 4.018158893081471e-14, -1.0326455446592304e-15,
)  # fmt: skip
Y1_NEAR = (
    0.11114932632083509, -0.3822963743127446, 0.03670569582545302, 0.36925037875036026, -0.3085018831081871,
    0.1233827044521516, -0.030832779132982806, 0.005376035882754077, -0.000697146652955713, 7.017427366467185e-05,
    -5.656437375468619e-06, 3.7392697264130335e-07, -2.0661190702984198e-08, 9.691323294957312e-10, -3.909323712410308e-11,
    1.376017723874966e-12, -4.2328147511859656e-14,
)  # fmt: skip
# P and x Q of Hankel's expansions in t = 128 / x^2 - 1, for x >= 8: errors 2^-56.1 and 2^-55.4 and 2^-53.1 and 2^-54.0.
P0 = (
    0.9994572757882519, -0.0005363673192130033, 6.137416080111143e-06, -2.052744816021978e-07, 1.2803761421389911e-08,
    -1.2121178913027262e-09, 1.5500573849457377e-10, -2.4883792349430343e-11, 4.786833648457065e-12, -1.061860361827791e-12,
    2.454626647456918e-13, -6.563491590174781e-14, 3.334599531685773e-14, -1.1346926815291663e-14,
)  # fmt: skip
P1 = (
    1.0009070262780821, 0.0008988049416705564, -7.95969469844003e-06, 2.453676622679369e-07, -1.4708512970871809e-08,
    1.3603054724512454e-09, -1.713108363257052e-10, 2.7205216071451606e-11, -5.190987549128526e-12, 1.1443000350441976e-12,
    -2.635099411586755e-13, 7.019004954768849e-14, -3.5404613525657416e-14, 1.2012721775449965e-14,
)  # fmt: skip
Q0 = (
    -0.12444091103610816, 0.0005466519279475136, -1.1817110660731776e-05, 5.684971885449538e-07, -4.534973594868882e-08,
    5.146228618919075e-09, -7.575872758461843e-10, 1.362452803693964e-10, -2.88387465828897e-11, 6.934511868227323e-12,
    -1.6798068504524111e-12, 4.743918565467509e-13, -2.729058891731019e-13, 9.756113507128432e-14,
)  # fmt: skip
Q1 = (
    0.3742149922195918, -0.0007697167057643569, 1.456961480935691e-05, -6.633568564937367e-07, 5.1361067953963376e-08,
    -5.720887751116045e-09, 8.315594957016384e-10, -1.481767246888408e-10, 3.114226481045957e-11, -7.446940085047187e-12,
    1.798464167692092e-12, -5.061753256584603e-13, 2.8910711721761855e-13, -1.0308138671963011e-13,
)  # fmt: skip
TWO_OVER_PI = 2 / pi


def j_near(order: int, x: Number) -> Number:
    """J(x) for 0 <= x <= 8."""
    value = polynomial(fma(x, x * (1 / 32), -1.0), J1_NEAR if order else J0_NEAR)
    for high, low in ZEROS[order]:
        value = value * ((x - high) - low) * (x + high)
    return value * x if order else value


def y_near(order: int, x: Number) -> Number:
    """Y(x) for 0 < x <= 8."""
    t = fma(x, x * (1 / 32), -1.0)
    rest = polynomial(t, Y0_NEAR) if order == 0 else fma(x, polynomial(t, Y1_NEAR), -1.0 / x)
    return fma(log(x), j_near(order, x), rest) * TWO_OVER_PI


def hankel(order: int, x: Number, of_y: bool) -> Number:
    """J(x) or Y(x) for x >= 8."""
    inverse = 1.0 / x
    t = fma(inverse * 128.0, inverse, -1.0)
    p, q = polynomial(t, P1 if order else P0), polynomial(t, Q1 if order else Q0) * inverse
    total, difference = sin(x) + cos(x), sin(x) - cos(x)  # sqrt(2) times the cosine and sine of x - pi / 4
    cosine, sine = (difference, -total) if order else (total, difference)
    value = fma(p, sine, q * cosine) if of_y else fma(p, cosine, -q * sine)
    return value / (square_root(x) * pi**0.5)


def oscillating(order: int, x: Number, near: Number, of_y: bool) -> Number:
    """`near` up to 8, Hankel's expansion beyond, 0 at infinity."""
    endless = x.equals(INFINITY)
    far = hankel(order, where((x > 8.0) & ~endless, x, 8.0), of_y)
    return where(x.is_nan(), x, where(x <= 8.0, near, where(endless, 0.0, far)))


def bounded(x: Number) -> Number:
    return where(x > 8.0, 8.0, x)


def regular(x: Number, order: int) -> Number:
    """J(x), within 4 ulp below 8, beyond of the amplitude."""
    size = abs(x)
    value = oscillating(order, size, j_near(order, bounded(size)), of_y=False)
    return value * copy_sign(1.0, x) if order else value


def with_pole(x: Number, order: int) -> Number:
    """Y(x), -infinity at 0 and NaN below: within 16 ulp of the amplitude, that of log(x) J(x) below 8."""
    inside = where(x > 0.0, x, 1.0)
    value = oscillating(order, where(x.is_nan(), x, inside), y_near(order, bounded(inside)), of_y=True)
    return where(x < 0.0, NAN, where(x.equals(0.0), -INFINITY, value))


bessel_j0, bessel_j1 = in_float64(lambda x: regular(x, 0)), in_float64(lambda x: regular(x, 1))
bessel_y0, bessel_y1 = in_float64(lambda x: with_pole(x, 0)), in_float64(lambda x: with_pole(x, 1))
