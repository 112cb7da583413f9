"""Complex arithmetic in terms of real and imaginary parts: a rule for each primitive with a complex input or result.

A rule gets the node and its inputs (`Parts` if complex) and returns `Parts` or, for a real result, a Value. Formulas and
branch cuts of elementary functions are those of Kahan, "Branch cuts for complex elementary functions", 1987; C and NumPy have
the same.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log as ln, nan, pi
from typing import NamedTuple

from genesis.ir.dtypes import bool_
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import reduced_shape
from genesis.ops.arithmetic import copysign, hypot
from genesis.ops.contraction import product
from genesis.ops.elementwise import (
    abs as modulus, asinh, atan2, cos, cosh, exp, expm1, isfinite, isinf, isnan, log, log1p, maximum, minimum, sin, sinh, sqrt,
    tan, where, zeros_like,
)
from genesis.ops.joining import cat
from genesis.ops.reduction import reduce_value
from genesis.ops.registry import cast
from genesis.ops.views import reshape_value, slice_value


class Parts(NamedTuple):
    """x + iy."""

    x: Value
    y: Value


Rule = Callable[..., Parts | Value]
RULES: dict[str, Rule] = {}

_FLAT = {"float32": 9.0, "float64": 19.0}  # above these tanh rounds to 1
_FAR = {"float32": 1e9, "float64": 1e18}  # where 1 is lost beside a number, as its inverse is beside 1


def _rule(name: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES[name] = rule
        return rule

    return register


def _each(*names: str) -> None:
    """Primitives that apply to each part as to a real number."""
    for name in names:
        def rule(node: Node, *inputs: Parts | Value) -> Parts:
            def of(part: int) -> Value:
                given = [z[part] if isinstance(z, Parts) else z for z in inputs]
                dtype = node.dtype.real
                return given[0].graph.add(node.op, given, node.shape, dtype, node.attrs)

            return Parts(of(0), of(1))

        RULES[name] = rule


_each("add", "sub", "neg", "where", "sum", "scatter", "cumsum", "put_sum")


# ---- parts ----
RULES["real"] = lambda node, z: z.x
RULES["imag"] = lambda node, z: z.y
RULES["complex"] = lambda node, x, y: Parts(x, y)
RULES["conj"] = lambda node, z: Parts(z.x, -z.y)
RULES["abs"] = lambda node, z: hypot(z.x, z.y)


@_rule("cast")
def _cast(node: Node, z: Parts | Value) -> Parts | Value:
    if isinstance(z, Value):
        part = cast(z, node.dtype.real)
        return Parts(part, zeros_like(part))
    if node.dtype.is_complex:
        return Parts(cast(z.x, node.dtype.real), cast(z.y, node.dtype.real))
    return (z.x != 0) | (z.y != 0) if node.dtype is bool_ else cast(z.x, node.dtype)


# ---- arithmetic ----
def times(z: Parts, w: Parts) -> Parts:
    return Parts(z.x * w.x - z.y * w.y, z.x * w.y + z.y * w.x)


def over(z: Parts, w: Parts) -> Parts:
    """Division scaled by the divisor's larger part, so that squares do not overflow (Smith, 1962)."""
    is_swapped = modulus(w.x) < modulus(w.y)
    large, small = where(is_swapped, w.y, w.x), where(is_swapped, w.x, w.y)
    none = large == 0
    ratio = where(none, 0, small / large)
    a, b = where(is_swapped, z.y, z.x), where(is_swapped, z.x, z.y)
    scale, less, more = large + small * ratio, where(none, 0, a * ratio), where(none, 0, b * ratio)
    return Parts((a + more) / scale, where(is_swapped, less - b, b - less) / scale)


RULES["mul"] = lambda node, z, w: times(z, w)
RULES["div"] = lambda node, z, w: over(z, w)
RULES["eq"] = lambda node, z, w: (z.x == w.x) & (z.y == w.y)
RULES["ne"] = lambda node, z, w: (z.x != w.x) | (z.y != w.y)
RULES["isnan"] = lambda node, z: isnan(z.x) | isnan(z.y)
RULES["isinf"] = lambda node, z: isinf(z.x) | isinf(z.y)
RULES["isfinite"] = lambda node, z: isfinite(z.x) & isfinite(z.y)


