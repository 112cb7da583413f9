"""Views of complex tensors: their parts as real ones, pairs of real numbers as complex ones, and conjugates.

Such a view shares its root's storage. Its layout counts elements of its own dtype; a complex one is two real ones. A view of
conjugates has an element map, which is applied to reads from the root and writes to it; so has a view of the imaginary parts of
conjugates, which are the negatives of the stored ones.
"""

from __future__ import annotations

from genesis.ir.errors import ArgumentError
from genesis.ops.complex_operations import in_parts
from genesis.ops.layout import Layout
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import LAZY, Tensor
from genesis.tensor.view_memory import make_view
from genesis.tracing.trace import LOCK


def part_view(tensor: Tensor, name: str) -> Tensor:
    """The result of the operation `name`, as a view of the storage of `tensor`."""
    mapped = tensor._element_map
    if mapped is not None and name in ("view_as_real", "view_as_complex"):
        raise RuntimeError(f"{name}: {LAZY[mapped]} cannot be seen in parts or pairs; clone() has elements of its own")
    with LOCK:
        array_of(tensor)
        at = tensor.storage_layout
        if name == "view_as_complex":
            shape, strides = at.shape[:-1], at.strides[:-1]
            if at.shape[-1:] != (2,) or at.strides[-1] != 1 or at.offset % 2 or any(s % 2 for s in strides):
                raise ArgumentError(
                    f"view_as_complex: shape {at.shape}, strides {at.strides}, offset {at.offset}; want pairs of neighbours "
                    "along the last axis, and even strides; clone() has them"
                )
            at = Layout(shape, tuple([s // 2 for s in strides]), at.offset // 2)
        else:
            at = in_parts(at)
            if name != "view_as_real":
                at = Layout(at.shape[:-1], at.strides[:-1], at.offset + (name == "imaginary_parts"))
        return _view(tensor, name, at, "neg" if mapped is not None and name == "imaginary_parts" else None)


def conjugate_view(tensor: Tensor) -> Tensor:
    """The conjugate of a complex tensor, as a view of its storage."""
    with LOCK:
        array_of(tensor)
        return _view(tensor, "conjugates", tensor.storage_layout, "conjugates" if tensor._element_map is None else None)


def _view(tensor: Tensor, name: str, at: Layout, element_map: str | None) -> Tensor:
    result: Tensor = call(OPERATIONS[name], (tensor,))
    make_view(result, tensor, at, element_map)
    return result
