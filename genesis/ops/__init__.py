"""One definition per operation, in one place: signature, shapes and dtypes, gradient, reference, kind."""

from genesis.ops import (
    contraction,
    elementwise,
    indexing,
    loss,
    neural,
    optimize,
    ordering,
    reduction,
    source,
    subscript,
    views,
)
from genesis.ops.registry import OPERATIONS, PRIMITIVES, Operation, Primitive

__all__ = [
    "OPERATIONS", "PRIMITIVES", "Operation", "Primitive", "contraction", "elementwise", "indexing", "loss",
    "neural", "optimize", "ordering", "reduction", "source", "subscript", "views",
]