# ---- reductions and products of matrices ----
@_rule("prod")
def _prod(node: Node, z: Parts) -> Parts:
    """Multiplies the two halves of the axis until one number is left."""
    for axis in node.attrs["axes"]:
        if not z.x.shape[axis]:
            one = zeros_like(reshape_value(reduce_value("sum", z.x, (axis,)), reduced_shape(z.x.shape, (axis,), True)))
            z = Parts(one + 1, one)
        while (extent := z.x.shape[axis]) > 1:
            half = extent // 2
            joined = times(_slice(z, axis, 0, half), _slice(z, axis, half, 2 * half))
            rest = _slice(z, axis, 2 * half, extent)
            z = Parts(cat([joined.x, rest.x], axis), cat([joined.y, rest.y], axis)) if extent % 2 else joined
    return Parts(*[reshape_value(v, node.shape) for v in z])


def _slice(z: Parts, axis: int, start: int, end: int) -> Parts:
    return Parts(*[slice_value(v, axis, start, end) for v in z])


@_rule("matmul")
def _matmul(node: Node, z: Parts, w: Parts) -> Parts:
    only = node.attrs.get("only", "")
    return Parts(product(z.x, w.x, only) - product(z.y, w.y, only), product(z.x, w.y, only) + product(z.y, w.x, only))


# ---- elementary functions: their terms ----
def _scaled(z: Parts, factor: float) -> Parts:
    return Parts(z.x * factor, z.y * factor)


def _plus(number: float, z: Parts) -> Parts:
    return Parts(number + z.x, z.y)


def _turned(z: Parts) -> Parts:
    """iz."""
    return Parts(-z.y, z.x)


def _turned_back(z: Parts) -> Parts:
    """-iz."""
    return Parts(z.y, -z.x)


def _one(z: Parts) -> Parts:
    zero = zeros_like(z.x)
    return Parts(zero + 1, zero)


def _is_infinite(z: Parts) -> Value:
    return isinf(z.x) | isinf(z.y)


def _angle(z: Parts, certain: Value) -> Value:
    """y as an angle, of any size where the result is certain without it."""
    return where(certain & ~isfinite(z.y), copysign(0.0, z.y), z.y)


# ---- exponentials, logarithms, powers ----
def _exp(z: Parts) -> Parts:
    size, angle = exp(z.x), _angle(z, isinf(z.x))
    turn = where(z.x == inf, z.y, angle)
    return Parts(size * cos(angle), where(turn == 0, turn, size * sin(turn)))


def _expm1(z: Parts) -> Parts:
    half = sin(z.y * 0.5)
    return Parts(expm1(z.x) * cos(z.y) - 2 * half * half, exp(z.x) * sin(z.y))


def _log(z: Parts) -> Parts:
    """Uses log1p near the unit circle, where the logarithm of the modulus cancels."""
    a, b = modulus(z.x), modulus(z.y)
    large, small = maximum(a, b), minimum(a, b)
    near = log1p((large - 1) * (large + 1) + small * small) * 0.5
    return Parts(where((large > 0.5) & (large < 2), near, log(hypot(z.x, z.y))), atan2(z.y, z.x))


def _log1p(z: Parts) -> Parts:
    up = _log(_plus(1, z))
    near = log1p(z.x * (2 + z.x) + z.y * z.y) * 0.5
    return Parts(where(hypot(z.x, z.y) < 0.5, near, up.x), up.y)


def _sqrt(z: Parts) -> Parts:
    root = sqrt((modulus(z.x) + hypot(z.x, z.y)) * 0.5)
    own = (root == 0) | isinf(z.y)
    other = where(own, z.y, z.y / where(own, 1, root) * 0.5)
    return Parts(where(z.x >= 0, root, modulus(other)), where(z.x >= 0, other, copysign(root, z.y)))


def _pow(z: Parts, w: Parts) -> Parts:
    """e^(w log z). For z = 0: 1 if w = 0, otherwise 0, infinite or NaN by the sign of w's real part (+, -, 0)."""
    zero, none = (z.x == 0) & (z.y == 0), (w.x == 0) & (w.y == 0)
    found = _exp(times(w, _log(Parts(where(zero, 1, z.x), z.y))))
    nought = where(w.x > 0, 0, nan)
    x, y = where(zero, where(w.x < 0, inf, nought), found.x), where(zero, nought, found.y)
    return Parts(where(none, 1, x), where(none, 0, y))


def _logaddexp(z: Parts, w: Parts) -> Parts:
    less = z.x < w.x
    large, small = Parts(*map(where, (less, less), w, z)), Parts(*map(where, (less, less), z, w))
    more = _log1p(_exp(Parts(small.x - large.x, small.y - large.y)))
    return Parts(large.x + more.x, large.y + more.y)


