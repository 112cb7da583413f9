"""Layouts by PyTorch's names: those of dense, nested and sparse tensors.

Sparse ones are coordinates, or compressed rows or columns of a matrix, of single elements or of blocks.
"""

from __future__ import annotations

from genesis.ir.library import Library


class Named:
    """A thing of a module of that name, compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{Library.name}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class NamedLayout(Named):
    """A kind of layout."""

    __slots__ = ()


class SparseLayout(NamedLayout):
    """A layout of sparse tensors.

    Attributes:
        axis: the compressed axis: 0 for rows, 1 for columns; None for coordinates.
        is_blocked: whether elements are dense blocks.
    """

    __slots__ = ("axis", "is_blocked")

    def __init__(self, name: str, axis: int | None = None, is_blocked: bool = False) -> None:
        super().__init__(name)
        self.axis, self.is_blocked = axis, is_blocked

    @property
    def pointers(self) -> str:
        """The name of its compressed indices."""
        return "ccol_indices" if self.axis else "crow_indices"

    @property
    def others(self) -> str:
        """The name of the indices along the other axis."""
        return "row_indices" if self.axis else "col_indices"


strided, jagged = NamedLayout("strided"), NamedLayout("jagged")
sparse_coo, sparse_csr, sparse_csc = SparseLayout("sparse_coo"), SparseLayout("sparse_csr", 0), SparseLayout("sparse_csc", 1)
sparse_bsr, sparse_bsc = SparseLayout("sparse_bsr", 0, True), SparseLayout("sparse_bsc", 1, True)
LAYOUTS = {each.name: each for each in (strided, jagged, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)}
layout_named = LAYOUTS.__getitem__  # in pickles of earlier versions
