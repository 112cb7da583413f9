"""Methods of tensors that make sparse ones, and that only sparse ones have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.named_layouts import NamedLayout, SparseLayout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from genesis.sparse.creation import from_dense
from genesis.sparse.elementwise import elements_at
from genesis.sparse.sparse_tensor import SparseTensor, by_element, coalesced, dense, in_blocks_of, in_layout, sparse
from genesis.tensor.handle import Tensor, attribute, method


# ---- from one kind to another ----
@method
def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None,
    blocksize: Sequence[int] | None = None, dense_dim: int | None = None,
) -> Any:
    """The elements that are not zero; of the axes, the first `sparse_dim` (all, if None) are sparse.

    `sparse_bsr` and `sparse_bsc` want a `blocksize`, (height, width). Raises ValueError where it does not divide the shape,
    TypeError for a layout that is none; of a dense layout, all elements.

    >>> genesis.tensor([[0, 2], [3, 0]]).to_sparse().indices()
    tensor([[0, 1],
            [1, 0]])
    """
    if not isinstance(layout, NamedLayout | None):
        raise ArgumentTypeError(f"to_sparse(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
    if not isinstance(layout, SparseLayout | None):
        return to_dense(self)
    if isinstance(self, SparseTensor):
        return in_layout(self, layout or sparse_coo, blocksize)
    if layout is not None and layout is not sparse_coo:
        return in_layout(from_dense(self, self.ndim - (dense_dim or 0)), layout, blocksize)
    return from_dense(self, self.ndim if sparse_dim is None else sparse_dim)


@method
def to_sparse_coo(self: Tensor) -> SparseTensor:
    """As a sparse tensor with coordinates."""
    return to_sparse(self)


@method
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """As a sparse matrix compressed by rows."""
    return to_sparse(self, layout=sparse_csr, dense_dim=dense_dim)


@method
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """As a sparse matrix compressed by columns."""
    return to_sparse(self, layout=sparse_csc, dense_dim=dense_dim)


@method
def to_sparse_bsr(self: Tensor, blocksize: Sequence[int] | None = None, dense_dim: int | None = None) -> SparseTensor:
    """As a sparse matrix of blocks (height, width), compressed by rows of these.

    >>> genesis.tensor([[0, 0, 1, 0], [0, 0, 0, 2]]).to_sparse_bsr((2, 2)).values()
    tensor([[[1, 0],
             [0, 2]]])
    """
    return to_sparse(self, layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@method
def to_sparse_bsc(self: Tensor, blocksize: Sequence[int] | None = None, dense_dim: int | None = None) -> SparseTensor:
    """As a sparse matrix of blocks (height, width), compressed by columns of these."""
    return to_sparse(self, layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@method
def to_dense(self: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor with all its elements; a dense one itself.

    >>> genesis.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,)).to_dense()
    tensor([3., 0.])
    """
    found = dense(self) if isinstance(self, SparseTensor) else self
    return found if dtype is None else found.to(dtype)


@method
def sparse_mask(self: Tensor, mask: Tensor) -> SparseTensor:
    """The elements at the positions of the sparse tensor `mask`. Raises ValueError for another shape of it.

    >>> genesis.tensor([1.0, 2.0]).sparse_mask(genesis.tensor([0.0, 5.0]).to_sparse()).values()
    tensor([2.])
    """
    if not isinstance(mask, SparseTensor) or mask.shape != self.shape:
        raise ArgumentError(f"sparse_mask: the mask has shape {mask.shape} and layout {mask.layout}; want a sparse one of "
                            f"{tuple(self.shape)}")
    if mask.block is not None:
        return in_blocks_of(mask, sparse_mask(self, by_element(mask)))
    return mask.with_elements(elements_at(to_dense(self), mask))


