"""One definition per operation, in one place: signature, shapes and dtypes, gradient, reference, kind."""

from genesis.ops import (
    activation,
    arithmetic,
    attention,
    channel_norm,
    contraction,
    conversion,
    convolution,
    distance,
    einstein,
    elementwise,
    indexing,
    joining,
    loss,
    neural,
    norms,
    optimize,
    ordering,
    pooling,
    products,
    recurrent,
    reduction,
    resample,
    source,
    subscript,
    view_gradient,
    views,
    window,
)
from genesis.ops.registry import OPERATIONS, PRIMITIVES, Operation, Primitive

__all__ = [
    "OPERATIONS", "PRIMITIVES", "Operation", "Primitive", "activation", "arithmetic", "attention", "channel_norm",
    "contraction", "conversion", "convolution", "distance", "einstein", "elementwise", "indexing", "joining", "loss",
    "neural", "norms", "optimize", "ordering", "pooling", "products", "recurrent", "reduction", "resample", "source",
    "subscript", "view_gradient", "views", "window",
]
