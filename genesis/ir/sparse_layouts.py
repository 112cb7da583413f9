"""How sparse tensors say where their elements are: by coordinates, or compressed along the rows or columns of a matrix."""

from __future__ import annotations

from genesis.ir.library import Library
from genesis.ir.replayable import replayable_module


class NamedLayout:
    """A layout of tensors that are made of others. They are compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{Library.name}.{self.name}"


class SparseLayout(NamedLayout):
    """A layout of sparse tensors.

    Attributes:
        axis: the axis along which positions are compressed: 0 for rows, 1 for columns; None for coordinates.
    """

    __slots__ = ("axis",)

    def __init__(self, name: str, axis: int | None = None) -> None:
        super().__init__(name)
        self.axis = axis

    @property
    def pointers(self) -> str:
        """What its compressed positions are called."""
        return "ccol_indices" if self.axis else "crow_indices"

    @property
    def others(self) -> str:
        """What the positions along the other axis are called."""
        return "row_indices" if self.axis else "col_indices"

    def __reduce__(self) -> tuple[object, ...]:
        return layout_named, (self.name,)


sparse_coo, sparse_csr, sparse_csc = SparseLayout("sparse_coo"), SparseLayout("sparse_csr", 0), SparseLayout("sparse_csc", 1)


SPARSE_LAYOUTS = {layout.name: layout for layout in (sparse_coo, sparse_csr, sparse_csc)}


def layout_named(name: str) -> SparseLayout:
    """The layout that PyTorch calls so."""
    return SPARSE_LAYOUTS[name]


replayable_module(__name__)