# ---- in place ----
@method
def sparse_resize_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Give a sparse tensor the shape `size`, whose axes hold all of its elements. Raises ValueError for others."""
    if not isinstance(self, SparseTensor) or self._kind is not sparse_coo:
        raise ArgumentError(f"sparse_resize_: is of sparse_coo tensors, got layout {self.layout!r}")
    axes = self._positions.shape[0]
    fits = (axes, self.dense_dim(), len(size)) == (sparse_dim, dense_dim, self.ndim) and tuple(size[axes:]) == (
        self.shape[axes:]) and all(new >= old for new, old in zip(size, self.shape, strict=True))
    if not fits:
        if self._elements.shape[0]:
            wanted = f"{tuple(size)}, {sparse_dim} sparse and {dense_dim} dense axes"
            raise ArgumentError(f"sparse_resize_: {self.described()} to {wanted}; want as many, of extents no less, and the "
                                "dense ones the same")
        return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)
    self._extents = tuple(size)
    return self


@method
def sparse_resize_and_clear_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Give a sparse tensor the shape `size` and no elements."""
    if not isinstance(self, SparseTensor) or self._kind is not sparse_coo or sparse_dim + dense_dim != len(size):
        raise ArgumentError(f"sparse_resize_and_clear_: layout {self.layout!r} to {tuple(size)}, {sparse_dim} sparse and "
                            f"{dense_dim} dense axes; want a sparse_coo tensor and as many extents")
    elements, positions = self._elements.new_zeros(0, *size[sparse_dim:]), self._positions.new_zeros(sparse_dim, 0)
    vars(self).update(vars(sparse(positions, elements, tuple(size), True)))
    return self


@method
def resize_as_sparse_(self: Tensor, the_template: Tensor) -> Tensor:
    """`sparse_resize_` to the shape of another sparse tensor."""
    return sparse_resize_(self, the_template.shape, the_template.sparse_dim(), the_template.dense_dim())


# ---- parts ----
@method
def sparse_dim(self: Tensor) -> int:
    """The number of axes that are sparse."""
    return self._positions.shape[0] if isinstance(self, SparseTensor) else 0


@method
def dense_dim(self: Tensor) -> int:
    """The number of axes that are not sparse."""
    return self.ndim - sparse_dim(self)


def _of_sparse(name: str, kinds: str, doc: str, found: Callable[[SparseTensor], Any]) -> None:
    """A method that only tensors of some layouts have: `kinds` is how their names begin."""
    begins = tuple(kinds.split())

    def of(self: Tensor) -> Any:
        if not isinstance(self, SparseTensor) or not self._kind.name.startswith(begins):
            met = repr(self._kind) if isinstance(self, SparseTensor) else "a dense one"
            raise ArgumentError(f"{name}: is of {begins[0]} tensors, this is {met}; to_{begins[0]}() makes one")
        return found(self)

    of.__name__ = of.__qualname__ = name
    of.__doc__ = doc + " Raises ValueError for other tensors."
    method(of)


def _ordered(name: str, x: SparseTensor) -> SparseTensor:
    if x._kind is sparse_coo and not x._is_coalesced:
        raise ArgumentError(f"{name}: this tensor is not coalesced, several elements may have one position; use coalesce()")
    return x


def _coalesced(x: SparseTensor) -> SparseTensor:
    """The coalesced tensor, with parts of its own: as in PyTorch writes to them are not writes to `x`."""
    made = coalesced(x)
    if made is x or made._elements is not x._elements:
        return made
    return sparse(x._positions.clone(), x._elements.clone(), x._extents, True)


_of_sparse("_indices", "sparse_coo", "The positions, (sparse_dim, n).", lambda x: x._positions)
_of_sparse("_values", "sparse_coo", "The elements, (n, ..), without a derivation.", lambda x: x._elements.detach())
_of_sparse("indices", "sparse_coo", "The positions, in order, (sparse_dim, n).", lambda x: _ordered("indices", x)._positions)
_of_sparse("values", "sparse", "The elements, (n, ..).", lambda x: _ordered("values", x)._elements)
_of_sparse("_nnz", "sparse", "The number of elements.", lambda x: x._elements.shape[0])
_of_sparse("is_coalesced", "sparse_coo", "Whether positions are known to be in order and different.", lambda x: x._is_coalesced)
_of_sparse("coalesce", "sparse_coo", "The tensor with its positions in order, each once.", _coalesced)
_of_sparse("crow_indices", "sparse_csr sparse_bsr", "Where each row begins, (rows + 1,).", lambda x: x._pointers)
_of_sparse("col_indices", "sparse_csr sparse_bsr", "The column of each element, or block, (n,).", lambda x: x._positions[1])
_of_sparse("ccol_indices", "sparse_csc sparse_bsc", "Where each column begins, (columns + 1,).", lambda x: x._pointers)
_of_sparse("row_indices", "sparse_csc sparse_bsc", "The row of each element, or block, (n,).", lambda x: x._positions[0])


@attribute
def is_sparse_csr(self: Tensor) -> bool:
    """Whether the tensor is sparse, and compressed by rows."""
    return False
