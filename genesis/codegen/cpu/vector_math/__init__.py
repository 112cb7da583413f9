"""The elementary functions on lanes, branch-free and with the same bits for a value in any lane of any width.

`FUNCTIONS[name](lanes, *values, dtype)` emits a function for "float32" and "float64"; "float16" and "bfloat16"
values, which are float32 in registers, take the float32 form. Each function states its bound in ulp over the whole
range, subnormals included; zeros keep their signs, and infinities and NaN behave as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import mangled
from genesis.codegen.cpu.vector_math import (
    airy, bessel, error_function, exponential, gamma_function, incomplete_gamma, inverse_trigonometric, logarithm,
    modified_bessel, neighbour, trigonometric, zeta_function,
)
from genesis.codegen.cpu.vector_math.number import Number
from genesis.ops import PRIMITIVES

FILES = {"airy": airy, "bessel": bessel, "error_function": error_function, "exponential": exponential,
         "gamma_function": gamma_function, "incomplete_gamma": incomplete_gamma, "inverse_trigonometric": inverse_trigonometric,
         "logarithm": logarithm, "modified_bessel": modified_bessel, "neighbour": neighbour, "trigonometric": trigonometric,
         "zeta_function": zeta_function}


def formula_of(name: str) -> Callable[..., Number]:
    """The function of Numbers that a primitive is computed by."""
    file = PRIMITIVES[name].vector
    assert file is not None, f"{name} has no formula"
    formula: Callable[..., Number] = getattr(FILES[file], name)
    return formula


def emitter(name: str, formula: Callable[..., Number]) -> Callable[..., ir.Value]:
    """A formula over Numbers as a function over register values."""

    def spelled(lanes: Lanes, values: Sequence[ir.Value], dtype: str) -> ir.Value:
        register_dtype = "float64" if dtype == "float64" else "float32"
        return formula(*[Number(lanes, value, register_dtype) for value in values]).value

    def emit(lanes: Lanes, *values: ir.Value, dtype: str) -> ir.Value:
        operands = lanes.matched(*values)
        if name not in lanes.shared:
            return spelled(lanes, operands, dtype)
        type_ = operands[0].type
        return lanes.called(f"{name}.{mangled(type_)}", type_, operands, lambda inside, *given: spelled(inside, given, dtype))

    emit.__name__, emit.__doc__ = name, formula.__doc__
    return emit


FUNCTIONS: dict[str, Callable[..., ir.Value]] = {  # by primitive, whose row says in which file its formula is
    row.name: emitter(row.name, formula_of(row.name)) for row in PRIMITIVES.values() if row.vector
}
