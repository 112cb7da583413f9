"""The operations that make complex numbers of their parts and back, and which nodes support complex numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from genesis.ir.dtypes import DType, float16, float32, float64
from genesis.ir.errors import UnsupportedTypeError
from genesis.ir.graph import Node, Value
from genesis.ops.complex_primitives import complex_value, conjugate, imag_value, real_value
from genesis.ops.complex_rules import RULES
from genesis.ops.elementwise import cos, sin
from genesis.ops.joining import stack
from genesis.ops.layout import Layout, contiguous_layout, select_layout
from genesis.ops.registry import PRIMITIVES, broadcast, composite
from genesis.ops.views import put_value, view_node, view_value


@composite("real_parts", ref=np.real, method=False, public=False, takes_complex=True)
def real_parts(input: Value) -> Value:
    """The real parts."""
    return real_value(input)


@composite("imaginary_parts", ref=np.imag, method=False, public=False, takes_complex=True)
def imaginary_parts(input: Value) -> Value:
    """The imaginary parts."""
    return imag_value(input)


@composite("conjugates", ref=np.conj, method=False, public=False, takes_complex=True)
def conjugates(input: Value) -> Value:
    """The conjugates."""
    return conjugate(input)


def _parts(name: str, kinds: Sequence[DType], *parts: Value) -> list[Value]:
    dtype = parts[0].dtype
    if any(x.dtype is not dtype for x in parts) or dtype not in kinds:
        got, wanted = " and ".join(x.dtype.name for x in parts), ", ".join(kind.name for kind in kinds)
        raise TypeError(f"{name}: wants two tensors of one dtype of {wanted}, got {got}")
    return broadcast(name, *parts)


@composite("complex", 2, method=False)
def complex(real: Value, imag: Value) -> Value:
    """Complex numbers from real and imaginary parts: complex32 of float16, complex64 of float32, complex128 of float64.

    Raises TypeError for other dtypes, or two different ones.

    >>> genesis.complex(genesis.tensor([1.0, 2.0]), genesis.tensor([0.0, -1.0]))
    tensor([1.+0.j, 2.-1.j])
    """
    return complex_value(*_parts("complex", (float16, float32, float64), real, imag))


@composite("polar", 2, method=False)
def polar(abs: Value, angle: Value) -> Value:
    """Complex numbers from moduli and angles, float32 or float64. Raises as `complex`.

    >>> genesis.polar(genesis.tensor([1.0, 2.0]), genesis.tensor([0.0, 3.14159265 / 2])).imag
    tensor([0., 2.])
    """
    size, turn = _parts("polar", (float32, float64), abs, angle)
    return complex_value(size * cos(turn), size * sin(turn))


@composite("view_as_real", method=False, public=False, takes_complex=True)
def view_as_real(input: Value) -> Value:
    """Real and imaginary parts along a new last axis."""
    return stack([real_value(input), imag_value(input)], -1)


@composite("view_as_complex", method=False, public=False)
def view_as_complex(input: Value) -> Value:
    """The last axis, of extent 2, as complex numbers."""
    at = contiguous_layout(input.shape)
    return complex_value(*[view_node(input, select_layout(at, -1, part), "select") for part in (0, 1)])


# ---- views across dtypes: each layout counts in its own dtype's elements ----
def in_parts(at: Layout) -> Layout:
    """A layout of complex elements as one of their parts, which are the last axis."""
    return Layout((*at.shape, 2), (*[2 * s for s in at.strides], 1), 2 * at.offset)


@composite("part_at", method=False, public=False, takes_complex=True)
def part_at(input: Value, at: Layout, dtype: DType) -> Value:
    """`input` read at the layout of a view of another dtype: the parts of complex numbers, or complex numbers of parts."""
    if dtype.is_complex:
        return view_as_complex(view_value(input, in_parts(at), "view"))
    return view_value(view_as_real(input), at, "view")


@composite("put_part", 2, method=False, public=False, takes_complex=True)
def put_part(base: Value, value: Value, at: Layout) -> Value:
    """`base` with `value` written at the layout of a view of the value's dtype."""
    if value.dtype.is_complex:
        return put_value(base, view_as_real(value), in_parts(at), base.shape)
    parts = view_as_real(base)
    return view_as_complex(put_value(parts, value, at, parts.shape))


# ---- which primitives support complex numbers ----
# Kinds of primitives that only move elements.
_MOVED = frozenset(("gather", "put", "cat", "source", "view", "collective"))
_PASSED_ON = frozenset(("custom", "detach", "variable", "clone", "kept_in_parts", "rewritten", "with_value"))
# Host operations whose references support complex numbers.
_HOST = frozenset((
    "recurrence", "cumprod", "fft_complex", "fft_from_real", "fft_to_real", "solve", "inv", "det", "cofactors", "slogdet",
    "matrix_exp", "pinv", "solve_triangular", "cholesky_ex", "lu_factor_ex", "qr", "eigh", "svd", "eig", "geqrf",
    "eigvals", "eigvalsh", "svdvals", "ldl_factor_ex", "ldl_solve", "least_squares", "logcumsumexp", "nonzero_indices",
    "windows_reach",
))


def refuse_complex(name: str, nodes: Sequence[Node], start: int) -> None:
    """Raise TypeError, naming the operation, if a node from `start` on does not support complex numbers."""
    for node in nodes[start:]:
        if not (node.dtype.category == 3 or any([nodes[i].dtype.category == 3 for i in node.inputs])):
            continue
        if node.op not in RULES and node.op not in _PASSED_ON | _HOST and PRIMITIVES[node.op].kind not in _MOVED:
            raise UnsupportedTypeError(
                f"{name}: takes real numbers, got complex ones; take their real or imag, abs() or angle()")
