"""ONNX's operators for operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from genesis.ops.registry import OPERATIONS
from genesis.shipping.graph_of_call import Call, Position

# One operator for an elementwise primitive, on operands of one shape.
ELEMENTWISE = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "Add", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "div": "Div", "eq": "Equal", "erf": "Erf", "exp": "Exp",
    "floor": "Floor", "ge": "GreaterOrEqual", "gt": "Greater", "isinf": "IsInf", "isnan": "IsNaN", "le": "LessOrEqual",
    "log": "Log", "lt": "Less", "maximum": "Max", "minimum": "Min", "mul": "Mul", "neg": "Neg", "pow": "Pow", "relu": "Relu",
    "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "sub": "Sub",
    "tan": "Tan", "tanh": "Tanh", "where": "Where",
}
# The value of one operand: what else the primitive is for is derivation.
SAME = {"check_divisor": 0, "clone": 0, "detach": 0, "normalized": 0, "rewritten": 0, "with_value": 1}
REDUCTIONS = {"sum": "ReduceSum", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd"}
# Of truths; those of bits, of integers too.
LOGICAL = {f"{kind}_{name}": name.capitalize() for kind in ("logical", "bitwise") for name in ("and", "or", "xor", "not")}
BITWISE = {f"bitwise_{name}": f"Bitwise{name.capitalize()}" for name in ("and", "or", "xor", "not")}

Operator = tuple[str, list[Position], dict[str, Any]]  # its name, its operands, its attributes


def operator_of(call: Call) -> Operator | None:
    """The single ONNX operator that computes a call; None without one."""
    rule = _CALLS.get(call.operation)
    if rule is None:
        return None
    bound = inspect.signature(OPERATIONS[call.operation].define).bind(None, *call.arguments[1:], **call.options)
    bound.apply_defaults()
    return rule(call.arguments[0], bound.arguments)


def _convolution(axes: int) -> Callable[[Any, dict[str, Any]], Operator | None]:
    def rule(x: Any, of: dict[str, Any]) -> Operator | None:
        if isinstance(of["padding"], str):
            return None
        operands = [x, of["weight"]] + ([] if of["bias"] is None else [of["bias"]])
        padding = _each(of["padding"], axes)
        return "Conv", operands, {"strides": _each(of["stride"], axes), "pads": padding * 2, "group": of["groups"],
                                  "dilations": _each(of["dilation"], axes)}

    return rule


def _max_pool(axes: int) -> Callable[[Any, dict[str, Any]], Operator | None]:
    def rule(x: Any, of: dict[str, Any]) -> Operator | None:
        if of["ceil_mode"] or of["return_indices"]:
            return None
        size = _each(of["kernel_size"], axes)
        stride = size if of["stride"] is None else _each(of["stride"], axes)
        return "MaxPool", [x], {"kernel_shape": size, "strides": stride, "pads": _each(of["padding"], axes) * 2,
                                "dilations": _each(of["dilation"], axes)}

    return rule


def _each(value: int | tuple[int, ...], axes: int) -> list[int]:
    return [value] * axes if isinstance(value, int) else [*value]


_CALLS = {f"conv{axes}d": _convolution(axes) for axes in (1, 2, 3)} | {
    f"max_pool{axes}d": _max_pool(axes) for axes in (1, 2, 3)}
