"""Values in kernels as text: the types of a dtype, conversions, elementwise primitives, reductions.

float16 and bfloat16 are storage formats, computed as float32, and complex32 is one, computed as complex64; bfloat16 is stored
as its 16 bits, complex32 as its 32. A dtype is a string. In an
expression `{0}`, `{1}`, .. are the operands, which are names; `{t}` is the type of a variable, `{f}` the ending of the
functions of that type in libdevice, and `{bits}` an integer's width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

from genesis.codegen.cpu.vector_math import formula_of
from genesis.ops import PRIMITIVES, Primitive

FLOATING = frozenset(("float64", "float32", "float16", "bfloat16"))


def register_type(dtype: str) -> str:
    """The type of a variable; nothing converts to `bool`."""
    return {"float16": "float32", "bfloat16": "float32", "complex32": "complex64"}.get(dtype, dtype)


def memory_type(dtype: str) -> str:
    return {"bool": "uint8", "bfloat16": "uint16", "complex32": "uint32"}.get(dtype, dtype)


def accumulated(dtype: str) -> str:
    """The type of a reduction over values of a dtype: one of the three that warps exchange."""
    return register_type(dtype) if dtype in FLOATING else "int64"


def loaded(element: str, dtype: str) -> str:
    """An element of memory as a value."""
    if dtype == "bool":
        return f"{element} != 0"
    return {"float16": f"float32({element})", "bfloat16": f"float32_of_bfloat16({element})",
            "complex32": f"complex64_of_bits({element})"}.get(dtype, element)


def stored(value: str, dtype: str) -> str:
    """A value as an element of memory."""
    return {"bool": f"uint8({value})", "float16": f"float16({value})", "bfloat16": f"bfloat16_bits({value})",
            "complex32": f"complex32_bits({value})"}.get(dtype, value)


def rounded(value: str, dtype: str) -> str:
    """A float32 to the precision of a 16-bit type; for another dtype as it is."""
    return loaded(stored(value, dtype), dtype) if dtype in ("float16", "bfloat16") else value


def converted(value: str, source: str, dtype: str) -> str:
    """NumPy's `astype`; see the CPU's `convert` for floats beyond an integer's range."""
    if source == dtype:
        return value
    if dtype == "bool":
        return f"{value} != {register_type(source)}(0)"
    # Through 32 or 64 bits, saturating; narrower integers wrap from there, as on the CPU.
    if source in FLOATING and dtype not in FLOATING:
        return f"int64_of({value})" if dtype == "int64" else f"int32_of({value})" if dtype == "int32" else \
            f"{dtype}(int32_of({value}))"
    target = register_type(dtype)
    return rounded(value if register_type(source) == target else f"{target}({value})", dtype)


COMPARISONS = {
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
    "where": "{1} if {0} else {2}",
}


def _of_float64(row: Primitive) -> str:
    """The call of a formula that is a function of kernels, in float64."""
    operands = [f"float64({{{n}}})" for n in range(len(signature(formula_of(row.name)).parameters))]
    return f"{{t}}({row.name}({', '.join(operands)}))"


FLOAT = COMPARISONS | {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}", "abs": "abs({0})",
    "floor_divide": "{t}(floor_divide({0}, {1}))", "remainder": "remainder({0}, {1})", "fmod": "math.fmod({0}, {1})",
    "copysign": "math.copysign({0}, {1})",
    "maximum": "maximum({0}, {1})", "minimum": "minimum({0}, {1})",
    "sign": "{t}({0} > {t}(0)) - {t}({0} < {t}(0))",
    "sqrt": "math.sqrt({0})",
    "floor": "math.floor({0})", "ceil": "math.ceil({0})", "trunc": "math.trunc({0})", "round": "libdevice.rint{f}({0})",
    "isnan": "{0} != {0}", "isinf": "abs({0}) == {t}(math.inf)", "isfinite": "abs({0}) < {t}(math.inf)",
    "complex": "complex({0}, {1})",
} | {row.name: row.cuda or _of_float64(row) for row in PRIMITIVES.values() if row.cuda or row.vector}
INTEGER = COMPARISONS | {
    "add": "{t}({0} + {1})", "sub": "{t}({0} - {1})", "mul": "{t}({0} * {1})", "neg": "{t}(-{0})", "abs": "{t}(abs({0}))",
    "floor_divide": "{t}(integer_floor_divide({0}, {1}))", "remainder": "{t}(integer_remainder({0}, {1}))",
    "fmod": "{t}(integer_fmod({0}, {1}))", "pow": "{t}(integer_power({0}, {1}))",
    "gcd": "{t}(greatest_common_divisor({0}, {1}))",
    "maximum": "maximum({0}, {1})", "minimum": "minimum({0}, {1})", "sign": "{t}(int64({0} > 0) - int64({0} < 0))",
    "floor": "{0}", "ceil": "{0}", "trunc": "{0}", "round": "{0}",
    "isnan": "False", "isinf": "False", "isfinite": "True",
    "bitwise_and": "{t}({0} & {1})", "bitwise_or": "{t}({0} | {1})", "bitwise_xor": "{t}({0} ^ {1})",
    "bitwise_not": "{t}(~{0})",
    "bitwise_left_shift": "{t}(shifted_left({0}, {1}, {bits}))", "bitwise_right_shift": "{t}(shifted_right({0}, {1}, {bits}))",
}
BOOL = COMPARISONS | {
    "add": "{0} | {1}", "sub": "{0} ^ {1}", "mul": "{0} & {1}", "maximum": "{0} | {1}", "minimum": "{0} & {1}",
    "floor_divide": "{0} & {1}", "remainder": "False", "fmod": "{0} > {1}",
    "neg": "{0}", "abs": "{0}", "sign": "{0}", "floor": "{0}", "ceil": "{0}", "trunc": "{0}", "round": "{0}",
    "isnan": "False", "isinf": "False", "isfinite": "True",
    "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}", "bitwise_not": "not {0}",
}


