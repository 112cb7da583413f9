"""Operations on all gradients of a step: clipping, and unscaling after a scaled loss.

They take and return sequences, so that all gradients are recorded as one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, or_

from genesis.ir.graph import Value
from genesis.ops.complex_primitives import squared_modulus
from genesis.ops.elementwise import clamp, isfinite, logical_not, sqrt
from genesis.ops.joining import stack
from genesis.ops.norms import vector_norm
from genesis.ops.reduction import any, sum
from genesis.ops.registry import cast, composite, widened

Values = Sequence[Value]
Scalar = Value | float


def _like(values: Values, models: Values) -> tuple[Value, ...]:
    """The values in the dtypes of their models."""
    return tuple(cast(v, m.dtype) for v, m in zip(values, models, strict=True))


@composite("clip_to_norm", (1,), method=False, public=False, takes_complex=True)
def clip_to_norm(gradients: Values, max_norm: Scalar, norm_type: float) -> tuple[Value, ...]:
    """The norm of all gradients taken as one vector, then the gradients scaled down to `max_norm` where it is larger."""
    grads = [widened(g) for g in gradients]
    if norm_type == 2:
        total = sqrt(reduce(add, [sum(squared_modulus(g)) for g in grads]))
    else:
        total = vector_norm(stack([vector_norm(g, norm_type) for g in grads]), norm_type)
    scale = clamp(max_norm / (total + 1e-6), max=1.0)
    return total, *_like([g * scale for g in grads], gradients)


@composite("clip_to_value", (1, 2), method=False, public=False)
def clip_to_value(gradients: Values, low: Scalar, high: Scalar) -> tuple[Value, ...]:
    """The gradients clamped to [low, high]."""
    return tuple(clamp(g, min=low, max=high) for g in gradients)


@composite("unscale", (1,), method=False, public=False)
def unscale(gradients: Values, inverse: Scalar) -> tuple[Value, ...]:
    """Whether any gradient has an infinity or NaN, then the gradients times `inverse`."""
    overflow = reduce(or_, [any(logical_not(isfinite(g))) for g in gradients])
    return overflow, *_like([g * inverse for g in gradients], gradients)
