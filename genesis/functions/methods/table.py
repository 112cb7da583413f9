"""Functions and methods from the operation table: `genesis.exp(x)`, `x.exp()`, `x + y`, `x.add_(y)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.functions.overrides import OVERRIDES, route, routed
from genesis.ops.registry import OPERATIONS, Operation
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import in_place
from genesis.tensor.views import view

__all__ = ["ALIASES", "function_of", "install", "install_row", "view_function_of"]

_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def function_of(operation: Operation) -> Callable[..., Any]:
    """The public function of an operation: Tensors (or Python scalars) in, Tensors out; NumPy's spellings accepted."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {_NUMPY_NAMES.get(name, name): value for name, value in kwargs.items()}
            if "input" in kwargs:
                args = (kwargs.pop("input"), *args)
        return (route if OVERRIDES else call)(operation, args, kwargs)

    function.__name__ = function.__qualname__ = operation.name
    function.__doc__ = operation.define.__doc__
    function.__signature__ = operation.signature  # type: ignore[attr-defined]
    return function


def view_function_of(name: str) -> Callable[..., Any]:
    """The public function of a view: what it returns shares the input's storage."""

    def builtin(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return view(input, name, *args, **kwargs)

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        return routed(name, builtin, (input, *args), kwargs) if OVERRIDES else view(input, name, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = OPERATIONS[name].define.__doc__
    function.__signature__ = OPERATIONS[name].signature  # type: ignore[attr-defined]
    return function


def _unary_method(operation: Operation) -> Callable[..., Any]:
    def method(self: Tensor) -> Any:
        return (route if OVERRIDES else call)(operation, (self,))

    return method


def _binary_method(operation: Operation) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        return (route if OVERRIDES else call)(operation, (self, other))

    return method


def _equality_method(operation: Operation) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, Tensor | int | float | np.generic | np.ndarray):
            return NotImplemented  # so that a tensor is not None, nor equal to a string
        return (route if OVERRIDES else call)(operation, (self, other))

    return method


def _reflected_method(operation: Operation) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        return (route if OVERRIDES else call)(operation, (other, self))

    return method


def _in_place_method(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return in_place(self, name, *args, **kwargs)

    method.__name__ = name + "_"
    method.__doc__ = f"`{name}`, in place."
    return method


OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
IN_PLACE = (
    "abs", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "asin", "asinh", "atan", "atan2",
    "atanh", "baddbmm", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "ceil", "clamp", "clamp_max", "clamp_min", "copysign", "cos", "cosh", "cumprod", "cumsum", "deg2rad", "digamma", "div",
    "eq", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "floor_divide", "fmod", "frac", "gcd", "ge", "gt",
    "heaviside", "hypot", "i0", "igamma", "igammac", "index_reduce", "lcm", "ldexp", "le", "lerp", "lgamma", "log", "log10",
    "log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "lt", "mul", "mvlgamma", "nan_to_num",
    "ne", "neg", "nextafter", "pow", "rad2deg", "reciprocal", "relu", "remainder", "renorm", "round", "rsqrt", "scatter",
    "scatter_add", "scatter_reduce", "sgn", "sigmoid", "sign", "sin", "sinc", "sinh", "sqrt", "square", "sub", "tan", "tanh",
    "tril", "triu", "trunc", "xlogy",
)
ALIASES = {  # further names of rows, NumPy's mostly; of their in-place forms as well
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div", "fix": "trunc", "greater": "gt",
    "greater_equal": "ge", "less": "lt", "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne",
    "subtract": "sub", "true_divide": "div",
}


def install_row(operation: Operation) -> None:
    """Give Tensor the methods that a row of the table names."""
    for name in operation.methods:
        setattr(Tensor, name, function_of(operation))


def install() -> None:
    """Give Tensor its operators, its methods and their in-place forms."""
    for operation in OPERATIONS.values():
        install_row(operation)
    for name, target in OPERATORS.items():
        setattr(Tensor, f"__{name}__", _binary_method(OPERATIONS[target]))
        setattr(Tensor, f"__r{name}__", _reflected_method(OPERATIONS[target]))
        if target != "matmul":
            method = _in_place_method(target)
            setattr(Tensor, f"__i{name}__", lambda self, other, method=method: method(self, other))
    Tensor.__rdiv__ = Tensor.__rtruediv__  # type: ignore[method-assign]
    for name in COMPARISONS:
        kind = _equality_method if name in ("eq", "ne") else _binary_method
        setattr(Tensor, f"__{name}__", kind(OPERATIONS[name]))
    for name in IN_PLACE:
        setattr(Tensor, name + "_", _in_place_method(name))
    for alias, name in ALIASES.items():
        setattr(Tensor, alias, function_of(OPERATIONS[name]))
        setattr(Tensor, alias + "_", _in_place_method(name))
    for name in ("view", "reshape", "permute", "transpose", "expand", "squeeze", "unsqueeze", "flatten", "unflatten",
                 "narrow", "select", "diagonal", "unfold"):
        setattr(Tensor, name, view_function_of(name))
    Tensor.swapaxes = Tensor.swapdims = Tensor.transpose  # type: ignore[method-assign]
    for name, target in {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}.items():
        setattr(Tensor, f"__{name}__", _unary_method(OPERATIONS[target]))
    Tensor.flip = function_of(OPERATIONS["flip"])  # type: ignore[method-assign]
    Tensor.narrow_copy = function_of(OPERATIONS["narrow"])  # type: ignore[method-assign]
    Tensor.__pos__ = lambda self: self  # type: ignore[method-assign, assignment, return-value, misc]
    Tensor.__hash__ = object.__hash__  # type: ignore[method-assign]
