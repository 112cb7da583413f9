"""One definition per operation, in one place: signature, shapes and dtypes, gradient, reference, kind."""

from genesis.ops import (
    contraction,
    conversion,
    elementwise,
    indexing,
    joining,
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
    "OPERATIONS", "PRIMITIVES", "Operation", "Primitive", "contraction", "conversion", "elementwise", "indexing", "joining",
    "loss", "neural", "optimize", "ordering", "reduction", "source", "subscript", "views",
]
