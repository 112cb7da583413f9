"""Numbers brought to mean 0 and variance 1: what the norms over rows, channels and batches share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.ir.graph import Value
from genesis.ops.elementwise import rsqrt
from genesis.ops.reduction import mean
from genesis.ops.registry import expand, primitive

__all__ = ["normalized"]


def _grad(g: Value, y: Value, value: Value, x: Value, scale: Value) -> tuple[Value | None, ...]:
    """scale * (g - mean(g) - y mean(g y)): what follows from the parts as well, but with both means in one pass."""
    axes = tuple([axis + x.ndim for axis in y.node.attrs["axes"]])
    slope = g - y * mean(g * y, axes, True)
    return None, (slope - mean(g, axes, True) if y.node.attrs["centred"] else slope) * scale, None


# Its value, what it is derived by, and the factor; `axes` are counted from the last one.
primitive("normalized", "elementwise", grad=_grad, reference=lambda node, value, x, scale: value,
          emit=lambda k, value, x, scale: value, cost=0)


def normalized(x: Value, axes: Sequence[int], eps: float, centred: bool = True) -> Value:
    """(x - mean) / sqrt(variance + eps) over `axes`; or, not `centred`, x / sqrt(mean of squares + eps)."""
    axes = tuple(axes)
    rest: Any = x - mean(x, axes, True) if centred else x
    scale = rsqrt(mean(rest * rest, axes, True) + eps)
    attrs = {"axes": tuple([axis - x.ndim for axis in axes]), "centred": centred}
    return x.graph.add("normalized", (rest * scale, x, expand(scale, x.shape)), x.shape, x.dtype, attrs)