COMPLEX = {"real": "{0}.real", "imag": "{0}.imag", "complex": "complex({0}, {1})"}  # all else is arithmetic of parts


class Arithmetic:
    """The elementwise primitives on values of one dtype, as text. `operand` is the arguments' dtype where it differs."""

    def __init__(self, dtype: str, operand: str | None = None) -> None:
        self.dtype = dtype
        self.operand = operand or dtype

    @property
    def table(self) -> Mapping[str, str]:
        if self.operand.startswith("complex"):
            return COMPLEX
        return FLOAT if self.operand in FLOATING else BOOL if self.operand == "bool" else INTEGER

    def apply(self, name: str, emit: Callable[..., Any] | None, values: Sequence[str]) -> str:
        """Primitive `name` of named values; results of 16-bit floats are rounded to their precision, as if stored."""
        result = str(emit(self, *values)) if emit is not None else self._expression(name, values)
        if self.dtype in ("float16", "bfloat16") and not PRIMITIVES[name].exact:
            result = rounded(result, self.dtype)
        return result

    def _expression(self, name: str, values: Sequence[str]) -> str:
        t = register_type(self.operand)
        bits = "".join(c for c in t if c.isdigit())
        return self.table[name].format(*values, t=t, f="f" if t == "float32" else "", bits=bits)

    def constant(self, value: float) -> str:
        return f"{register_type(self.operand)}({value})"

    def __getattr__(self, name: str) -> Callable[..., str]:
        """The expression of a primitive, for rows with an `emit=lambda k, x: k.maximum(x, k.constant(0))`."""
        if name not in self.table:
            raise AttributeError(f"{name} has no expression for {self.operand}")
        enclosed = "({})" if self.table[name].startswith("{") else "{}"
        return lambda *values: enclosed.format(self._expression(name, values))


IDENTITIES = {"sum": 0, "prod": 1, "any": 0, "all": 1}
OPERATIONS = {"any": "max", "all": "min"}  # of the numbers 0 and 1
# Written so that no literal exceeds int64: -9223372036854775808 is the negation of one that does.
_LIMIT = {"max": "int64(-9223372036854775807 - 1)", "min": "int64(9223372036854775807)"}


class Accumulator(NamedTuple):
    """The running result of reduction `number` over values of a dtype; of `arg` reductions, a value with its position."""

    reduction: str
    number: int
    source: str
    dtype: str

    @property
    def operation(self) -> str:
        return OPERATIONS.get(self.reduction, self.reduction)

    @property
    def type(self) -> str:
        return accumulated(self.source)

    @property
    def name(self) -> str:
        return f"{self.reduction}{self.number}"

    @property
    def position(self) -> str:
        return f"position{self.number}"

    @property
    def has_position(self) -> bool:
        return self.reduction.startswith("arg")

    @property
    def variables(self) -> dict[str, str]:
        return {self.name: self.type, self.position: "int64"} if self.has_position else {self.name: self.type}

    def begin(self) -> str:
        extreme = self.operation.removeprefix("arg")
        if self.reduction in IDENTITIES:
            start = f"{self.type}({IDENTITIES[self.reduction]})"
        elif self.source in FLOATING:
            start = f"{self.type}({'-' if extreme == 'max' else ''}math.inf)"
        else:
            start = _LIMIT[extreme]
        return f"{self.name}, {self.position} = {start}, int64(-1)" if self.has_position else f"{self.name} = {start}"

    def take(self, value: str, position: str) -> str:
        """The line that accumulates a value with its position."""
        return self.merge(value if register_type(self.source) == self.type else f"{self.type}({value})", f"int64({position})")

    def merge(self, value: str, position: str = "") -> str:
        """The line that accumulates another accumulator's value."""
        if self.has_position:
            return f"{self.name}, {self.position} = {self.operation}_of({self.name}, {self.position}, {value}, {position})"
        operators = {"sum": f"{self.name} += {value}", "prod": f"{self.name} *= {value}"}
        function = {"max": "maximum", "min": "minimum"}.get(self.operation, "")
        return operators.get(self.operation) or f"{self.name} = {function}({self.name}, {value})"

    def combined(self, over: str, arrays: dict[str, str], threads: int) -> str:
        """The combined value of all threads of a warp, block or column (`over`).

        Declarations of the shared arrays that it needs go into `arrays`; `threads` is the size of a block.
        """
        types = [] if over == "warp" else [*self.variables.values()]
        shared = [_shared(dtype, "positions" if n else dtype, threads, arrays) for n, dtype in enumerate(types)]
        return f"{over}_{self.operation}({', '.join([*self.variables, *shared])})"

    def result(self, over: str | None, arrays: dict[str, str], threads: int) -> str:
        """The result of all threads, or of this one alone, in its dtype. See `combined`."""
        if self.has_position:
            return self.position if over is None else f"{self.combined(over, arrays, threads)}[1]"
        result = self.name if over is None else self.combined(over, arrays, threads)
        # Sums of 16-bit floats are accumulated in float32 and rounded once.
        if self.source in FLOATING:
            return rounded(result, self.dtype) if self.type == register_type(self.dtype) else result
        return converted(result, "int64", self.dtype)


def _shared(dtype: str, use: str, threads: int, arrays: dict[str, str]) -> str:
    name = f"shared_{use}"
    arrays[name] = f"cuda.shared.array({threads}, {dtype})"
    return name
