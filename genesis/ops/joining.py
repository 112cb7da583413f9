"""Joining: several tensors as one, along an axis that they have or a new one; and one rolled, its end before its beginning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.ir.graph import Value
from genesis.ir.shapes import normalize_axis, numel
from genesis.ops.registry import composite, primitive, promoted
from genesis.ops.views import reshape_value, slice_value

__all__ = ["cat", "roll", "stack"]


def _cat_reference(node: Any, *arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, axis=node.attrs["dim"])


def _cat_grad(g: Value, y: Value, *inputs: Value) -> Any:
    dim, start, grads = y.node.attrs["dim"], 0, []
    for x in inputs:
        end = start + x.shape[dim]
        grads.append(slice_value(g, dim, start, end))
        start = end
    return tuple(grads)


primitive("cat", "cat", grad=_cat_grad, reference=_cat_reference)


@composite("cat", 1, variadic=True, method=False, autocast="widest", aliases=("concat", "concatenate"))
def cat(tensors: Sequence[Value], dim: int = 0) -> Value:
    """The tensors one after the other along `dim`.

    They are promoted to one dtype and have equal extents along other axes; ones of shape (0,) are left out. Raises
    ValueError for other shapes and for no tensors at all.

    >>> import genesis
    >>> genesis.cat([genesis.zeros(2), genesis.ones(1)])
    tensor([0., 0., 1.])
    """
    if not tensors:
        raise ValueError("cat: wants one tensor at least")
    values = [v for v in promoted(*tensors) if v.shape != (0,)] or promoted(*tensors)[:1]
    first = values[0]
    if first.ndim == 0:
        raise ValueError("cat: 0-d tensors cannot be joined; use stack")
    axis = normalize_axis("cat", dim, first.ndim)
    for v in values:
        if v.ndim != first.ndim or any(
            a != axis and e != f for a, (e, f) in enumerate(zip(v.shape, first.shape, strict=False))
        ):
            raise ValueError(f"cat: shapes {first.shape} and {v.shape} differ outside dim {dim}")
    if len(values) == 1:
        return first
    total = sum(v.shape[axis] for v in values)
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    return first.graph.add("cat", values, shape, first.dtype, {"dim": axis})


@composite("stack", 1, variadic=True, method=False, autocast="widest")
def stack(tensors: Sequence[Value], dim: int = 0) -> Value:
    """The tensors of one shape along a new axis `dim`.

    Raises ValueError where the shapes differ and for no tensors at all.

    >>> import genesis
    >>> genesis.stack([genesis.tensor([1, 2]), genesis.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if not tensors:
        raise ValueError("stack: wants one tensor at least")
    shape = tensors[0].shape
    if any(v.shape != shape for v in tensors):
        raise ValueError(f"stack: shapes differ: {', '.join(str(v.shape) for v in tensors)}; want them equal")
    axis = normalize_axis("stack", dim, len(shape) + 1)
    return cat([reshape_value(v, (*shape[:axis], 1, *shape[axis:])) for v in tensors], axis)


@composite("roll")
def roll(input: Value, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Value:
    """The elements moved by `shifts` along `dims`, those that leave at one end entering at the other.

    Without `dims`, along the flattened tensor. Raises ValueError unless there is one shift for each axis.

    >>> import genesis
    >>> genesis.roll(genesis.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    moves = [shifts] if isinstance(shifts, int) else [*shifts]
    if dims is None:
        flat = roll(reshape_value(input, (numel(input.shape),)), moves, [0] * len(moves))
        return reshape_value(flat, input.shape)
    axes = [dims] if isinstance(dims, int) else [*dims]
    if len(moves) != len(axes):
        raise ValueError(f"roll: {len(moves)} shifts for {len(axes)} dims; want one each")
    x = input
    for move, dim in zip(moves, axes, strict=True):
        axis = normalize_axis("roll", dim, x.ndim)
        extent = x.shape[axis] if x.ndim else 1
        if extent and move % extent:
            cut = extent - move % extent
            x = cat([slice_value(x, axis, cut, extent), slice_value(x, axis, 0, cut)], axis)
    return x
