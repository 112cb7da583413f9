"""What each elementwise primitive is on lanes: `Arithmetic(lanes, dtype, operand).NAME(*values)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import FLOATING
from genesis.codegen.cpu.vector_math import FUNCTIONS
from genesis.ops import PRIMITIVES

__all__ = ["Arithmetic"]

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class Arithmetic:
    """Elementwise operations on register values of one dtype. `operand` is the arguments' dtype where it differs."""

    def __init__(self, lanes: Lanes, dtype: str, operand: str | None = None) -> None:
        self.lanes = lanes
        self.dtype = dtype
        self.operand = operand or dtype

    def apply(self, name: str, emit: Callable[..., Any] | None, values: list[ir.Value]) -> ir.Value:
        """Emit primitive `name`; results of 16-bit floats are rounded to their precision, as if stored."""
        y = emit(self, *values) if emit is not None else getattr(self, name)(*values)
        if self.dtype in ("float16", "bfloat16") and not PRIMITIVES[name].exact:
            y = self.lanes.round_to(self.dtype, y)
        return y

    def __getattr__(self, name: str) -> Callable[..., ir.Value]:
        """The emitter of a primitive that is no method below: a comparison, or a function of the vector math library."""
        if name in _COMPARISONS:
            return lambda x, y: self.lanes.compare(_COMPARISONS[name], x, y, self.operand)
        if name not in FUNCTIONS:
            raise AttributeError(f"{name} has no emitter for {self.operand}")
        dtype = "float64" if self.operand == "float64" else "float32"
        return lambda *values: FUNCTIONS[name](self.lanes, *values, dtype=dtype)

    @property
    def floating(self) -> bool:
        return self.operand in FLOATING

    def constant(self, value: float) -> ir.Value:
        return self.lanes.constant(self.operand, value)

    # ---- arithmetic ----

    def add(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.logical_or(x, y) if self.dtype == "bool" else self.lanes.add(x, y)

    def sub(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.subtract(x, y)

    def mul(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.logical_and(x, y) if self.dtype == "bool" else self.lanes.multiply(x, y)

    def div(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.divide(x, y)

    def floor_divide(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.floor_divide(x, y, self.dtype)

    def remainder(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.remainder(x, y, self.dtype)

    def fmod(self, x: ir.Value, y: ir.Value) -> ir.Value:
        if self.floating:
            return self.lanes.fmod(x, y)
        a, b = self.lanes.matched(x, y)
        _, rest = self.lanes.divide_integers(a, b, self.dtype)
        return rest

    def pow(self, x: ir.Value, y: ir.Value) -> ir.Value:
        if self.floating:
            dtype = "float64" if self.dtype == "float64" else "float32"
            return FUNCTIONS["pow"](self.lanes, x, y, dtype=dtype)
        return self._integer_power(x, y)

    def _integer_power(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """By squaring, wrapping around; a negative exponent gives 0 but for bases 1 and -1."""
        b, dtype = self.lanes, self.dtype
        bits = {"int8": 8, "uint8": 8, "int16": 16, "int32": 32, "int64": 64}[dtype].bit_length() - 1
        result: Any = b.constant(dtype, 1)
        base, left = x, y
        for _ in range(2**bits if bits < 6 else 63):
            odd = b.compare("!=", b.logical_and(left, 1), 0, dtype)
            result = b.select(odd, b.multiply(result, base), result)
            base = b.multiply(base, base)
            left = b.shift_right_logical(left, 1)
        if dtype == "uint8":
            return result
        negative = b.compare("<", y, 0, dtype)
        odd = b.compare("!=", b.logical_and(y, 1), 0, dtype)
        unit = b.select(b.compare("==", x, 1, dtype), b.constant(dtype, 1), b.constant(dtype, 0))
        minus = b.select(odd, b.constant(dtype, -1), b.constant(dtype, 1))
        unit = b.select(b.compare("==", x, -1, dtype), minus, unit)
        return b.select(negative, unit, result)

    def neg(self, x: ir.Value) -> ir.Value:
        return self.lanes.negate(x)

    def abs(self, x: ir.Value) -> ir.Value:
        return x if self.dtype in ("bool", "uint8") else self.lanes.absolute(x, self.dtype)

    def sign(self, x: ir.Value) -> ir.Value:
        b = self.lanes
        if self.dtype == "bool":
            return x
        one = b.select(b.compare(">", x, 0, self.dtype), self.constant(1), self.constant(0))
        signed = one if self.dtype == "uint8" else b.select(b.compare("<", x, 0, self.dtype), self.constant(-1), one)
        return b.select(b.is_nan(x), x, signed) if self.floating else signed

    def maximum(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.logical_or(x, y) if self.dtype == "bool" else self.lanes.maximum(x, y, self.dtype)

    def minimum(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.logical_and(x, y) if self.dtype == "bool" else self.lanes.minimum(x, y, self.dtype)

    def sqrt(self, x: ir.Value) -> ir.Value:
        return self.lanes.square_root(x)

    def where(self, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.select(condition, x, y)

    def copysign(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.copy_sign(x, y)

    # ---- rounding: integers are whole already ----

    def floor(self, x: ir.Value) -> ir.Value:
        return self.lanes.floor(x) if self.floating else x

    def ceil(self, x: ir.Value) -> ir.Value:
        return self.lanes.ceil(x) if self.floating else x

    def trunc(self, x: ir.Value) -> ir.Value:
        return self.lanes.truncate(x) if self.floating else x

    def round(self, x: ir.Value) -> ir.Value:
        return self.lanes.rint(x) if self.floating else x

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

    # ---- bits ----

    def bitwise_and(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.logical_and(x, y)

    def bitwise_or(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.logical_or(x, y)

    def bitwise_xor(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.lanes.logical_xor(x, y)

    def bitwise_not(self, x: ir.Value) -> ir.Value:
        return self.lanes.logical_not(x)

    def bitwise_left_shift(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self._shifted(self.lanes.shift_left, x, y, fill=False)

    def bitwise_right_shift(self, x: ir.Value, y: ir.Value) -> ir.Value:
        shift = self.lanes.shift_right_logical if self.dtype == "uint8" else self.lanes.shift_right_arithmetic
        return self._shifted(shift, x, y, fill=self.dtype != "uint8")

    def _shifted(self, shift: Callable[..., ir.Value], x: ir.Value, y: ir.Value, fill: bool) -> ir.Value:
        """A shift whose count may reach the width: zeros then, or copies of the sign."""
        b = self.lanes
        bits = {"int8": 8, "uint8": 8, "int16": 16, "int32": 32, "int64": 64}[self.dtype]
        fits = b.logical_and(b.compare("<", y, bits - 1, self.dtype), b.compare(">=", y, 0, self.dtype))
        at_edge = b.compare("==", y, bits - 1, self.dtype)
        count = b.select(b.logical_or(fits, at_edge), y, b.constant(self.dtype, bits - 1 if fill else 0))
        shifted = shift(x, count)
        return shifted if fill else b.select(b.logical_or(fits, at_edge), shifted, b.constant(self.dtype, 0))
