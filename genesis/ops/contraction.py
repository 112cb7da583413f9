"""Matrix products: one primitive, `matmul`, of operands (batch.., m, k) and (batch.., k, n) with equal batch extents.

Its attribute `only`, "n<=m" say, is a promise about a[m, k] * b[k, n]: those for which it does not hold are zeros, or
belong to elements [m, n] of the result that nobody reads. They may be left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.ir.graph import Value
from genesis.ir.shapes import broadcast_shapes, numel
from genesis.ops.registry import composite, expand, primitive, promoted
from genesis.ops.views import permute_value, reshape_value

__all__ = ["bilinear", "linear", "matmul", "multiplied"]


def swapped(x: Value) -> Value:
    """The last two axes exchanged."""
    return permute_value(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def product(a: Value, b: Value, only: str = "") -> Value:
    """The matmul node of two operands that fit."""
    return a.graph.add("matmul", (a, b), (*a.shape[:-1], b.shape[-1]), a.dtype, {"only": only} if only else {})


def exchanged(only: str, axes: str) -> str:
    """The promise about the same products where two of the axes have exchanged their names."""
    return only.translate(str.maketrans(axes, axes[::-1]))


def _gradients(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    """Those of the operands. Elements that are zeros get no gradient that counts, those that nobody reads send none."""
    only = y.node.attrs.get("only", "")
    return product(g, swapped(b), exchanged(only, "nk")), product(swapped(a), g, exchanged(only, "mk"))


def _reference(node: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if node.dtype.compute is not node.dtype:
        a, b = a.astype(np.float32), b.astype(np.float32)
    return np.matmul(a, b).astype(node.dtype.numpy)


primitive("matmul", "contract", grad=_gradients, reference=_reference)


@composite("matmul", 2, operator="matmul", ref=np.matmul, autocast="low", namespace="linalg")
def matmul(input: Value, other: Value) -> Value:
    """The matrix product: vectors and matrices as NumPy's `@`, leading axes broadcast.

    Args:
        input: (.., m, k), or (k,).
        other: (.., k, n), or (k,), of the same dtype.

    Returns:
        (.., m, n), without the axis that a vector lacks. Raises ValueError where the inner extents differ, TypeError where
        the dtypes do.

    >>> import genesis
    >>> a = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> genesis.matmul(a, genesis.tensor([1.0, -1.0]))
    tensor([-1., -1.])
    """
    return multiplied(input, other)


def multiplied(input: Value, other: Value, only: str = "") -> Value:
    """`matmul` of operands of which only some products count."""
    a, b = promoted(input, other)
    if a.dtype is not input.dtype or b.dtype is not other.dtype:
        raise TypeError(f"matmul: dtypes differ: {input.dtype.name} and {other.dtype.name}; convert one with .to(dtype)")
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"matmul: operands must have an axis at least, got shapes {a.shape} and {b.shape}")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        want = f"(.., {a.shape[-1]}, n)" if b.ndim > 1 else f"({a.shape[-1]},)"
        raise ValueError(f"matmul: inner extents differ: {a.shape} @ {b.shape}; want {want} on the right")
    left, right = a, b
    if left.ndim == 1:
        left = reshape_value(left, (1, *left.shape))
    if right.ndim == 1:
        right = reshape_value(right, (*right.shape, 1))
    rows, columns = left.shape[-2], right.shape[-1]
    if right.ndim == 2 and left.ndim > 2 and not only:
        y = product(reshape_value(left, (numel(left.shape[:-1]), inner)), right)
        y = reshape_value(y, (*left.shape[:-1], columns))
    else:
        batch = broadcast_shapes("matmul", left.shape[:-2], right.shape[:-2])
        y = product(expand(left, (*batch, rows, inner)), expand(right, (*batch, inner, columns)), only)
    shape = y.shape
    if b.ndim == 1:
        shape = shape[:-1]
    if a.ndim == 1:
        shape = shape[:-2] + shape[-1:] if b.ndim > 1 else ()
    return reshape_value(y, shape)


@composite("linear", 3, method=False, autocast="low", namespace="nn.functional")
def linear(input: Value, weight: Value, bias: Value | None = None) -> Value:
    """`input @ weight.T + bias` for `input` (.., in), `weight` (out, in) and `bias` (out,).

    Raises ValueError where the last extents of `input` and `weight` differ.

    >>> import genesis
    >>> genesis.nn.functional.linear(genesis.ones(2, 3), genesis.ones(1, 3), genesis.ones(1))
    tensor([[4.],
            [4.]])
    """
    if weight.ndim != 2 or input.shape[-1:] != weight.shape[1:]:
        raise ValueError(
            f"linear: input {input.shape} does not fit weight {weight.shape}; want input (.., {weight.shape[-1]})"
        )
    y = matmul(input, swapped(weight))
    return y if bias is None else y + bias


@composite("bilinear", 4, method=False, autocast="widest", namespace="nn.functional")
def bilinear(input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """input1 @ weight[k] @ input2 + bias[k]: (.., a), (.., b) and `weight` (out, a, b) -> (.., out).

    Raises ValueError where the extents differ.
    """
    fits = (*input1.shape[-1:], *input2.shape[-1:]) == weight.shape[1:] and input1.shape[:-1] == input2.shape[:-1]
    if weight.ndim != 3 or not fits:
        raise ValueError(f"bilinear: inputs {input1.shape} and {input2.shape} do not fit weight {weight.shape}")
    lead = input1.shape[:-1]
    out, a, b = weight.shape
    rows = reshape_value(input1, (numel(lead), a))
    mixed = product(rows, reshape_value(permute_value(weight, (1, 0, 2)), (a, out * b)))
    pairs = product(reshape_value(mixed, (numel(lead), out, b)), reshape_value(input2, (numel(lead), b, 1)))
    y = reshape_value(pairs, (*lead, out))
    return y if bias is None else y + bias
