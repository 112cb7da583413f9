"""Elementwise primitives on lanes: `Arithmetic(lanes, dtype, operand).NAME(*values)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.complex_memory import Pair
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import FLOATING, REGISTER_TYPE, UNSIGNED, zero
from genesis.codegen.cpu.vector_math import FUNCTIONS
from genesis.ir.annotations import AnyFunction
from genesis.ops import PRIMITIVES

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# Primitive -> the method of `Lanes` that emits it: one for all types, or one each for floats, integers and bool; "" is the
# operand itself. Primitives of more than one method are methods of `Arithmetic`, the others vector math.
METHODS: dict[str, str | tuple[str, str, str]] = {
    "add": ("add", "add", "logical_or"), "sub": "subtract", "mul": ("multiply", "multiply", "logical_and"), "div": "divide",
    "floor_divide": "floor_divide", "remainder": "remainder", "fmod": ("fmod", "integer_fmod", "integer_fmod"),
    "neg": "negate", "abs": "absolute", "sqrt": "square_root", "copysign": "copy_sign", "where": "select",
    "maximum": ("maximum", "maximum", "logical_or"), "minimum": ("minimum", "minimum", "logical_and"),
    "floor": ("floor", "", ""), "ceil": ("ceil", "", ""), "trunc": ("truncate", "", ""), "round": ("rint", "", ""),
    "bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "bitwise_not": "logical_not",
}
WITH_DTYPE = {"absolute", "floor_divide", "integer_fmod", "maximum", "minimum", "remainder"}  # methods that ask for signedness


class Arithmetic:
    """Elementwise operations on register values of one dtype. `operand` is the arguments' dtype where it differs."""

    def __init__(self, lanes: Lanes, dtype: str, operand: str | None = None) -> None:
        self.lanes = lanes
        self.dtype = dtype
        self.operand = operand or dtype
        self.floating = self.operand in FLOATING

    def apply(self, name: str, emit: AnyFunction | None, values: list[ir.Value]) -> ir.Value:
        """Emit primitive `name`; results of 16-bit floats are rounded to their precision, as if stored."""
        y = emit(self, *values) if emit is not None else getattr(self, name)(*values)
        if self.dtype in ("float16", "bfloat16") and not PRIMITIVES[name].exact:
            y = self.lanes.round_to(self.dtype, y)
        return y

    def __getattr__(self, name: str) -> Callable[..., ir.Value]:
        """The emitter of a comparison, of a primitive in METHODS, or of a function of the vector math library."""
        if name in COMPARISONS:
            return lambda x, y: self.lanes.compare(COMPARISONS[name], x, y, self.operand)
        if name in METHODS:
            found = METHODS[name]
            method = found if isinstance(found, str) else found[0 if self.floating else 2 if self.operand == "bool" else 1]
            if not method:
                return lambda x: x
            emit = getattr(self.lanes, method)
            return partial(emit, dtype=self.dtype) if method in WITH_DTYPE else emit
        if name not in FUNCTIONS:
            raise AttributeError(f"{name} has no emitter for {self.operand}")
        return partial(FUNCTIONS[name], self.lanes, dtype="float64" if self.operand == "float64" else "float32")

    def constant(self, value: float) -> ir.Value:
        return self.lanes.constant(self.operand, value)

    def pow(self, x: ir.Value, y: ir.Value) -> ir.Value:
        if self.floating:
            return FUNCTIONS["pow"](self.lanes, x, y, dtype="float64" if self.dtype == "float64" else "float32")
        return self._integer_power(x, y)

    def _integer_power(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """Powers by squaring, which wrap; a negative exponent gives 0 except for bases 1 and -1."""
        b, dtype = self.lanes, self.dtype
        bits = REGISTER_TYPE[dtype].width.bit_length() - 1
        result: ir.Value = b.constant(dtype, 1)
        base, left = x, y
        for _ in range(2**bits if bits < 6 else 63):
            odd = b.compare("!=", b.logical_and(left, 1), 0, dtype)
            result = b.select(odd, b.multiply(result, base), result)
            base = b.multiply(base, base)
            left = b.shift_right_logical(left, 1)
        if dtype in UNSIGNED:
            return result
        negative = b.compare("<", y, 0, dtype)
        odd = b.compare("!=", b.logical_and(y, 1), 0, dtype)
        unit = b.select(b.compare("==", x, 1, dtype), b.constant(dtype, 1), b.constant(dtype, 0))
        minus = b.select(odd, b.constant(dtype, -1), b.constant(dtype, 1))
        unit = b.select(b.compare("==", x, -1, dtype), minus, unit)
        return b.select(negative, unit, result)

    def gcd(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """The greatest common divisor, by differences of odd numbers (J. Stein, "Computational problems associated with Racah
        algebra", J. Comput. Phys. 1, 1967); of 0 and y it is |y|."""
        b = self.lanes

        def odd(x: ir.Value) -> ir.Value:
            """x without its factors 2; 0 stays."""
            nothing = b.builder.icmp_unsigned("==", x, zero(x.type))
            return b.shift_right_logical(x, b.select(nothing, 0, b.trailing_zeros(b.select(nothing, 1, x))))

        def step(u: ir.Value, v: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
            low, high = (b.intrinsic(name, u.type, [u, v]) for name in ("umin", "umax"))
            rest = odd(b.subtract(high, low))
            goes_on = b.builder.icmp_unsigned("!=", rest, zero(rest.type))
            return goes_on, [b.select(goes_on, rest, low), low]

        x, y = (b.absolute(value, self.dtype) for value in b.matched(x, y))
        either = b.logical_or(x, y)
        twos = b.trailing_zeros(b.select(b.compare("==", either, 0, self.dtype), 1, either))
        u, v = b.select(b.compare("==", x, 0, self.dtype), y, x), b.select(b.compare("==", y, 0, self.dtype), x, y)
        found, _ = b.repeated([odd(u), odd(v)], step)
        return b.shift_left(found, twos)

    def sign(self, x: ir.Value) -> ir.Value:
        b = self.lanes
        if self.dtype == "bool":
            return x
        one = b.select(b.compare(">", x, 0, self.dtype), self.constant(1), self.constant(0))
        return one if self.dtype in UNSIGNED else b.select(b.compare("<", x, 0, self.dtype), self.constant(-1), one)

    # ---- complex numbers: a pair of registers ----
    def complex(self, x: ir.Value, y: ir.Value) -> Pair:
        return Pair(x, y)

    def real(self, z: Pair) -> ir.Value:
        return z.x

    def imag(self, z: Pair) -> ir.Value:
        return z.y

    # ---- predicates ----
    def isnan(self, x: ir.Value) -> ir.Value:
        return self.lanes.is_nan(x) if self.floating else self._never(x)

    def isinf(self, x: ir.Value) -> ir.Value:
        if not self.floating:
            return self._never(x)
        return self.lanes.compare("==", self.lanes.absolute(x, self.operand), float("inf"), self.operand)

    def isfinite(self, x: ir.Value) -> ir.Value:
        if not self.floating:
            return self.lanes.logical_not(self._never(x))
        return self.lanes.compare("<", self.lanes.absolute(x, self.operand), float("inf"), self.operand)

    def _never(self, x: ir.Value) -> ir.Value:
        return self.lanes.compare("!=", x, x, self.operand)

    # ---- shifts ----
    def bitwise_left_shift(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self._shifted(self.lanes.shift_left, x, y, fill=False)

    def bitwise_right_shift(self, x: ir.Value, y: ir.Value) -> ir.Value:
        shift = self.lanes.shift_right_logical if self.dtype in UNSIGNED else self.lanes.shift_right_arithmetic
        return self._shifted(shift, x, y, fill=self.dtype not in UNSIGNED)

    def _shifted(self, shift: Callable[..., ir.Value], x: ir.Value, y: ir.Value, fill: bool) -> ir.Value:
        """A shift whose count may reach the width: zeros then, or copies of the sign."""
        b = self.lanes
        bits = REGISTER_TYPE[self.dtype].width
        fits = b.logical_and(b.compare("<", y, bits - 1, self.dtype), b.compare(">=", y, 0, self.dtype))
        at_edge = b.compare("==", y, bits - 1, self.dtype)
        count = b.select(b.logical_or(fits, at_edge), y, b.constant(self.dtype, bits - 1 if fill else 0))
        shifted = shift(x, count)
        return shifted if fill else b.select(b.logical_or(fits, at_edge), shifted, b.constant(self.dtype, 0))
