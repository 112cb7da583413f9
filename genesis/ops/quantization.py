"""Products of float32 rows with int8 weights that have one scale per output.

Each row is quantized dynamically, by its own largest magnitude, to integers from -127 to 127. Integer sums are exact, so a
result does not depend on the order of addition.
"""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import float32, int8
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import numel
from genesis.ops.registry import composite, primitive
from genesis.ops.views import reshape_value

LEVELS = 127
LEAST = 2.0**-120  # rows with smaller magnitudes count as zeros: LEVELS / magnitude could be infinite
LONGEST = (2**31 - 1) // (LEVELS * 128)  # this many terms always fit an int32 sum


def _reference(
    node: Node, rows: np.ndarray, weight: np.ndarray, scale: np.ndarray, bias: np.ndarray | None = None
) -> np.ndarray:
    """Rounds in the same order as the kernels."""
    levels = np.float32(LEVELS)
    largest = np.abs(rows).max(-1, keepdims=True, initial=0)
    finite = largest < np.inf
    with np.errstate(all="ignore"):
        steps = np.where(finite & (largest >= LEAST), levels / largest, np.float32(0))
    integers = np.rint(np.where(finite, rows, np.float32(0)) * steps)
    sums = integers.astype(np.float64) @ np.swapaxes(weight, -1, -2).astype(np.float64)  # exact below 2^53
    y = sums.astype(np.float32) * scale[..., None, :] * np.where(finite, largest / levels, np.float32(np.nan))
    return y if bias is None else y + bias[..., None, :]


primitive("linear_dynamic", "host", reference=_reference, contiguous=True, native=True)


@composite("linear_dynamic", (), method=False, public=False)
def linear_dynamic(input: Value, weight: Value, scale: Value, bias: Value | None = None) -> Value:
    """`input` (.., in) times `weight` (out, in) of int8 and `scale` (out,), plus `bias` (out,), with quantized rows.

    A row with NaN or an infinity gives NaN. Raises TypeError for other dtypes, ValueError for mismatched shapes or
    more than 132,104 terms.
    """
    if weight.dtype is not int8:
        raise TypeError(f"linear_dynamic: the weight is of dtype {weight.dtype.name}; want int8")
    floats = {"input": input, "scale": scale} | ({} if bias is None else {"bias": bias})
    for name, value in floats.items():
        if value.dtype is not float32:
            raise TypeError(f"linear_dynamic: {name} is of dtype {value.dtype.name}; want float32")
    if weight.ndim != 2 or input.shape[-1:] != weight.shape[1:]:
        raise ValueError(
            f"linear_dynamic: input {input.shape} does not fit weight {weight.shape}; want input (.., {weight.shape[-1]})")
    out, terms = weight.shape
    if any([v.shape != (out,) for name, v in floats.items() if name != "input"]):
        raise ValueError(f"linear_dynamic: scale and bias want the shape ({out},) for weight {weight.shape}")
    if terms > LONGEST:
        raise ValueError(f"linear_dynamic: {terms} terms may exceed int32; want at most {LONGEST}")
    rows = reshape_value(input, (numel(input.shape[:-1]), terms))
    operands = (rows, weight, scale) if bias is None else (rows, weight, scale, bias)
    y = input.graph.add("linear_dynamic", operands, (rows.shape[0], out), float32)
    return reshape_value(y, (*input.shape[:-1], out))
