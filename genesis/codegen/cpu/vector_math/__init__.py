"""The elementary functions on lanes, branch-free and with the same bits for a value in any lane of any width.

`FUNCTIONS[name](lanes, *values, dtype)` emits a function for "float32" and "float64"; "float16" and "bfloat16"
values, which are float32 in registers, take the float32 form. Each function states its bound in ulp over the whole
range, subnormals included; zeros keep their signs, and infinities and NaN behave as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import mangled
from genesis.codegen.cpu.vector_math import error_function, exponential, inverse_trigonometric, logarithm, trigonometric
from genesis.codegen.cpu.vector_math.number import Number

PUBLIC_NAME = {"power": "pow"}
FORMULAS: dict[str, Callable[..., Number]] = {
    PUBLIC_NAME.get(function.__name__, function.__name__): function
    for function in (
        exponential.exp, exponential.exp2, exponential.expm1, exponential.sigmoid,
        exponential.sinh, exponential.cosh, exponential.tanh,
        logarithm.log, logarithm.log2, logarithm.log10, logarithm.log1p, logarithm.power,
        logarithm.asinh, logarithm.acosh, logarithm.atanh,
        trigonometric.sin, trigonometric.cos, trigonometric.tan,
        inverse_trigonometric.asin, inverse_trigonometric.acos, inverse_trigonometric.atan, inverse_trigonometric.atan2,
        error_function.erf, error_function.erfc, error_function.rsqrt,
    )
}  # fmt: skip


def emitter(name: str, formula: Callable[..., Number]) -> Callable[..., ir.Value]:
    """A formula over Numbers as a function over register values."""

    def spelled(lanes: Lanes, values: Sequence[ir.Value], dtype: str) -> ir.Value:
        register_dtype = "float64" if dtype == "float64" else "float32"
        return formula(*[Number(lanes, value, register_dtype) for value in values]).value

    def emit(lanes: Lanes, *values: ir.Value, dtype: str) -> ir.Value:
        operands = lanes.matched(*values)
        if name not in lanes.shared:
            return spelled(lanes, operands, dtype)
        types = [value.type for value in operands]
        symbol = f"{name}.{mangled(types[0])}"
        function = lanes.builder.module.globals.get(symbol)
        if function is None:
            function = ir.Function(lanes.builder.module, ir.FunctionType(types[0], types), symbol)
            function.linkage = "internal"
            inside = Lanes(ir.IRBuilder(function.append_basic_block("entry")), lanes.width)
            inside.builder.ret(spelled(inside, function.args, dtype))
        return lanes.builder.call(function, operands)

    emit.__name__, emit.__doc__ = formula.__name__, formula.__doc__
    return emit


FUNCTIONS: dict[str, Callable[..., ir.Value]] = {name: emitter(name, formula) for name, formula in FORMULAS.items()}
