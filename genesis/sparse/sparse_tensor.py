"""Sparse tensors: the positions and values of the elements that are not zero, both ordinary tensors.

Whatever the layout, the coordinates of all elements are there; compressed layouts have pointers besides, and their elements
in order. Operations are written with ordinary ones on positions and elements, so they fuse, differentiate and compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from genesis.functions.methods.conversion import values_of
from genesis.functions.methods.table import functions_of
from genesis.functions.selection import unique
from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, as_dtype, bool_, int64
from genesis.ir.errors import ArgumentError
from genesis.ir.replayable import replayable_module
from genesis.ir.shapes import Shape, numel
from genesis.ir.sparse_layouts import SparseLayout, sparse_coo, sparse_csr
from genesis.runtime.devices import DeviceLike
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.handle import CallArguments, Tensor
from genesis.tracing.state import thread_state

(stack,) = functions_of("stack")

RULES: dict[str, Callable[..., Any]] = {}  # by the names of operations: what they mean where an argument is sparse


class SparseTensor(CompositeTensor):
    """A tensor of which most elements are zero, as `sparse_coo_tensor` and its kin make it.

    Its elements may be tensors themselves (of the last `dense_dim` axes), and several may have one position: they count
    together. Gradients by it are sparse tensors with its positions.
    """

    parts: ClassVar[tuple[str, ...]] = "_elements", "_positions", "_pointers"
    hint: ClassVar[str] = "to_dense() makes one, values() and indices() are what it is made of"

    _positions: Tensor  # (sparse_dim, nnz), int64
    _elements: Tensor  # (nnz, ..)
    _pointers: Tensor | None  # (extent + 1,): where each row, or column, begins among the elements
    _extents: Shape
    _kind: SparseLayout
    _is_coalesced: bool  # positions are in order, and each is there once

    # ---- what it is ----

    @property
    def shape(self) -> Shape:
        """The extents, as a tuple of ints."""
        return self._extents

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._extents)

    @property
    def layout(self) -> Any:
        """How it says where its elements are: `sparse_coo`, `sparse_csr` or `sparse_csc`."""
        return self._kind

    is_sparse = property(lambda self: self._kind is sparse_coo)
    is_sparse_csr = property(lambda self: self._kind is sparse_csr)

    @property
    def extents(self) -> Shape:
        """Those of the axes that are sparse."""
        return self._extents[: self._positions.shape[0]]

    def described(self) -> str:
        return f"a {self._kind.name} one of shape {tuple(self._extents)}"

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: elements do not lie side by side."""
        return (0,) * self.ndim if dim is None else 0

    def is_contiguous(self, memory_format: object = None) -> bool:
        """No."""
        return False

    # ---- gradients ----

    def gradient_of(self, gradient: Tensor) -> SparseTensor:
        """The gradient by it whose elements are `gradient`: each position counts once."""
        found = self.with_elements(gradient)
        if self._is_coalesced or self._kind is not sparse_coo:
            return found
        often = coalesced(self.with_elements(gradient.new_ones(gradient.shape)))
        found = coalesced(found)
        return found.with_elements(found._elements / often._elements)

    # ---- others like it ----

    def with_elements(self, elements: Tensor) -> SparseTensor:
        """Other elements in the same positions."""
        extents = (*self.extents, *elements.shape[1:])
        return sparse(self._positions, elements, extents, self._is_coalesced, self._kind, self._pointers)

    def computed(self, name: str, arguments: CallArguments, attributes: Attributes) -> Any:
        rule = RULES.get(name)
        return super().computed(name, arguments, attributes) if rule is None else rule(*arguments, **attributes)

    def written(self, value: Tensor) -> Tensor:
        if not isinstance(value, SparseTensor) or value.shape != self.shape:
            met = value.described() if isinstance(value, SparseTensor) else f"a dense one of shape {value.shape}"
            raise ArgumentError(f"in-place: the result is {met}; {self.described()} cannot hold it")
        leaf = self.requires_grad and self.is_leaf
        if leaf and thread_state.grad_enabled:
            raise RuntimeError("a leaf tensor that requires grad cannot be changed in place; wrap it in genesis.no_grad()")
        vars(self).update(vars(in_layout(value, self._kind)))
        if leaf:
            self.requires_grad = True
        return self

    def zero_(self) -> Tensor:
        """Drop all elements."""
        return self.written(self.zeros())

    def zeros(self) -> SparseTensor:
        """A tensor without elements, of this one's shape, dtype and layout."""
        none = sparse(self._positions[:, :0], self._elements[:0].detach(), self._extents, True)
        return in_layout(none, self._kind)

    def clone(self, *, memory_format: object = None) -> SparseTensor:
        """A copy, through which gradients flow."""
        return self.with_elements(self._elements.clone())

    def to(self, *targets: Any, **settings: Any) -> Any:
        """The tensor in another dtype, on another device, or in another layout; itself where nothing changes."""
        targets = tuple([t._elements if isinstance(t, SparseTensor) else t for t in targets])
        elements = self._elements.to(*targets, **settings)
        return self if elements is self._elements else self._moved(elements, elements.device)

    def _moved(self, elements: Tensor, device: DeviceLike) -> SparseTensor:
        pointers = None if self._pointers is None else self._pointers.to(device)
        positions = self._positions.to(device)
        return sparse(positions, elements, self._extents, self._is_coalesced, self._kind, pointers)

    def type(self, dtype: DType | str | None = None) -> Any:
        """The tensor as `dtype`; without one, the name of its kind."""
        if dtype is None:
            return str(self._elements.type()).replace(".", ".sparse.", 1)
        return self.to(as_dtype("type", dtype))

    def __iter__(self) -> Iterator[Any]:
        return iter([self[place] for place in range(len(self))])


