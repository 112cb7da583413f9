"""Sparse tensors from indices and values, optionally checked, and from dense tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.functions.creation import SPARSE_ZEROS, empty
from genesis.functions.from_data import as_tensor
from genesis.functions.methods.conversion import values_of
from genesis.functions.selection import nonzero
from genesis.ir.dtypes import DType, int64
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.named_layouts import SparseLayout, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from genesis.ir.shapes import Shape
from genesis.runtime.devices import DeviceLike
from genesis.sparse.sparse_tensor import SparseTensor, in_layout, rows_of, sparse, stack
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size
from genesis.tracing.thread import thread_state


class check_sparse_tensor_invariants:
    """A context (or `enable` and `disable`) in which new sparse tensors' indices are checked.

    Without it, indices out of range are detected when used: operations check what they read and write.

    >>> with genesis.sparse.check_sparse_tensor_invariants():
    ...     genesis.sparse_coo_tensor([[5]], [1.0], (3,))
    Traceback (most recent call last):
    ...
    genesis.ir.errors.ArgumentError: sparse_coo_tensor: index 5 along axis 0 of extent 3; want 0 to 2
    """

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Whether indices are checked."""
        return thread_state.checks_sparse

    @staticmethod
    def enable() -> None:
        """Start checking indices."""
        thread_state.checks_sparse = True

    @staticmethod
    def disable() -> None:
        """Stop checking indices."""
        thread_state.checks_sparse = False

    def __enter__(self) -> check_sparse_tensor_invariants:
        self._before.append(thread_state.checks_sparse)
        thread_state.checks_sparse = self._wanted
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        thread_state.checks_sparse = self._before.pop()


def checked(x: SparseTensor, wanted: bool | None) -> SparseTensor:
    """The tensor, after checking its indices if `wanted` (None: the setting). Raises ValueError."""
    if not (thread_state.checks_sparse if wanted is None else wanted):
        return x
    name = f"{x._kind.name}_tensor"
    if x._pointers is not None:
        starts, count = values_of(x._pointers), x._positions.shape[1]
        if starts[0] != 0 or starts[-1] != count or (starts[1:] < starts[:-1]).any():
            met = f"go from {starts[0]} to {starts[-1]}"
            raise ArgumentError(f"{name}: {x._kind.pointers} of {count} elements {met}; want them to rise from 0 to {count}")
    for axis, (indices, extent) in enumerate(zip(values_of(x._positions), x.extents, strict=True)):
        wrong = indices[(indices < 0) | (indices >= extent)]
        if len(wrong):
            raise ArgumentError(f"{name}: index {wrong[0]} along axis {axis} of extent {extent}; want 0 to {extent - 1}")
    if x._kind.axis is not None:
        lines, indices = (values_of(x._positions[axis]) for axis in (x._kind.axis, 1 - x._kind.axis))
        if ((lines[1:] == lines[:-1]) & (indices[1:] <= indices[:-1])).any():
            raise ArgumentError(f"{name}: {x._kind.others} of one {'column' if x._kind.axis else 'row'} must rise, and do not")
    return x


if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Sequence[int] | None = None, *, dtype: DType | None = None,
    device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A sparse tensor with `values` (n, ..) at `indices` (axes, n) and zeros elsewhere; duplicates add up.

    Args:
        indices: integers, a row per sparse axis. `sparse_coo_tensor(size)` has no elements.
        values: n numbers, or tensors of the axes that are dense. Gradients flow to them, unless `requires_grad` makes the
            tensor a leaf.
        size: the extents; by default the least that contain all indices.
        is_coalesced: promises that the indices are sorted and unique; not checked.

    Raises ValueError for mismatched shapes, TypeError for indices that are not integers and, with `check_invariants`,
    ValueError for indices outside of `size`.

    >>> x = genesis.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> x.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if indices is None and size is None:
        raise TypeError("sparse_coo_tensor: wants indices and values, or a size alone")
    if values is None:  # the argument is the size
        extents: Shape = Size(indices if size is None else size)
        none = as_tensor(np.zeros((len(extents), 0), np.int64), device=device)
        elements = empty(0, dtype=dtype, device=device)
        return _leaf(sparse(none, elements, extents, True), requires_grad)
    elements = as_tensor(values, dtype=dtype, device=device)
    positions = _integers("sparse_coo_tensor", indices, elements)
    if positions.ndim != 2 or not elements.ndim or positions.shape[1] != elements.shape[0]:
        raise ArgumentError(
            f"sparse_coo_tensor: indices {positions.shape} and values {elements.shape}; want (sparse axes, n) and (n, ..)")
    axes = positions.shape[0]
    if size is None:
        if not positions.shape[1]:
            raise ArgumentError("sparse_coo_tensor: no positions tell the size; want size=")
        size = (*[int(extent) + 1 for extent in values_of(positions).max(1)], *elements.shape[1:])
    extents = tuple(size)
    if len(extents) != axes + elements.ndim - 1 or extents[axes:] != elements.shape[1:]:
        raise ArgumentError(
            f"sparse_coo_tensor: size {extents} of indices {positions.shape} and values {elements.shape}; want {axes} sparse "
            f"axes and then {elements.shape[1:]}")
    made = sparse(positions, elements, extents, bool(is_coalesced) or positions.shape[1] < 2)
    return _leaf(checked(made, check_invariants), requires_grad)


