"""One row per operation: signature, shapes and dtypes, gradient, reference, kind."""

from genesis.ops import (
    activation, arithmetic, arrangement, complex_operations, complex_primitives, complex_rules, contraction, conversion,
    convolution, ctc, decompositions, definite, densities, distance, elementwise, elimination, fourier, histograms,
    indefinite, indexing, joining, loss, normalization, norms, numbers, optimize, ordering, polynomials,
    pooling, products, quantiles, quantization, reduction, reflections, resample, running, sampling, scatter_reduction,
    sequences, short_time_fourier, solving, source, special, statistics, tables, view_gradient, views,
    window,
)
from genesis.ops.registry import OPERATIONS, PRIMITIVES, Operation, Primitive

__all__ = ["OPERATIONS", "PRIMITIVES", "Operation", "Primitive"]  # and every row's function
