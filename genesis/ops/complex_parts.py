"""Complex arithmetic in terms of real and imaginary parts: a rule for each primitive with a complex input or result.

A rule gets the node and its inputs (`Parts` if complex) and returns `Parts` or, for a real result, a Value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from genesis.ir.dtypes import bool_
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import reduced_shape
from genesis.ops.arithmetic import hypot
from genesis.ops.contraction import product
from genesis.ops.elementwise import abs as modulus, isfinite, isinf, isnan, where, zeros_like
from genesis.ops.joining import cat
from genesis.ops.reduction import reduce_value
from genesis.ops.registry import cast
from genesis.ops.views import reshape_value, slice_value


class Parts(NamedTuple):
    """x + iy."""

    x: Value
    y: Value


Rule = Callable[..., Parts | Value]
RULES: dict[str, Rule] = {}


def _rule(name: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES[name] = rule
        return rule

    return register


def _each(*names: str) -> None:
    """Primitives that apply to each part as to a real number."""
    for name in names:
        def rule(node: Node, *inputs: Parts | Value) -> Parts:
            def of(part: int) -> Value:
                given = [z[part] if isinstance(z, Parts) else z for z in inputs]
                dtype = node.dtype.real
                return given[0].graph.add(node.op, given, node.shape, dtype, node.attrs)

            return Parts(of(0), of(1))

        RULES[name] = rule


_each("add", "sub", "neg", "where", "sum", "scatter", "cumsum", "put_sum")


# ---- parts ----
RULES["real"] = lambda node, z: z.x
RULES["imag"] = lambda node, z: z.y
RULES["complex"] = lambda node, x, y: Parts(x, y)
RULES["conj"] = lambda node, z: Parts(z.x, -z.y)
RULES["abs"] = lambda node, z: hypot(z.x, z.y)


@_rule("cast")
def _cast(node: Node, z: Parts | Value) -> Parts | Value:
    if isinstance(z, Value):
        part = cast(z, node.dtype.real)
        return Parts(part, zeros_like(part))
    if node.dtype.is_complex:
        return Parts(cast(z.x, node.dtype.real), cast(z.y, node.dtype.real))
    return (z.x != 0) | (z.y != 0) if node.dtype is bool_ else cast(z.x, node.dtype)


# ---- arithmetic ----
def times(z: Parts, w: Parts) -> Parts:
    return Parts(z.x * w.x - z.y * w.y, z.x * w.y + z.y * w.x)


def over(z: Parts, w: Parts) -> Parts:
    """Division scaled by the divisor's larger part, so that squares do not overflow (Smith, 1962)."""
    is_swapped = modulus(w.x) < modulus(w.y)
    large, small = where(is_swapped, w.y, w.x), where(is_swapped, w.x, w.y)
    none = large == 0
    ratio = where(none, 0, small / large)
    a, b = where(is_swapped, z.y, z.x), where(is_swapped, z.x, z.y)
    scale, less, more = large + small * ratio, where(none, 0, a * ratio), where(none, 0, b * ratio)
    return Parts((a + more) / scale, where(is_swapped, less - b, b - less) / scale)


RULES["mul"] = lambda node, z, w: times(z, w)
RULES["div"] = lambda node, z, w: over(z, w)
RULES["eq"] = lambda node, z, w: (z.x == w.x) & (z.y == w.y)
RULES["ne"] = lambda node, z, w: (z.x != w.x) | (z.y != w.y)
RULES["isnan"] = lambda node, z: isnan(z.x) | isnan(z.y)
RULES["isinf"] = lambda node, z: isinf(z.x) | isinf(z.y)
RULES["isfinite"] = lambda node, z: isfinite(z.x) & isfinite(z.y)


# ---- reductions and products of matrices ----
@_rule("prod")
def _prod(node: Node, z: Parts) -> Parts:
    """Multiplies the two halves of the axis until one number is left."""
    for axis in node.attrs["axes"]:
        if not z.x.shape[axis]:
            one = zeros_like(reshape_value(reduce_value("sum", z.x, (axis,)), reduced_shape(z.x.shape, (axis,), True)))
            z = Parts(one + 1, one)
        while (extent := z.x.shape[axis]) > 1:
            half = extent // 2
            joined = times(_slice(z, axis, 0, half), _slice(z, axis, half, 2 * half))
            rest = _slice(z, axis, 2 * half, extent)
            z = Parts(cat([joined.x, rest.x], axis), cat([joined.y, rest.y], axis)) if extent % 2 else joined
    return Parts(*[reshape_value(v, node.shape) for v in z])


def _slice(z: Parts, axis: int, start: int, end: int) -> Parts:
    return Parts(*[slice_value(v, axis, start, end) for v in z])


@_rule("matmul")
def _matmul(node: Node, z: Parts, w: Parts) -> Parts:
    only = node.attrs.get("only", "")
    return Parts(product(z.x, w.x, only) - product(z.y, w.y, only), product(z.x, w.y, only) + product(z.y, w.x, only))