SPARSE_ZEROS.append(lambda layout, shape, dtype, device: in_layout(
    sparse_coo_tensor(size=shape, dtype=dtype, device=device), layout))


def sparse_compressed_tensor(
    compressed_indices: ArrayLike | Tensor, plain_indices: ArrayLike | Tensor, values: ArrayLike | Tensor,
    size: Sequence[int] | None = None, *, dtype: DType | None = None, layout: SparseLayout = sparse_csr,
    device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:
    """A matrix whose elements are in the order of its rows (`sparse_csr`) or columns (`sparse_csc`); or its blocks
    (`sparse_bsr`, `sparse_bsc`), which are then what indices count.

    Args:
        compressed_indices: (rows + 1,), the start of each row's, or column's, elements; the last is their number, n.
        plain_indices: (n,), the column, or row, of each.
        values: (n,), or (n, height, width) of blocks; gradients flow to them, unless `requires_grad` makes the tensor a leaf.
        size: the extents; by default the least that contain all indices.

    Raises ValueError for shapes that do not fit and, with `check_invariants`, for positions that are out of range or order.

    >>> genesis.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if not isinstance(layout, SparseLayout) or layout.axis is None:
        raise ArgumentError(f"sparse_compressed_tensor: layout is {layout!r}; want {sparse_csr!r} or {sparse_csc!r}")
    name, elements = f"{layout.name}_tensor", as_tensor(values, dtype=dtype, device=device)
    pointers, plain = (_integers(name, given, elements) for given in (compressed_indices, plain_indices))
    lead = 3 if layout.is_blocked else 1  # number of the values' leading axes
    if (pointers.ndim, plain.ndim) != (1, 1) or plain.shape != elements.shape[:1] or not len(pointers) or (
        elements.ndim < lead or 0 in elements.shape[1:lead]
    ):
        want = "(n, height, width, ..) of blocks that are not empty" if layout.is_blocked else "(n, ..)"
        raise ArgumentError(f"{name}: {layout.pointers} {pointers.shape}, {layout.others} {plain.shape} and values "
                            f"{elements.shape}; want (extent + 1,), (n,) and {want}")
    block = elements.shape[1:3] if layout.is_blocked else (1, 1)
    along = (len(pointers) - 1) * block[layout.axis]
    if size is None:
        other = (int(values_of(plain).max()) + 1 if len(plain) else 0) * block[1 - layout.axis]
        size = (*((along, other) if layout.axis == 0 else (other, along)), *elements.shape[lead:])
    extents = tuple(size)
    if len(extents) != elements.ndim + 2 - lead or extents[layout.axis] != along or extents[2:] != elements.shape[lead:] or (
        extents[1 - layout.axis] % block[1 - layout.axis]
    ):
        raise ArgumentError(f"{name}: size {extents} of {layout.pointers} {pointers.shape} and values {elements.shape}; want "
                            f"{along} along axis {layout.axis}, two sparse axes and then {elements.shape[lead:]}")
    lines = rows_of(pointers, len(plain))
    positions = stack([lines, plain] if layout.axis == 0 else [plain, lines])
    return _leaf(checked(sparse(positions, elements, extents, False, layout, pointers), check_invariants), requires_grad)


def sparse_csr_tensor(
    crow_indices: ArrayLike | Tensor, col_indices: ArrayLike | Tensor, values: ArrayLike | Tensor,
    size: Sequence[int] | None = None, **settings: Any,
) -> SparseTensor:
    """`sparse_compressed_tensor` by rows, with the same settings.

    >>> genesis.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=sparse_csr, **settings)