def _sigmoid(z: Parts) -> Parts:
    return over(_one(z), _plus(1, _exp(Parts(-z.x, -z.y))))


# ---- trigonometry ----
def _sinh(z: Parts) -> Parts:
    return Parts(sinh(z.x) * cos(z.y), where(z.y == 0, z.y, cosh(z.x) * sin(z.y)))  # of a real number, real, even if infinite


def _cosh(z: Parts) -> Parts:
    return Parts(cosh(z.x) * cos(z.y), where(z.y == 0, copysign(1.0, z.x) * z.y, sinh(z.x) * sin(z.y)))


def _tanh(z: Parts) -> Parts:
    angle = _angle(z, isinf(z.x))
    t, s = tan(angle), sinh(z.x)
    slope = 1 + t * t
    below = 1 + slope * s * s
    flat = modulus(z.x) > _FLAT[z.x.dtype.name]
    y = where(flat, 4 * sin(angle) * cos(angle) * exp(-2 * modulus(z.x)), t / below)
    return Parts(where(flat, copysign(1.0, z.x), slope * sqrt(1 + s * s) * s / below), y)


def _asin(z: Parts) -> Parts:
    down, up, infinite = _sqrt(_plus(1, Parts(-z.x, -z.y))), _sqrt(_plus(1, z)), _is_infinite(z)
    return Parts(atan2(z.x, where(infinite, modulus(z.y), down.x * up.x - down.y * up.y)),
                 where(infinite, copysign(inf, z.y), asinh(down.x * up.y - down.y * up.x)))


def _acos(z: Parts) -> Parts:
    down, up, infinite = _sqrt(_plus(1, Parts(-z.x, -z.y))), _sqrt(_plus(1, z)), _is_infinite(z)
    return Parts(where(infinite, atan2(modulus(z.y), z.x), 2 * atan2(down.x, up.x)),
                 where(infinite, copysign(inf, -z.y), asinh(up.x * down.y - up.y * down.x)))


def _acosh(z: Parts) -> Parts:
    down, up, infinite = _sqrt(_plus(-1, z)), _sqrt(_plus(1, z)), _is_infinite(z)
    return Parts(where(infinite, inf, asinh(down.x * up.x + down.y * up.y)),
                 where(infinite, atan2(z.y, z.x), 2 * atan2(down.y, up.x)))


def _atanh(z: Parts) -> Parts:
    """By the distance to the nearer of 1 and -1: close to it, that is all that counts; far away, it is |z|."""
    size, limit = modulus(z.x), _FAR[z.x.dtype.name]
    distance = hypot(size - 1, z.y)
    far, near = distance > limit, distance < 1 / limit
    apart = (1 - size) * (1 - size) + z.y * z.y
    log_part = log1p(where(near, 2 / distance, 4 * size / apart)) * where(near, 0.5, 0.25)
    far_part = where(isinf(distance), 0, size / distance / distance)
    angle = atan2(2 * z.y, (1 - z.x) * (1 + z.x) - z.y * z.y) * 0.5
    return Parts(copysign(where(far, far_part, log_part), z.x), where(far & ~isnan(z.y), copysign(pi / 2, z.y), angle))


def _register() -> None:
    functions = {
        "exp": _exp, "expm1": _expm1, "log": _log, "log1p": _log1p, "sqrt": _sqrt, "sigmoid": _sigmoid,
        "sinh": _sinh, "cosh": _cosh, "tanh": _tanh, "asin": _asin, "acos": _acos, "acosh": _acosh, "atanh": _atanh,
        "sin": lambda z: _turned_back(_sinh(_turned(z))), "cos": lambda z: _cosh(_turned(z)),
        "exp2": lambda z: _exp(_scaled(z, ln(2))), "log2": lambda z: _scaled(_log(z), 1 / ln(2)),
        "log10": lambda z: _scaled(_log(z), 1 / ln(10)), "rsqrt": lambda z: over(_one(z), _sqrt(z)),
        "tan": lambda z: _turned_back(_tanh(_turned(z))), "asinh": lambda z: _turned_back(_asin(_turned(z))),
        "atan": lambda z: _turned_back(_atanh(_turned(z))),
    }
    for name, function in functions.items():
        RULES[name] = lambda node, z, function=function: function(z)
    RULES["logaddexp"] = lambda node, z, w: _logaddexp(z, w)
    RULES["pow"] = lambda node, z, w: _pow(z, w)


_register()
