"""The primitives of complex values: their parts and conjugates, and how gradients go through them.

A complex value is one graph node of a complex dtype with one gradient rule. Gradients follow PyTorch's convention:
dL/dRe + i dL/dIm for a real loss L. So a holomorphic primitive's rule multiplies by the conjugate of its derivative; a linear
one's rule does not change. In memory the parts are interleaved, as in NumPy. Lowering splits arithmetic into the parts
(`genesis.ops.complex_rules`), which are two registers in a kernel.
"""

from __future__ import annotations

import numpy as np

from genesis.ir.graph import Node, Value
from genesis.ops.registry import Gradient, expand, primitive


def _pair(node: Node, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    result = np.empty(node.shape, node.dtype.compute.numpy)
    result.real, result.imag = x, y
    return result


primitive("real", "elementwise", cost=0, exact=True, grad=lambda g, y, z: complex_value(g, _zeros(g)),
          reference=lambda node, z: np.real(z))
primitive("imag", "elementwise", cost=0, exact=True, grad=lambda g, y, z: complex_value(_zeros(g), g),
          reference=lambda node, z: np.imag(z))
primitive("complex", "elementwise", cost=0, exact=True, grad=lambda g, z, x, y: (real_value(g), imag_value(g)), reference=_pair)
primitive("conj", "elementwise", exact=True, grad=lambda g, y, z: conjugate(g), reference=lambda node, z: np.conj(z))


def _zeros(x: Value) -> Value:
    return expand(x.graph.constant(0, x.dtype), x.shape)


def real_value(z: Value) -> Value:
    """The real part; of a real value, itself."""
    return z.graph.add("real", (z,), z.shape, z.dtype.real) if z.dtype.is_complex else z


def imag_value(z: Value) -> Value:
    """The imaginary part; of a real value, zeros."""
    return z.graph.add("imag", (z,), z.shape, z.dtype.real) if z.dtype.is_complex else _zeros(z)


def complex_value(x: Value, y: Value) -> Value:
    """x + iy; the parts have one dtype and shape."""
    return x.graph.add("complex", (x, y), x.shape, x.dtype.complex)


def conjugate(z: Value) -> Value:
    """The conjugate; of a real value, itself."""
    return z.graph.add("conj", (z,), z.shape, z.dtype) if z.dtype.is_complex else z


def squared_modulus(z: Value) -> Value:
    """x^2 + y^2; of a real value, its square."""
    return real_value(z) * real_value(z) + imag_value(z) * imag_value(z) if z.dtype.is_complex else z * z


def log_add_exp(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's logaddexp, for complex numbers too: the term with the greater real part is factored out."""
    if not np.iscomplexobj(x):
        return np.asarray(np.logaddexp(x, y))
    less = x.real < y.real
    large, small = np.where(less, y, x), np.where(less, x, y)
    nothing = np.isneginf(large.real)
    return np.where(nothing, large, large + np.log1p(np.exp(np.where(nothing, 0, small - large))))


# Primitives whose rules multiply by derivatives. Other rules (linear, parts, moduli) hold for complex numbers unchanged.
HOLOMORPHIC = frozenset((
    "mul", "div", "pow", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "sin", "cos",
    "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "prod", "recurrence",
    "cumprod", "matmul", "solve", "inv", "det", "cofactors", "matrix_exp", "solve_triangular", "lu_factor_ex", "logcumsumexp",
))


def conjugated(rule: Gradient, g: Value, y: Value, *inputs: Value) -> tuple[Value | None, ...]:
    """A holomorphic primitive's cotangents; its `rule` multiplies by derivatives."""
    answer = rule(conjugate(g), y, *inputs)
    answers = answer if isinstance(answer, tuple) else (answer,)
    return tuple([None if grad is None else conjugate(grad) for grad in answers])