def sparse_csc_tensor(
    ccol_indices: ArrayLike | Tensor, row_indices: ArrayLike | Tensor, values: ArrayLike | Tensor,
    size: Sequence[int] | None = None, **settings: Any,
) -> SparseTensor:
    """`sparse_compressed_tensor` by columns, with the same settings.

    >>> genesis.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=sparse_csc, **settings)


def sparse_bsr_tensor(
    crow_indices: ArrayLike | Tensor, col_indices: ArrayLike | Tensor, values: ArrayLike | Tensor,
    size: Sequence[int] | None = None, **settings: Any,
) -> SparseTensor:
    """`sparse_compressed_tensor` by rows of blocks, with the same settings.

    >>> genesis.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0], [3.0, 4.0]]]).to_dense()
    tensor([[1., 2.],
            [3., 4.]])
    """
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=sparse_bsr, **settings)


def sparse_bsc_tensor(
    ccol_indices: ArrayLike | Tensor, row_indices: ArrayLike | Tensor, values: ArrayLike | Tensor,
    size: Sequence[int] | None = None, **settings: Any,
) -> SparseTensor:
    """`sparse_compressed_tensor` by columns of blocks, with the same settings.

    >>> genesis.sparse_bsc_tensor([0, 1], [0], [[[1.0, 2.0], [3.0, 4.0]]]).to_dense()
    tensor([[1., 2.],
            [3., 4.]])
    """
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=sparse_bsc, **settings)


def _leaf(made: SparseTensor, requires_grad: bool) -> SparseTensor:
    if not requires_grad:
        return made
    made = made.detach()
    made.requires_grad = True
    return made


def _integers(name: str, given: ArrayLike | Tensor, beside: Tensor) -> Tensor:
    positions = as_tensor(given, device=beside.device)
    if positions.dtype.category != 1 and positions.numel():
        raise ArgumentTypeError(f"{name}: positions must be integers, got {positions.dtype.name}")
    return positions.to(int64).detach()


# ---- from dense ----
def from_dense(x: Tensor, axes: int) -> SparseTensor:
    """The nonzero elements of a dense tensor; its first `axes` axes become sparse."""
    if not min(1, x.ndim) <= axes <= x.ndim:
        raise ArgumentError(f"to_sparse: {axes} sparse axes of shape {x.shape}; want 1 to {x.ndim}")
    rest = tuple(range(axes, x.ndim))
    positions = nonzero((x != 0).any(rest) if rest else x).T.contiguous()
    elements = x[tuple(positions)] if axes else x.expand(positions.shape[1])
    return sparse(positions, elements, x.shape, True)


# ---- diagonals ----
def spdiags(diagonals: Tensor, offsets: Tensor, shape: Shape, layout: SparseLayout | None = None) -> SparseTensor:
    """The matrix (rows, columns) with rows of `diagonals` (n, length) on its diagonals `offsets` (n,), or one of both.

    Element k of a diagonal is in column k. Raises ValueError for duplicate or mismatched offsets.

    >>> genesis.sparse.spdiags(genesis.ones(2, 3), genesis.tensor([0, 1]), (3, 3)).to_dense()
    tensor([[1., 1., 0.],
            [0., 1., 1.],
            [0., 0., 1.]])
    """
    lines, shifts = (diagonals, offsets) if diagonals.ndim == 2 else (diagonals.unsqueeze(0), offsets.reshape(-1))
    known = [int(shift) for shift in values_of(shifts).tolist()]
    if lines.ndim != 2 or len(shape) != 2 or len(known) != len(lines) or len({*known}) < len(known):
        met = f"diagonals {diagonals.shape}, offsets {known} and shape {tuple(shape)}"
        raise ArgumentError(f"spdiags: {met}; want (n, length), n different ones and two extents")
    spans = [*_spans(known, lines.shape[1], shape)]
    counts = [stop - start for start, stop in spans]
    columns = np.concatenate([np.arange(*span) for span in spans]) if spans else np.zeros(0, np.int64)
    line = np.repeat(np.arange(len(known)), counts)
    rows = columns - np.repeat(known, counts)
    positions = as_tensor(np.stack([rows, columns]).astype(np.int64), device=lines.device)
    elements = lines[as_tensor(line, device=lines.device), positions[1]]
    made = sparse(positions, elements, tuple(shape))
    return made if layout is None else in_layout(made, layout)


def _spans(offsets: Sequence[int], length: int, shape: Shape) -> Iterator[tuple[int, int]]:
    """The columns in which each diagonal has elements."""
    for offset in offsets:
        start = max(0, offset)
        yield start, max(start, min(length, shape[1], shape[0] + offset))


NOT_REPLAYABLE = ("is_enabled", "enable", "disable", "__enter__", "__exit__")