def sparse(
    positions: Tensor, elements: Tensor, extents: Shape, is_coalesced: bool = False, kind: SparseLayout = sparse_coo,
    pointers: Tensor | None = None,
) -> SparseTensor:
    """The sparse tensor of these parts, which fit each other."""
    result = object.__new__(SparseTensor)
    result._positions, result._elements, result._pointers = positions, elements, pointers
    result._extents, result._kind, result._is_coalesced = tuple(extents), kind, is_coalesced
    return result


# ---- positions as numbers ----


def flat_positions(positions: Tensor, extents: Shape) -> Tensor:
    """The place of each position when all elements are counted, in row-major order. Raises ValueError past 2^63 of them."""
    if numel(extents) >= 1 << 63:
        raise ArgumentError(f"sparse tensors: sparse axes of extents {tuple(extents)} have more elements than 2^63 - 1")
    if not extents:
        return positions.new_zeros(positions.shape[1])
    flat = positions[0]
    for axis in range(1, len(extents)):
        flat = flat * extents[axis] + positions[axis]
    return flat


def positions_of(flat: Tensor, extents: Shape) -> Tensor:
    """What `flat_positions` is of."""
    rows: list[Tensor] = []
    for axis in range(len(extents) - 1, -1, -1):
        rows.insert(0, flat % extents[axis] if axis else flat)
        flat = flat // max(extents[axis], 1)
    return stack(rows) if rows else flat.new_zeros(0, flat.shape[0])


def summed(base: Tensor, places: Tensor, elements: Tensor) -> Tensor:
    """`base` with elements added at places along its first axis; of truth values, whether any is true."""
    if base.dtype is bool_:
        return summed(base.to(int64), places, elements.to(int64)) != 0
    return base.index_add(0, places, elements)


def coalesced(x: SparseTensor) -> SparseTensor:
    """The tensor with its positions in order, each of them once."""
    if x._is_coalesced or x._kind is not sparse_coo:
        return x
    flat = flat_positions(x._positions, x.extents)
    known = values_of(flat)
    if bool((known[1:] > known[:-1]).all()):
        return sparse(x._positions, x._elements, x._extents, True)
    distinct, places = unique(flat, return_inverse=True)
    elements = summed(x._elements.new_zeros(distinct.shape[0], *x._elements.shape[1:]), places, x._elements)
    return sparse(positions_of(distinct, x.extents), elements, x._extents, True)


def each_once(x: SparseTensor) -> Tensor:
    """The elements of a tensor that is coalesced in place: what is written to them is written to it."""
    if not x._is_coalesced:
        x.written(coalesced(x))
    return x._elements


def dense(x: SparseTensor) -> Tensor:
    """The tensor with all its elements."""
    rest = x._elements.shape[1:]
    zeros = x._elements.new_zeros(numel(x.extents), *rest)
    return summed(zeros, flat_positions(x._positions, x.extents), x._elements).reshape(x._extents)


# ---- from one layout to another ----


def rows_of(pointers: Tensor, count: int) -> Tensor:
    """The row of each of `count` elements in order, from where rows begin."""
    begins = pointers.new_zeros(count + 1).index_add(0, pointers[1:-1], pointers.new_ones(max(len(pointers) - 2, 0)))
    return begins.cumsum(0)[:count]


def pointers_of(rows: Tensor, extent: int) -> Tensor:
    """Where each row begins among elements in order."""
    return rows.new_zeros(extent + 1).index_add(0, rows + 1, rows.new_ones(rows.shape)).cumsum(0)


def in_layout(x: SparseTensor, layout: SparseLayout) -> SparseTensor:
    """The tensor in another layout; itself in its own."""
    if x._kind is layout:
        return x
    if layout is sparse_coo:
        ordered = x._kind is sparse_csr
        return sparse(x._positions, x._elements, x._extents, ordered)
    x = coalesced(in_layout(x, sparse_coo))
    if x._positions.shape[0] != 2:
        raise ArgumentError(f"to_{layout.name}: wants two sparse axes, got {x.described()}")
    if layout is sparse_csr:
        return sparse(x._positions, x._elements, x._extents, False, layout, pointers_of(x._positions[0], x._extents[0]))
    order = flat_positions(x._positions.flip(0), x.extents[::-1]).argsort()
    positions = x._positions[:, order]
    return sparse(positions, x._elements[order], x._extents, False, layout, pointers_of(positions[1], x._extents[1]))


replayable_module(__name__)
