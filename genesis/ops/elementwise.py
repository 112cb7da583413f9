"""Elementwise operations, a row each: name, gradient, reference.

`g` is the cotangent, `y` the result, `x` (and so on) the inputs. Gradients follow PyTorch's at kinks and ties.
"""

from __future__ import annotations

from functools import partial
from math import log as ln, pi

import numpy as np

from genesis.ir.dtypes import bool_, dtype_of_scalar
from genesis.ir.graph import Value
from genesis.ir.symbolic_sizes import Size
from genesis.ops.complex_primitives import complex_value, imag_value, real_value
from genesis.ops.conversion import stop_gradient
from genesis.ops.registry import (
    OPERATIONS, Operation, as_values, broadcast, cast, composite, expand, primitive, promoted, widened,
)
from genesis.ops.rows import binary, compare, formula, from_scipy, integral, logical, unary

_AS_INT = "convert one with .to(genesis.int64)"


# ---- selection ----
def _where_grad(g: Value, y: Value, condition: Value, a: Value, b: Value) -> tuple[Value | None, ...]:
    zero = expand(g.graph.constant(0.0, g.dtype), g.shape)
    return None, where(condition, g, zero), where(condition, zero, g)


primitive("where", "elementwise", exact=True, grad=_where_grad, reference=lambda node, c, a, b: np.where(c, a, b))


