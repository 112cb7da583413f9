"""Sparse tensors: the positions and values of the elements that are not zero, both ordinary tensors.

Whatever the layout, the coordinates of all elements are there; compressed layouts have pointers besides, and their elements
in order. In blocked layouts, coordinates are those of blocks, and elements are blocks. Operations are written with
ordinary ones on positions and elements, so they fuse, differentiate and compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from genesis.functions.methods.conversion import values_of
from genesis.functions.methods.table import functions_of
from genesis.functions.printing import PREFIX, elements_text, suffixes, with_suffixes
from genesis.functions.ranges import arange
from genesis.functions.selection import unique
from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, bool_, int64
from genesis.ir.errors import ArgumentError
from genesis.ir.named_layouts import SparseLayout, sparse_coo, sparse_csc, sparse_csr
from genesis.ir.shapes import Shape, numel
from genesis.runtime.devices import DeviceLike
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.handle import CallArguments, Tensor, tensors_in
from genesis.tracing.state import thread_state

(stack,) = functions_of("stack")


def flat_positions(positions: Tensor, extents: Shape) -> Tensor:
    """The flat index of each position, in row-major order. Raises ValueError past 2^63 of them."""
    if numel(extents) >= 1 << 63:
        raise ArgumentError(f"sparse tensors: sparse axes of extents {tuple(extents)} have more elements than 2^63 - 1")
    if not extents:
        return positions.new_zeros(positions.shape[1])
    flat = positions[0]
    for axis in range(1, len(extents)):
        flat = flat * extents[axis] + positions[axis]
    return flat


def positions_of(flat: Tensor, extents: Shape) -> Tensor:
    """The inverse of `flat_positions`."""
    rows: list[Tensor] = []
    for axis in range(len(extents) - 1, -1, -1):
        rows.insert(0, flat % extents[axis] if axis else flat)
        flat = flat // max(extents[axis], 1)
    return stack(rows) if rows else flat.new_zeros(0, flat.shape[0])


def summed(base: Tensor, indices: Tensor, elements: Tensor) -> Tensor:
    """`base` with elements added at indices along its first axis; for bools, whether any is true."""
    if base.dtype is bool_:
        return summed(base.to(int64), indices, elements.to(int64)) != 0
    return base.index_add(0, indices, elements)


def rows_of(pointers: Tensor, count: int) -> Tensor:
    """The row of each of `count` elements in order, from where rows begin."""
    begins = pointers.new_zeros(count + 1).index_add(0, pointers[1:-1], pointers.new_ones(max(len(pointers) - 2, 0)))
    return begins.cumsum(0)[:count]


def pointers_of(rows: Tensor, extent: int) -> Tensor:
    """The start of each row among elements in order."""
    return rows.new_zeros(extent + 1).index_add(0, rows + 1, rows.new_ones(rows.shape)).cumsum(0)


RULES: dict[str, Callable[..., Any]] = {}  # by the names of operations: what they mean where an argument is sparse
BLOCKWISE: set[str] = set()  # those of them that take tensors in blocks; others get their elements


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
        """The sparse layout: `sparse_coo`, `sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`."""
        return self._kind

    is_sparse = property(lambda self: self._kind is sparse_coo)
    is_sparse_csr = property(lambda self: self._kind is sparse_csr)

    @property
    def extents(self) -> Shape:
        """Those of the axes that are sparse, counted in blocks if it has these."""
        extents = self._extents[: self._positions.shape[0]]
        return extents if self.block is None else (extents[0] // self.block[0], extents[1] // self.block[1])

    @property
    def block(self) -> Shape | None:
        """The shape of its blocks, if it has these."""
        return self._elements.shape[1:3] if self._kind.is_blocked else None

    def described(self) -> str:
        return f"a {self._kind.name} one of shape {tuple(self._extents)}"

    def stride(self, dim: int | None = None) -> Any:
        """Zeros, as elements are not stored at regular distances."""
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
        axes = self._positions.shape[0]
        extents = (*self._extents[:axes], *elements.shape[1 if self.block is None else 3 :])
        return sparse(self._positions, elements, extents, self._is_coalesced, self._kind, self._pointers)

    def computed(self, name: str, arguments: CallArguments, attributes: Attributes) -> Any:
        rule = RULES.get(name)
        if rule is None:
            return super().computed(name, arguments, attributes)
        x = next((t for t in tensors_in([*arguments, *attributes.values()]) if getattr(t, "block", None) is not None), None)
        if name in BLOCKWISE or not isinstance(x, SparseTensor):
            return rule(*arguments, **attributes)
        found = rule(*map(by_element, arguments), **{key: by_element(value) for key, value in attributes.items()})
        return in_blocks_of(x, found) if isinstance(found, SparseTensor) else found

    def written(self, value: Tensor) -> Tensor:
        if not isinstance(value, SparseTensor) or value.shape != self.shape:
            met = value.described() if isinstance(value, SparseTensor) else f"a dense one of shape {value.shape}"
            raise ArgumentError(f"in-place: the result is {met}; {self.described()} cannot hold it")
        leaf = self.requires_grad and self.is_leaf
        if leaf and thread_state.grad_enabled:
            raise RuntimeError("a leaf tensor that requires grad cannot be changed in place; wrap it in genesis.no_grad()")
        vars(self).update(vars(in_layout(value, self._kind, self.block)))
        if leaf:
            self.requires_grad = True
        return self

    def zero_(self) -> Tensor:
        """Drop all elements."""
        return self.written(self.zeros())

    def zeros(self) -> SparseTensor:
        """A tensor without elements, of this one's shape, dtype and layout."""
        pointers = None if self._pointers is None else self._pointers * 0
        return sparse(self._positions[:, :0], self._elements[:0].detach(), self._extents, True, self._kind, pointers)

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
        found = super().type(dtype)
        return ".sparse.".join(found.rsplit(".", 1)) if isinstance(found, str) else found

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __repr__(self) -> str:  # type: ignore[override]
        kind = self._kind
        if kind is sparse_coo:
            parts = [_part("indices", self._positions)]
        else:
            assert self._pointers is not None and kind.axis is not None
            parts = [_part(kind.pointers, self._pointers), _part(kind.others, self._positions[1 - kind.axis])]
        parts.append(_part("values", self._elements))
        more = [f"size={tuple(self.shape)}", f"nnz={self._elements.shape[0]}", *suffixes(self), f"layout={kind!r}"]
        if self.grad_fn is not None or self.requires_grad:
            more = [*more[:2], *[m for m in more[2:] if "grad" not in m], *[m for m in more[2:] if "grad" in m]]
        text = PREFIX + (",\n" + " " * len(PREFIX)).join(parts)
        return with_suffixes(text, more, starts_line=kind is sparse_coo)

    __str__ = __repr__


