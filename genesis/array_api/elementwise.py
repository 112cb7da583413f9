"""Functions of each element. Operands of two dtypes promote as arrays, whatever their number of axes."""

from __future__ import annotations

import builtins
from collections.abc import Callable

from genesis import ops
from genesis.array_api.dtypes import common, iinfo
from genesis.functions.creation import full as _full
from genesis.functions.from_data import scalar_tensor
from genesis.ir.dtypes import int64
from genesis.tensor.handle import Tensor

Scalar = builtins.bool | int | float | complex
Operand = Tensor | Scalar
Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Operand, Operand], Tensor]


def unary(name: str, row: str = "", whole: builtins.bool = False, home: object = ops, module: str = __name__) -> Unary:
    """A module's function of a row, or of another `home`; one of `whole` numbers leaves integers as they are."""
    made: Unary = getattr(home, row or name)

    def function(x: Tensor, /) -> Tensor:
        return x.clone() if whole and x.dtype.category < 2 else made(x)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, made.__doc__
    return function


def together(x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Both as tensors of their common dtype; a number has that of the other, where it is of its kind."""
    if not isinstance(x1, Tensor) and isinstance(x2, Tensor):
        second, first = together(x2, x1)
        return first, second
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        if x1.dtype is x2.dtype:
            return x1, x2
        dtype = common(x1.dtype, x2.dtype)
        return x1.to(dtype), x2.to(dtype)
    if not isinstance(x1, Tensor):
        raise TypeError(f"array_api: wants an array among the operands, got {type(x1).__name__} and {type(x2).__name__}")
    if isinstance(x2, complex) and not x1.dtype.is_complex:
        return x1.to(x1.dtype.complex), _full((), x2, dtype=x1.dtype.complex, device=x1.device)  # type: ignore[arg-type]
    if isinstance(x2, float) and x1.dtype.category < 2:
        return x1, scalar_tensor(x2).to(x1.device)
    dtype = x1.dtype if x1.dtype.category or isinstance(x2, builtins.bool) else int64
    return x1, _full((), x2, dtype=dtype, device=x1.device)  # type: ignore[arg-type]


def _binary(name: str, row: str = "") -> Binary:
    made: Callable[[Tensor, Tensor], Tensor] = getattr(ops, row or name)

    def function(x1: Operand, x2: Operand, /) -> Tensor:
        return made(*together(x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = made.__doc__
    return function


# ---- of one array ----
abs, acos, acosh, asin, asinh, atan, atanh = map(unary, ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh"))
bitwise_invert, logical_not = unary("bitwise_invert", "bitwise_not"), unary("logical_not")
ceil, floor, trunc = (unary(name, whole=True) for name in ("ceil", "floor", "trunc"))
_rounded = unary("round", whole=True)
cos, cosh, exp, expm1 = map(unary, ("cos", "cosh", "exp", "expm1"))
isfinite, isinf, isnan = map(unary, ("isfinite", "isinf", "isnan"))
log, log1p, log2, log10 = map(unary, ("log", "log1p", "log2", "log10"))
negative, positive, reciprocal = unary("negative", "neg"), unary("positive"), unary("reciprocal")
signbit, sin, sinh, square, sqrt, tan, tanh = map(unary, ("signbit", "sin", "sinh", "square", "sqrt", "tan", "tanh"))

# ---- of two ----
add, subtract, multiply = _binary("add"), _binary("subtract", "sub"), _binary("multiply", "mul")
divide = _binary("divide", "div")
floor_divide, pow = _binary("floor_divide"), _binary("pow")
atan2, copysign, hypot, logaddexp, nextafter = map(_binary, ("atan2", "copysign", "hypot", "logaddexp", "nextafter"))
bitwise_and, bitwise_or, bitwise_xor = map(_binary, ("bitwise_and", "bitwise_or", "bitwise_xor"))
bitwise_left_shift, bitwise_right_shift = map(_binary, ("bitwise_left_shift", "bitwise_right_shift"))
equal, not_equal, less = _binary("equal", "eq"), _binary("not_equal", "ne"), _binary("less", "lt")
less_equal, greater, greater_equal = _binary("less_equal", "le"), _binary("greater", "gt"), _binary("greater_equal", "ge")
logical_and, logical_or, logical_xor = map(_binary, ("logical_and", "logical_or", "logical_xor"))
maximum, minimum = map(_binary, ("maximum", "minimum"))


def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    """The remainder of x1 / x2, with the sign of `x2`, also if it is zero; operators give a zero the sign of `x1`."""
    first, second = together(x1, x2)
    left = ops.remainder(first, second)
    return ops.where(ops.eq(left, 0), ops.copysign(left, second), left) if left.dtype.is_floating_point else left


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN of NaN; of complex numbers those of modulus 1 with the same angle."""
    if x.dtype.is_complex:
        return ops.sgn(x)
    return ops.where(ops.isnan(x), x, ops.sign(x)) if x.dtype.is_floating_point else ops.sign(x)


def round(x: Tensor, /) -> Tensor:
    """The nearest whole numbers, ties to even; of complex numbers, of both parts."""
    return ops.complex(_rounded(x.real), _rounded(x.imag)) if x.dtype.is_complex else _rounded(x)


def conj(x: Tensor, /) -> Tensor:
    """The conjugates; an array of real numbers as it is."""
    return x.conj_physical()


def real(x: Tensor, /) -> Tensor:
    """The real parts; an array of real numbers as it is."""
    return x.real


def imag(x: Tensor, /) -> Tensor:
    """The imaginary parts: zeros of real numbers."""
    return x.imag if x.dtype.is_complex else ops.mul(x, 0)


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """The elements, at least `min` and at most `max`, in the dtype of `x`."""
    for bound, limit in ((min, ops.maximum), (max, ops.minimum)):
        if isinstance(bound, Tensor):
            x = limit(x, bound.to(x.dtype))
        elif bound is not None:
            if x.dtype.category == 1 and isinstance(bound, int):  # beyond the dtype's range a bound would wrap round
                limits = iinfo(x.dtype)
                bound = sorted((limits.min, bound, limits.max))[1]
            x = limit(x, together(x, bound)[1]).to(x.dtype)
    return x


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """`x1` where the condition holds, `x2` elsewhere."""
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        raise TypeError("where: wants an array among x1 and x2")
    return ops.where(condition, *together(x1, x2))
