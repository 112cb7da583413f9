"""How values print: `torch.float32` and `torch.Size([2, 3])`."""

from __future__ import annotations

from genesis.ir.library import Library
from genesis.ir.replayable import replayable, replayable_module
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor
from genesis.tensor.return_types import all_return_types
from genesis.tensor.size import Size


def show_as(library: str) -> None:
    """Print dtypes and sizes as those of `library`, and make a tensor's shape a Size."""
    Library.name, Library.strict = library, True
    for kind in all_return_types:
        kind.__module__ = f"{library}.return_types"
    plain = Tensor.shape.fget  # type: ignore[attr-defined]

    @replayable
    def shape(self: Tensor) -> Size:
        """The extents."""
        return Size(plain(self))

    extents = SparseTensor.shape.fget  # type: ignore[attr-defined]
    SparseTensor.shape = property(lambda self: Size(extents(self)))  # type: ignore[assignment, misc]
    Tensor.shape = property(shape)  # type: ignore[assignment, misc]


replayable_module(__name__)