def _part(name: str, part: Tensor) -> str:
    before = f"{name}={PREFIX}"
    size = f", size={tuple(part.shape)}" if not part.numel() else ""
    return f"{before}{elements_text(part.detach(), len(PREFIX) + len(before))}{size})"


def sparse(
    positions: Tensor, elements: Tensor, extents: Shape, is_coalesced: bool = False, kind: SparseLayout = sparse_coo,
    pointers: Tensor | None = None,
) -> SparseTensor:
    """The sparse tensor of these parts, which fit each other."""
    result = object.__new__(SparseTensor)
    result._positions, result._elements, result._pointers = positions, elements, pointers
    result._extents, result._kind, result._is_coalesced = tuple(extents), kind, is_coalesced
    return result


# ---- what it stands for ----
def coalesced(x: SparseTensor) -> SparseTensor:
    """The tensor with its positions in order, each of them once."""
    if x._is_coalesced or x._kind is not sparse_coo:
        return x
    flat = flat_positions(x._positions, x.extents)
    known = values_of(flat)
    if bool((known[1:] > known[:-1]).all()):
        return sparse(x._positions, x._elements, x._extents, True)
    distinct, inverse = unique(flat, return_inverse=True)
    elements = summed(x._elements.new_zeros(distinct.shape[0], *x._elements.shape[1:]), inverse, x._elements)
    return sparse(positions_of(distinct, x.extents), elements, x._extents, True)


def each_once(x: SparseTensor) -> Tensor:
    """The elements of a tensor, which is coalesced in place; writes to them are writes to it."""
    if not x._is_coalesced:
        x.written(coalesced(x))
    return x._elements


