"""Sparse tensors as text, in the layout that PyTorch gives them."""

from __future__ import annotations

from genesis.functions.printing import PREFIX, elements_text, suffixes, with_suffixes
from genesis.ir.sparse_layouts import sparse_coo
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor


def _part(name: str, part: Tensor) -> str:
    before = f"{name}={PREFIX}"
    size = f", size={tuple(part.shape)}" if not part.numel() else ""
    return f"{before}{elements_text(part.detach(), len(PREFIX) + len(before))}{size})"


def __repr__(self: SparseTensor) -> str:
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


SparseTensor.__repr__ = SparseTensor.__str__ = __repr__  # type: ignore[method-assign, assignment]