@composite("where", 3, ref=np.where, method=False, public=False, takes_complex=True, elements=("input", "other"))
def where(condition: Value, input: Value, other: Value) -> Value:
    """`input` where `condition` holds, `other` elsewhere.

    The three broadcast; `input` and `other`, tensors or numbers, are promoted to one dtype. Raises ValueError for shapes that
    do not broadcast.

    >>> x = genesis.tensor([-1.0, 2.0])
    >>> genesis.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    c, a, b = as_values(condition, input, other)
    c, a, b = broadcast("where", cast(c, bool_), *promoted(a, b))
    return c.graph.add("where", (c, a, b), a.shape, a.dtype)


# ---- arithmetic ----
_add = binary("add", grad=lambda g, z, x, y: (g, g), ref=np.add)
_sub = binary("sub", grad=lambda g, z, x, y: (g, -g), ref=np.subtract, bools="use logical_xor, a ^ b")
mul = binary("mul", operator="mul", grad=lambda g, z, x, y: (g * y, g * x), ref=np.multiply, aliases=("multiply",),
             takes_complex=True, whole_numbers=True)
div = binary(
    "div", operator="truediv", grad=lambda g, z, x, y: (g / y, -g * (x / y) / y), ref=np.true_divide, floating=True, cost=4,
    takes_complex=True, whole_numbers=True,
)
floor_divide = binary("floor_divide", operator="floordiv", ref=np.floor_divide, cost=8, bools=_AS_INT, divides=True,
                      whole_numbers=True)
remainder = binary(
    "remainder", operator="mod", grad=lambda g, z, x, y: _modulo_grad(g, floor(x / y)), ref=np.remainder, cost=8,
    bools=_AS_INT, divides=True,
)
fmod = binary("fmod", grad=lambda g, z, x, y: _modulo_grad(g, trunc(x / y)), ref=np.fmod, cost=8, bools=_AS_INT, divides=True)
maximum = binary("maximum", exact=True, grad=lambda g, z, x, y: _share(g, x, y, x < y, x > y), ref=np.maximum, in_place=False,
                 elements=("input", "other"))
minimum = binary("minimum", exact=True, grad=lambda g, z, x, y: _share(g, x, y, x > y, x < y), ref=np.minimum, in_place=False,
                 elements=("input", "other"))
atan2 = binary(
    "atan2", grad=lambda g, z, y, x: _atan2_grad(g, y, x), ref=np.arctan2, floating=True, cost=20,
    vector="inverse_trigonometric", autocast="widest", aliases=("arctan2",),
)
add = formula(
    "add", lambda input, other, alpha=1: combined(_add, input, other, alpha), "`input + alpha * other`.", 3,
    operator="add", ref=np.add, in_place=True, takes_complex=True, elements=("alpha",), numbers_between=("alpha",),
)
sub = formula(
    "sub", lambda input, other, alpha=1: combined(_sub, input, other, alpha), "`input - alpha * other`.", 3,
    operator="sub", ref=np.subtract, aliases=("subtract",), in_place=True, takes_complex=True, elements=("alpha",),
    numbers_between=("alpha",),
)
neg = unary(
    "neg", exact=True, operator="neg", grad=lambda g, y, x: -g, ref=np.negative, floating=False, bools="use logical_not, ~a",
    aliases=("negative",), takes_complex=True,
)
abs: Operation = unary(
    "abs", exact=True, operator="abs", grad=lambda g, y, x: g * _direction(x), ref=np.abs, floating=False,
    aliases=("absolute",), takes_complex=True,
)
sign: Operation = unary(
    "sign", exact=True, grad=lambda g, y, x: zeros_like(g), floating=False, doc="-1, 0 or 1; 0 of NaN.",
    ref=lambda x: x if x.dtype == bool else np.where(x == x, np.sign(x), x.dtype.type(0)),
)


def _direction(x: Value) -> Value:
    return sgn(x)  # type: ignore[has-type]


@composite("sgn", in_place=True, takes_complex=True)
def sgn(input: Value) -> Value:
    """`sign`, also for complex numbers: modulus 1 and the same angle, and 0 for 0."""
    if not input.dtype.is_complex:
        return sign(input)
    size = abs(input)
    some = where(size == 0, 1, size)
    return where(size == 0, 0, complex_value(real_value(input) / some, imag_value(input) / some))


def scaled(x: Value | float, y: Value | float, alpha: Value | float) -> Value | float:
    """`alpha * y`, in the dtype to which it promotes with `x`."""
    return promoted(x, y)[1] * alpha if isinstance(alpha, Value) or alpha != 1 else y


def combined(operation: Operation, x: Value | float, y: Value | float, alpha: Value | float) -> Value:
    """`operation` of `x` and `alpha * y`, rounded once."""
    if not isinstance(alpha, (Value, bool, np.bool_)) and alpha == 1:
        return operation(x, y)  # type: ignore[no-any-return]
    kind = alpha.dtype if isinstance(alpha, Value) else dtype_of_scalar(alpha)
    a, b = promoted(x, y)
    if kind is bool_ is not a.dtype:
        raise TypeError(f"{operation.name}: Boolean alpha only supported for Boolean results, this one is {a.dtype.name}")
    if a.dtype is bool_:
        operation(x, y)  # refuses what it does not take
    if max(a.dtype.category, 1) < kind.category:
        wanted = "an integer" if a.dtype.category < 2 else "a real number"
        raise TypeError(f"{operation.name}: alpha is a {kind.name}, the result {a.dtype.name}; want {wanted}")
    return cast(operation(widened(a), scaled(widened(a), widened(b), alpha)), a.dtype)


def _share(g: Value, x: Value, y: Value, *losses: Value) -> tuple[Value, ...]:
    """The cotangents of maximum and minimum: all to the winner, halves on a tie, and all to both if one is NaN."""
    share = where(x == y, g * 0.5, g)
    return tuple([where(loses, 0, share) for loses in losses])


def _modulo_grad(g: Value, quotient: Value) -> tuple[Value | None, ...]:
    """The cotangents of x - y * quotient, where the quotient is a step function."""
    return g, -g * stop_gradient(quotient)


def _atan2_grad(g: Value, y: Value, x: Value) -> tuple[Value | None, ...]:
    """x/r^2 and -y/r^2; 0 at the origin."""
    square = x * x + y * y
    scaled = g * where(square == 0, 0, 1 / square)
    return scaled * x, -scaled * y


def zeros_like(x: Value) -> Value:
    return expand(x.graph.constant(0, x.dtype), x.shape)


# ---- powers ----
def _pow_grad(g: Value, y: Value, x: Value, p: Value) -> tuple[Value | None, ...]:
    to_base = where(p == 0, 0, g * p * pow(x, p - 1))
    to_exponent = g * where((x == 0) & (real_value(p) >= 0), 0, y * log(x))
    return to_base, to_exponent


def _power_reference(x: np.ndarray, p: np.ndarray) -> np.ndarray | np.generic:
    """Negative powers of integers are 0, except those of 1 and -1."""
    if np.result_type(x, p).kind not in "iu":
        return np.power(x, p)
    below = np.asarray(p) < 0
    whole = np.power(x, np.where(below, np.abs(p) % 2, p))  # type: ignore[call-overload]
    return np.where(below & (np.abs(x) != 1), 0, whole)


_pow = binary("pow", grad=_pow_grad, ref=_power_reference, cost=30, vector="logarithm", bools=_AS_INT)


@composite("pow", 2, operator="pow", ref=np.power, static_scalars=True, autocast="float32", in_place=True, takes_complex=True,
           elements=("exponent",))
def pow(input: Value, exponent: Value) -> Value:
    """`input ** exponent`; a literal exponent of 2, 3, 0.5 or -1 becomes a product, a root or a quotient."""
    literal = isinstance(exponent, Value) and exponent.is_scalar and exponent.node.op == "constant"
    power = exponent.node.attrs["value"] if literal else exponent
    if isinstance(input, Value) and isinstance(power, int | float | Size) and not isinstance(power, bool):
        is_whole = isinstance(power, int | Size)
        if input.dtype.category == 1 and is_whole and power < 0:
            raise ValueError(f"pow: integers to negative integer powers ({power}) are not allowed")
        if power == 1 and is_whole:
            return input
        if input.dtype.category >= 2 or (input.dtype.category == 1 and is_whole):
            if power == 2:
                return input * input
            if power == 3:
                return input * input * input
        if input.dtype.category >= 2 and power in (0.5, -1):
            return sqrt(input) if power == 0.5 else 1 / input
    return _pow(input, exponent)


analytic = partial(unary, takes_complex=True)  # rows of functions that complex numbers have, too
sqrt = analytic("sqrt", grad=lambda g, y, x: g * 0.5 / y, ref=np.sqrt, cost=5)
rsqrt = analytic("rsqrt", grad=lambda g, y, x: g * -0.5 * y * y * y, ref=lambda x: 1 / np.sqrt(x), cost=8,
                 vector="error_function", cuda="{t}(1) / math.sqrt({0})", doc="1 / sqrt(x).", autocast="float32")
square = formula("square", lambda input: pow(input, 2), "x * x.", ref=np.square, autocast="float32", in_place=True,
                 takes_complex=True)
reciprocal = formula("reciprocal", lambda input: 1 / input, "1 / x.", ref=np.reciprocal, autocast="float32", in_place=True,
                     takes_complex=True)

# ---- exponentials and logarithms ----
exp = analytic("exp", grad=lambda g, y, x: g * y, ref=np.exp, cost=10, vector="exponential", autocast="float32")
exp2 = analytic("exp2", grad=lambda g, y, x: g * y * ln(2), ref=np.exp2, cost=10, vector="exponential",
                cuda="libdevice.exp2{f}({0})", namespace="special")
expm1 = analytic("expm1", grad=lambda g, y, x: g * (y + 1), ref=np.expm1, cost=14, vector="exponential", autocast="float32",
                 namespace="special")
log = analytic("log", grad=lambda g, y, x: g / x, ref=np.log, cost=12, vector="logarithm", autocast="float32")
log2 = analytic("log2", grad=lambda g, y, x: g / (x * ln(2)), ref=np.log2, cost=12, vector="logarithm", autocast="float32")
log10 = analytic("log10", grad=lambda g, y, x: g / (x * ln(10)), ref=np.log10, cost=12, vector="logarithm", autocast="float32")
log1p = analytic("log1p", grad=lambda g, y, x: g / (x + 1), ref=np.log1p, cost=14, vector="logarithm", autocast="float32",
                 namespace="special")

# ---- trigonometry ----
sin = analytic("sin", grad=lambda g, y, x: g * cos(x), ref=np.sin, cost=16, vector="trigonometric")
cos: Operation = analytic("cos", grad=lambda g, y, x: -g * sin(x), ref=np.cos, cost=16, vector="trigonometric")
tan = analytic("tan", grad=lambda g, y, x: g * (1 + y * y), ref=np.tan, cost=20, vector="trigonometric", autocast="float32")
asin = analytic("asin", grad=lambda g, y, x: g * rsqrt(1 - x * x), ref=np.arcsin, cost=16, vector="inverse_trigonometric",
                autocast="float32", aliases=("arcsin",))
acos = analytic("acos", grad=lambda g, y, x: -g * rsqrt(1 - x * x), ref=np.arccos, cost=16, vector="inverse_trigonometric",
                autocast="float32", aliases=("arccos",))
atan = analytic("atan", grad=lambda g, y, x: g / (1 + x * x), ref=np.arctan, cost=16, vector="inverse_trigonometric",
                aliases=("arctan",))
sinh = analytic("sinh", grad=lambda g, y, x: g * cosh(x), ref=np.sinh, cost=16, vector="exponential", autocast="float32")
cosh: Operation = analytic("cosh", grad=lambda g, y, x: g * sinh(x), ref=np.cosh, cost=16, vector="exponential",
                           autocast="float32")
tanh = analytic("tanh", grad=lambda g, y, x: g * (1 - y * y), ref=np.tanh, cost=14, vector="exponential",
                namespace="nn.functional")
asinh = analytic("asinh", grad=lambda g, y, x: g * rsqrt(x * x + 1), ref=np.arcsinh, cost=20, vector="logarithm",
                 aliases=("arcsinh",))
acosh = analytic("acosh", grad=lambda g, y, x: g * rsqrt(x * x - 1), ref=np.arccosh, cost=20, vector="logarithm",
                 aliases=("arccosh",))
atanh = analytic("atanh", grad=lambda g, y, x: g / (1 - x * x), ref=np.arctanh, cost=20, vector="logarithm",
                 aliases=("arctanh",))

# ---- error function, sigmoid, relu ----
erf = unary(
    "erf", grad=lambda g, y, x: g * exp(-x * x) * (2 / pi**0.5), ref=from_scipy("erf"), cost=20, vector="error_function",
    doc="2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.", namespace="special",
)
erfc = unary(
    "erfc", grad=lambda g, y, x: -g * exp(-x * x) * (2 / pi**0.5), ref=from_scipy("erfc"), cost=24, vector="error_function",
    doc="1 - erf(x), without cancellation.", namespace="special",
)
sigmoid = unary(
    "sigmoid", grad=lambda g, y, x: g * y * (1 - y), cost=12, vector="exponential",
    ref=lambda x: 1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else from_scipy("expit")(x),
    cuda="{t}(1) / ({t}(1) + math.exp(-{0}))", doc="1 / (1 + exp(-x)).",
    namespace="nn.functional", aliases=("special.expit",), takes_complex=True,
)
log1pexp = unary(
    "log1pexp", grad=lambda g, y, x: g * sigmoid(x), cost=16, vector="logarithm",
    ref=lambda x: np.logaddexp(x.dtype.type(0), x),
    cuda="max({0}, {t}(0)) + math.log1p(math.exp(-abs({0})))", doc="log(1 + exp(x)), without overflow.", method=False,
    public=False, autocast="float32",
)
relu = unary(
    "relu", exact=True, grad=lambda g, y, x: where(y <= 0, 0, g), ref=lambda x: np.maximum(x, 0), floating=False,
    emit=lambda k, x: k.maximum(x, k.constant(0)), doc="x where positive, else 0; NaN of NaN.", namespace="nn.functional",
)

# ---- rounding ----
rounding = partial(unary, exact=True, grad=lambda g, y, x: zeros_like(g), floating=False)
floor: Operation = rounding("floor", ref=np.floor)
ceil = rounding("ceil", ref=np.ceil)
trunc: Operation = rounding("trunc", ref=np.trunc, aliases=("fix",))
round = rounding("round", ref=np.rint)

# ---- comparisons and predicates ----
eq = compare("eq", np.equal, takes_complex=True)
ne = compare("ne", np.not_equal, aliases=("not_equal",), takes_complex=True)
lt = compare("lt", np.less, aliases=("less",))
le = compare("le", np.less_equal, aliases=("less_equal",))
gt = compare("gt", np.greater, aliases=("greater",))
ge = compare("ge", np.greater_equal, aliases=("greater_equal",))
isnan = unary("isnan", ref=np.isnan, result=bool_, takes_complex=True)
isinf = unary("isinf", ref=np.isinf, result=bool_, takes_complex=True)
isfinite = unary("isfinite", ref=np.isfinite, result=bool_, takes_complex=True)

# ---- truth values and bits ----
logical_and = logical("logical_and", np.logical_and, emit=lambda k, x, y: k.bitwise_and(x, y), takes_complex=True)
logical_or = logical("logical_or", np.logical_or, emit=lambda k, x, y: k.bitwise_or(x, y), takes_complex=True)
logical_xor = logical("logical_xor", np.logical_xor, emit=lambda k, x, y: k.bitwise_xor(x, y), takes_complex=True)
bitwise_and = integral("bitwise_and", np.bitwise_and, operator="and")
bitwise_or = integral("bitwise_or", np.bitwise_or, operator="or")
bitwise_xor = integral("bitwise_xor", np.bitwise_xor, operator="xor")
bitwise_left_shift = integral("bitwise_left_shift", np.left_shift, operator="lshift", bools=_AS_INT)
bitwise_right_shift = integral("bitwise_right_shift", np.right_shift, operator="rshift", bools=_AS_INT)
primitive("bitwise_not", "elementwise", reference=lambda node, x: np.invert(x))


@composite("bitwise_not", ref=np.invert, operator="invert", in_place=True)
def bitwise_not(input: Value) -> Value:
    (x,) = as_values(input)
    if x.dtype.is_floating_point:
        raise TypeError(f"bitwise_not: wants an integer or bool tensor, got {x.dtype.name}")
    return x.graph.add("bitwise_not", (x,), x.shape, x.dtype)


logical_not = formula("logical_not", lambda input: bitwise_not(cast(input, bool_)), ref=np.logical_not, in_place=True,
                      takes_complex=True)


# ---- clamping ----
@composite("clamp", 3, ref=np.clip, aliases=("clip",), in_place=True, elements=("min", "max"))
def clamp(input: Value, min: Value | None = None, max: Value | None = None) -> Value:
    """`input` clamped to [min, max]; the gradient passes inside, bounds included.

    The bounds are numbers, or tensors that broadcast with `input`; a NaN bound gives NaN. Raises ValueError if neither
    is given.

    >>> genesis.clamp(genesis.tensor([-2.0, 0.5, 3.0]), min=-1, max=1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise ValueError("clamp: at least one of min and max must be given")
    input, *_ = promoted(input, *[bound for bound in (min, max) if bound is not None])  # at once: a bound of 1.5 makes floats
    if min is not None:
        input = _bounded(input, min, lower=True)
    return input if max is None else _bounded(input, max, lower=False)


def _bounded(input: Value, bound: Value, lower: bool) -> Value:
    known = bound.node.attrs.get("value") if isinstance(bound, Value) else bound
    x, b = promoted(input, bound)
    x, b = broadcast("clamp", x, b)
    beyond = x < b if lower else x > b
    if b.dtype.category > 1 and (known is None or known != known):
        beyond = beyond | (b != b)  # a NaN bound wins
    return where(beyond, b, x)


# ---- operators on Values ----
def _install_operators() -> None:
    for row in [row for row in OPERATIONS.values() if row.operator]:
        if len(row.operands) == 1:
            setattr(Value, f"__{row.operator}__", lambda a, op=row: op(a))
            continue
        setattr(Value, f"__{row.operator}__", lambda a, b, op=row: op(a, b))
        if row.name not in ("eq", "ne", "lt", "le", "gt", "ge"):
            setattr(Value, f"__r{row.operator}__", lambda a, b, op=row: op(b, a))
    Value.__hash__ = object.__hash__  # type: ignore[method-assign]


_install_operators()