def dense(x: SparseTensor) -> Tensor:
    """The tensor with all its elements."""
    extents, rest = x.extents, x._elements.shape[1:]
    whole = summed(x._elements.new_zeros(numel(extents), *rest), flat_positions(x._positions, extents), x._elements)
    if x.block is not None:
        whole = whole.reshape(*extents, *rest).transpose(1, 2)
    return whole.reshape(x._extents)


# ---- from one layout to another ----
def in_layout(x: SparseTensor, layout: SparseLayout, block: Sequence[int] | None = None) -> SparseTensor:
    """The tensor in another layout, with blocks of shape `block` if it has some; itself in its own."""
    if x._kind is layout and block in (None, x.block):
        return x
    if x.block is not None:
        x = _without_blocks(x, *x.block)
    if layout is sparse_coo:
        ordered = x._kind is sparse_csr
        return sparse(x._positions, x._elements, x._extents, ordered)
    x = coalesced(in_layout(x, sparse_coo))
    if x._positions.shape[0] != 2:
        raise ArgumentError(f"to_{layout.name}: wants two sparse axes, got {x.described()}")
    if layout.is_blocked:
        return _with_blocks(x, layout, block)
    if layout is sparse_csr:
        return sparse(x._positions, x._elements, x._extents, False, layout, pointers_of(x._positions[0], x._extents[0]))
    order = flat_positions(x._positions.flip(0), x._extents[1::-1]).argsort()
    positions = x._positions[:, order]
    return sparse(positions, x._elements[order], x._extents, False, layout, pointers_of(positions[1], x._extents[1]))


# ---- blocks ----
def _without_blocks(x: SparseTensor, height: int, width: int) -> SparseTensor:
    """All elements of all blocks, by coordinates."""
    corners = x._positions * x._positions.new_tensor([[height], [width]])
    rows = corners[0].reshape(-1, 1, 1) + arange(height, device=x.device).reshape(-1, 1)
    columns = corners[1].reshape(-1, 1, 1) + arange(width, device=x.device)
    shape = (x._elements.shape[0], height, width)
    positions = stack([rows.expand(shape).reshape(-1), columns.expand(shape).reshape(-1)])
    return sparse(positions, x._elements.flatten(0, 2), x._extents)


def _with_blocks(x: SparseTensor, layout: SparseLayout, block: Sequence[int] | None) -> SparseTensor:
    """Those blocks of a tensor with coordinates that have elements."""
    if block is None or len(block) != 2 or min(block) < 1 or x._extents[0] % block[0] or x._extents[1] % block[1]:
        raise ArgumentError(f"to_{layout.name}: blocks of shape {block} of {x.described()}; want two extents that divide those")
    axis, (height, width), rest = layout.axis or 0, block, x._elements.shape[1:]
    (rows, columns), extents = x._positions, (x._extents[0] // height, x._extents[1] // width)
    corners = [rows // height, columns // width]
    flat, inverse = unique(corners[axis] * extents[1 - axis] + corners[1 - axis], return_inverse=True)
    elements = summed(
        x._elements.new_zeros(flat.shape[0] * height * width, *rest),
        (inverse * height + rows % height) * width + columns % width, x._elements)
    along, across = flat // max(extents[1 - axis], 1), flat % max(extents[1 - axis], 1)
    positions = stack([across, along] if axis else [along, across])
    elements = elements.reshape(flat.shape[0], height, width, *rest)
    return sparse(positions, elements, x._extents, False, layout, pointers_of(along, extents[axis]))


def by_element(x: Any) -> Any:
    """An argument whose tensors in blocks have elements instead."""
    if isinstance(x, SparseTensor) and x.block is not None:
        return in_layout(x, sparse_csc if x._kind.axis else sparse_csr)
    return [by_element(member) for member in x] if isinstance(x, list | tuple) else x


def in_blocks_of(x: SparseTensor, found: SparseTensor) -> SparseTensor:
    """A result in blocks of the shape that `x` has, if these divide it."""
    assert x.block is not None
    divides = found.ndim > 1 and not (found.shape[0] % x.block[0] or found.shape[1] % x.block[1])
    return in_layout(found, x._kind, x.block) if divides and found._kind is by_element(x)._kind else found
