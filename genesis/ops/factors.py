"""What decompositions share: LAPACK matrix by matrix, and several factors in one node.

A decomposition is one host operation; its factors lie one after the other along the last axis of its node, and are views.
The attribute `dim` is the number of leading axes. Small ints among factors (pivots, places) are exact in any floating dtype.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.registry import cast, widened
from genesis.ops.source import iota
from genesis.ops.views import reshape_value, slice_value

__all__ = ["factor_node", "factors", "identity", "matrices", "packed", "routine"]


def matrices(name: str, x: Value, square: bool = False) -> Value:
    """`x`, matrices on its last two axes, in the dtype that LAPACK computes in."""
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ValueError(f"{name}: shape {x.shape}; want {'(.., n, n)' if square else '(.., m, n)'}")
    if not x.dtype.is_floating_point:
        raise TypeError(f"{name}: wants a floating tensor, got {x.dtype.name}; convert with .to(genesis.float32)")
    return widened(x)


def identity(like: Value) -> Value:
    """The identity of as many columns as the matrices `like` have, in their dtype."""
    places = iota(like.graph, like.shape[-1])
    return cast(reshape_value(places, (like.shape[-1], 1)) == places, like.dtype)


def routine(name: str, array: np.ndarray) -> Callable[..., Any]:
    """The routine of BLAS or LAPACK, by its name without the letter of a dtype, for the dtype of `array`."""
    linalg = importlib.import_module("scipy.linalg")
    library = linalg.blas if name == "trsm" else linalg.lapack
    return getattr(library, ("s" if array.dtype == np.float32 else "d") + name)


def packed(parts: Sequence[np.ndarray], lead: int) -> np.ndarray:
    """The factors one after the other, behind `lead` axes."""
    return np.concatenate([f.reshape(*f.shape[:lead], numel(f.shape[lead:])) for f in parts], axis=-1)


def factor_node(name: str, x: Value, shapes: Sequence[Shape], **attrs: Any) -> Value:
    """The node of a decomposition of the matrices `x` into factors of these shapes."""
    lead = x.shape[:-2]
    total = sum(map(numel, shapes))
    return x.graph.add(name, (x,), (*lead, total), x.dtype, {"dim": len(lead), **attrs})


def factors(node: Value, shapes: Sequence[Shape]) -> list[Value]:
    """The factors of the given shapes behind the leading axes."""
    lead = node.shape[:-1]
    ends = [*accumulate(map(numel, shapes), initial=0)]
    return [
        reshape_value(slice_value(node, len(lead), start, end), (*lead, *shape))
        for start, end, shape in zip(ends, ends[1:], shapes, strict=False)
    ]
