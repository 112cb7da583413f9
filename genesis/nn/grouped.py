"""Grouped matrix products, and convolutions of sequences whose first axis is time."""

from __future__ import annotations

from itertools import pairwise

from genesis.functions.overrides import overridable
from genesis.ir.dtypes import DType
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor


@overridable
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor | None, pad: int = 0) -> Tensor:
    """The convolution of `input` (time, n, in) with `weight` (width, in, out), and `bias` (out,): (time, n, out).

    >>> conv_tbc(genesis.ones(3, 1, 2), genesis.ones(2, 2, 1), genesis.zeros(1)).flatten()
    tensor([4., 4.])
    """
    if input.ndim != 3 or weight.ndim != 3 or input.shape[2] != weight.shape[1]:
        raise ValueError(f"conv_tbc: input {input.shape} and weight {weight.shape}; want (time, n, in) and (width, in, out)")
    result = call(OPERATIONS["conv1d"], (input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad))
    return result.permute(2, 0, 1)  # type: ignore[no-any-return]


@overridable
def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: DType | None = None
) -> Tensor:
    """A matrix product per group, as in a mixture of experts.

    Args:
        mat_a, mat_b: (g, m, k) and (g, k, n), a matrix per group. One or both may have two axes: then `offs` has the ends of
            the groups' rows of `mat_a`, columns of `mat_b`, or, if both have two axes, inner indices.
        offs: (g,) ints, which are read.
        out_dtype: the result's dtype.

    Returns (g, m, n), without g where groups are parts of one axis of the result. Raises ValueError for mismatched
    shapes.

    >>> a, b = genesis.ones(3, 2), genesis.stack([genesis.ones(2, 1), 2 * genesis.ones(2, 1)])
    >>> grouped_mm(a, b, offs=genesis.tensor([1, 3], dtype=genesis.int32)).flatten()
    tensor([2., 4., 4.])
    """
    if {mat_a.ndim, mat_b.ndim} - {2, 3} or (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise ValueError(f"grouped_mm: {mat_a.shape} and {mat_b.shape}; want (g, m, k) and (g, k, n), or two axes and offs")
    if offs is None:
        result = mat_a @ mat_b
    else:
        parts = [*pairwise([0, *offs.tolist()])]
        left = [mat_a[start:end] if mat_b.ndim == 3 else mat_a[:, start:end] for start, end in parts]
        right = [mat_b[:, start:end] if mat_a.ndim == 3 else mat_b[start:end] for start, end in parts]
        groups = range(len(parts))
        products = [(left[g] if mat_a.ndim == 2 else mat_a[g]) @ (right[g] if mat_b.ndim == 2 else mat_b[g]) for g in groups]
        joined = ("stack", 0) if mat_a.ndim == mat_b.ndim else ("cat", 0 if mat_a.ndim == 2 else 1)
        result = call(OPERATIONS[joined[0]], (products, joined[1]))
    result = result if bias is None else result + bias
    return result if out_dtype is None else result.to(out_dtype)
