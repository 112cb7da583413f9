"""Conversions: a cast, a copy, and values whose gradient is another value's."""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node, Value
from genesis.ops.registry import cast, composite, expand, primitive
from genesis.ops.rows import formula


def _cast(node: Node, x: np.ndarray) -> np.ndarray:
    """`x` in the node's dtype: the real part of complex numbers, but a bool is true if either part is nonzero."""
    is_narrowed = np.iscomplexobj(x) and not node.dtype.is_complex and node.dtype.numpy != np.bool_
    return (x.real if is_narrowed else x).astype(node.dtype.numpy)


primitive("cast", "elementwise", grad=lambda g, y, x: cast(g, x.dtype), reference=_cast)
primitive("detach", "elementwise", reference=lambda node, x: x, emit=lambda k, x: x, cost=0)
primitive("with_value", "elementwise", grad=lambda g, y, old, new: (g, None), reference=lambda node, old, new: new,
          emit=lambda k, old, new: new, cost=0)
primitive("variable", "elementwise", reference=lambda node, x: x, emit=lambda k, x: x, cost=0)


def _custom_grad(g: Value, y: Value, raw: Value, *rest: Value) -> tuple[Value | None, ...]:
    """For planning only: which inputs get a gradient. Backward calls the Python function for its value."""
    inputs = rest[: y.node.attrs["inputs"]]
    ones = [expand(x.graph.constant(1, x.dtype), x.shape) for x in inputs]
    return (None, *ones, *[None] * (len(rest) - len(inputs)))


primitive("custom", "elementwise", grad=_custom_grad, reference=lambda node, raw, *rest: raw,
          emit=lambda k, raw, *rest: raw, cost=0)  # a custom Function's result: the value, then its inputs and saved tensors


@composite("to_dtype", 1, method=False, public=False, takes_complex=True)
def to_dtype(input: Value, dtype: DType) -> Value:
    """`input` converted to `dtype`."""
    return cast(input, dtype)


primitive("clone", "elementwise", grad=lambda g, y, x: g, reference=lambda node, x: x.copy(), emit=lambda k, x: x, cost=0)
clone = formula(
    "clone", lambda input, order=None: input.graph.add("clone", (input,), input.shape, input.dtype),
    "A copy of `input`; `order` says whether it lies in rows, which traces remember.", method=False, takes_complex=True,
)
stop_gradient = formula(
    "stop_gradient", lambda input: input.graph.add("detach", (input,), input.shape, input.dtype, differentiable=False),
    "`input`, as a constant for derive.", method=False, public=False, takes_complex=True,
)


@composite("with_value", 2, method=False, public=False, takes_complex=True)
def with_value(old: Value, new: Value) -> Value:
    """`new` with the gradient of `old`: the effect of writing through `.data`."""
    return old.graph.add("with_value", (old, expand(cast(new, old.dtype), old.shape)), old.shape, old.dtype)


primitive("rewritten", "elementwise", grad=lambda g, y, old, new: (g, None), reference=lambda node, old, new: new,
          emit=lambda k, old, new: new, cost=0)


def rewritten(old: Value, new: Value) -> Value:
    """`new`, a faster way to compute `old`, with the gradient of `old`."""
    return old.graph.add("rewritten", (old, new), old.shape, old.dtype)
