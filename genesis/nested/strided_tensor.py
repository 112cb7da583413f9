"""Nested tensors in the strided layout: tensors with equally many axes and any extents.

Their elements are concatenated in one buffer. Elementwise functions run on the buffer; others run on each tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from genesis.functions.methods.table import functions_of
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import Shape, normalize_axis, numel
from genesis.nested.nested_tensor import AnyNested, Ragged, Rule
from genesis.ops.registry import OPERATIONS
from genesis.tensor.composite import CompositeTensor, NotDenseError
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor

cat, stack = functions_of("cat", "stack")


class StridedNestedTensor(AnyNested):
    """A batch of tensors whose extents may differ, as `nested_tensor` makes it by default."""

    parts: ClassVar[tuple[str, ...]] = ("_buffer",)
    rules: ClassVar[dict[str, Rule]] = {}

    _buffer: Tensor  # (elements,)
    _sizes: tuple[Shape, ...]  # of each tensor

    # ---- what it is ----
    @property
    def shape(self) -> Any:
        """The extents; axes in which the tensors differ have a placeholder instead of a number."""
        extents = zip(*self._sizes, strict=True)
        return len(self._sizes), *[own[0] if len({*own}) == 1 else Ragged(own) for own in extents]

    @property
    def ndim(self) -> int:
        """The number of axes, the batch among them."""
        return 1 + len(self._sizes[0]) if self._sizes else 1

    def numel(self) -> int:
        """The number of elements of all tensors."""
        return self._buffer.numel()

    def size(self, dim: int | None = None) -> Any:  # type: ignore[override]
        """The extent of an axis. Raises ValueError if the tensors differ in it."""
        if dim is None:
            return self.shape
        axis = normalize_axis("size", dim, self.ndim)
        extent = self.shape[axis]
        if isinstance(extent, Ragged):
            raise ArgumentError(f"size: dimension {axis} is irregular and does not have a size: {list(extent.lengths)}")
        return extent

    def is_contiguous(self, memory_format: object = None) -> bool:
        """True: elements are contiguous."""
        return True

    def described(self) -> str: return f"a nested one of sizes {[[*size] for size in self._sizes]}"
    def __len__(self) -> int: return len(self._sizes)

    def __repr__(self) -> str:  # type: ignore[override]
        parts = [part.detach().requires_grad_(self.requires_grad) for part in self.unbind()]
        rows = ",\n".join("\n".join("  " + line for line in str(part).split("\n")) for part in parts)
        return f"nested_tensor([\n{rows}\n]{self.derivation()})"

    __str__ = __repr__

    # ---- others like it ----
    def with_elements(self, elements: Tensor) -> StridedNestedTensor:
        return strided_nested(elements, self._sizes)

    def written(self, value: Tensor) -> StridedNestedTensor:
        if not isinstance(value, StridedNestedTensor) or value._sizes != self._sizes:
            raise ArgumentError(f"in-place: {self.described()} cannot hold {_described(value)}")
        self._buffer.copy_(value._buffer)
        return self

    def copy_(self, src: Tensor, non_blocking: bool = False) -> StridedNestedTensor:
        """Write the elements of another one of the same sizes."""
        return self.written(src)

    def fill_(self, value: Any) -> StridedNestedTensor:
        """Write a number everywhere."""
        self._buffer.fill_(value)
        return self

    def is_same_size(self, other: Tensor) -> bool:
        """Whether another one has tensors of the same sizes."""
        return isinstance(other, StridedNestedTensor) and other._sizes == self._sizes

    def beside(self, name: str, other: Tensor) -> Tensor:
        """An operand for the buffer: the buffer of a tensor with equal sizes, or a number."""
        if isinstance(other, StridedNestedTensor) and other._sizes == self._sizes:
            return other._buffer
        if isinstance(other, CompositeTensor) or other.numel() != 1:
            raise ArgumentError(f"{name}: {self.described()} beside {_described(other)}; want equal sizes or one element")
        return other.reshape(())

    def to(self, *targets: Any, **settings: Any) -> Any:
        """The tensor in another dtype or on another device; itself where nothing changes."""
        buffer = self._buffer.to(*[t.derived_part if isinstance(t, CompositeTensor) else t for t in targets], **settings)
        return self if buffer is self._buffer else self.with_elements(buffer)

    # ---- its tensors ----
    def values(self) -> Tensor:
        """The elements of all tensors, end to end."""
        return self._buffer

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The tensors, views of the elements."""
        if normalize_axis("unbind", dim, self.ndim) != 0:
            raise ArgumentError(f"unbind: along axis 0 of a nested tensor, got {dim}")
        counts = [numel(size) for size in self._sizes]
        starts = [0, *np.cumsum(counts).tolist()]
        return tuple([self._buffer.narrow(0, start, count).view(size)
                      for start, count, size in zip(starts, counts, self._sizes, strict=False)])

    def _nested_tensor_size(self) -> Tensor:
        """The sizes, (batch, axes)."""
        return from_data(np.array(self._sizes, np.int64).reshape(len(self._sizes), self.ndim - 1))

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A dense tensor that holds the largest of each extent, with `padding` behind the others.

        Raises ValueError where `output_size` holds less.
        """
        largest = tuple(map(max, zip(*self._sizes, strict=True)))
        extents = largest if output_size is None else tuple(output_size)[1:]
        if len(extents) != len(largest) or any(a < b for a, b in zip(extents, largest, strict=True)):
            raise ArgumentError(f"to_padded_tensor: output_size is {output_size} for {self.described()}; want it to hold all")
        behind = [[n - own for n, own in zip(extents, size, strict=True)] for size in self._sizes]
        padded = [call(OPERATIONS["pad"], (part, [n for gap in reversed(gaps) for n in (0, gap)], "constant", padding))
                  for part, gaps in zip(self.unbind(), behind, strict=True)]
        return stack(padded)  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> Any:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if isinstance(first, int):
            return self.unbind()[first][tuple(rest)] if rest else self.unbind()[first]
        if first is Ellipsis:
            return strided_of([part[(Ellipsis, *rest)] for part in self.unbind()])
        if isinstance(first, slice):
            kept = self.unbind()[first]
            return strided_of([part[tuple(rest)] for part in kept] if rest else [*kept])
        raise ArgumentError(f"index: {index} of {self.described()}; want ints, slices and Ellipsis")


def _described(x: Tensor) -> str:
    return x.described() if isinstance(x, CompositeTensor) else f"a dense one of shape {tuple(x.shape)}"


def strided_nested(buffer: Tensor, sizes: Sequence[Shape]) -> StridedNestedTensor:
    """The nested tensor of these matching parts."""
    result = object.__new__(StridedNestedTensor)
    result._buffer, result._sizes = buffer, tuple(sizes)
    return result


def strided_of(tensors: Sequence[Tensor], dtype: Any = None, device: Any = None) -> StridedNestedTensor:
    """The nested tensor of these, end to end; gradients flow to them. Raises ValueError for unequal numbers of axes."""
    if not tensors:
        return strided_nested(from_data([], dtype, device=device), ())
    sizes = tuple([tuple(x.shape) for x in tensors])
    for number, size in enumerate(sizes):
        if len(size) != len(sizes[0]):
            met = f"tensor {number} has {len(size)} axes, the first {len(sizes[0])}"
            raise ArgumentError(f"nested_tensor: {met}; want the same dimension for all")
    kind = dtype or tensors[0].dtype
    buffer = cat([x.to(dtype=kind, device=device or tensors[0].device).reshape(-1) for x in tensors])
    return strided_nested(buffer, sizes)


def refused(x: Tensor, wish: str) -> NotDenseError:
    """The error for an operation without meaning for nested tensors."""
    assert isinstance(x, CompositeTensor)
    return NotDenseError(x, wish)
