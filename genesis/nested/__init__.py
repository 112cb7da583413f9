"""Nested tensors, batches of tensors of different sizes, under the names of `torch.nested`.

In the jagged layout tensors differ in one axis, and computations run on all at once. In the strided layout, the default as in
PyTorch, any extents may differ, and most computations run on each tensor.

>>> x = genesis.nested.nested_tensor([genesis.ones(2, 3), genesis.ones(4, 3)], layout=genesis.nested.jagged)
>>> x.sum(1)
tensor([[2., 2., 2.],
        [4., 4., 4.]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.functions.from_data import as_tensor
from genesis.functions.methods.conversion import values_of
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.ir.named_layouts import NamedLayout, SparseLayout
from genesis.nested import rules as _rules, strided_rules as _strided_rules
from genesis.nested.nested_tensor import NestedTensor, jagged, joined, nested
from genesis.nested.strided_tensor import StridedNestedTensor, strided_of
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = [
    "NestedTensor", "StridedNestedTensor", "as_nested_tensor", "jagged", "masked_select", "narrow", "nested_tensor",
    "nested_tensor_from_jagged", "to_padded_tensor",
]
__dir__ = __all__.copy


def nested_tensor(
    tensor_list: Sequence[Any], *, dtype: DType | None = None, layout: object = None, device: DeviceLike = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> NestedTensor | StridedNestedTensor:
    """A nested tensor with copies of tensors, a leaf. Raises ValueError for unequal numbers of axes.

    In the jagged layout, they may differ only in their first extent.

    >>> genesis.nested.nested_tensor([[1.0, 2.0], [3.0]])
    nested_tensor([
      tensor([1., 2.]),
      tensor([3.])
    ])
    >>> genesis.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=genesis.nested.jagged)
    NestedTensor(size=(2, j), offsets=tensor([0, 2, 3]), contiguous=True)
    """
    made = as_nested_tensor(tensor_list, dtype=dtype, device=device, layout=layout).detach()
    made.requires_grad = requires_grad
    return made


def as_nested_tensor(
    ts: Any, dtype: DType | None = None, device: DeviceLike = None, layout: object = None
) -> NestedTensor | StridedNestedTensor:
    """As `nested_tensor`; gradients flow to the tensors. Raises ValueError for a nested tensor of the other layout."""
    if not isinstance(layout, NamedLayout | None) or isinstance(layout, SparseLayout):
        raise ArgumentError(f"as_nested_tensor: layout {layout!r}; want {jagged!r}, or the strided one")
    is_jagged = layout is jagged
    if isinstance(ts, NestedTensor | StridedNestedTensor):
        if layout is not None and is_jagged != isinstance(ts, NestedTensor):
            raise ArgumentError(f"as_nested_tensor: {ts.described()} is of another layout; make one of its unbind()")
        return ts.to(dtype=dtype, device=device)  # type: ignore[no-any-return]
    return _of_layout([as_tensor(t, dtype=dtype, device=device) for t in (ts.unbind() if isinstance(ts, Tensor) else ts)],
                      layout, device)


def _of_layout(tensors: list[Tensor], layout: object, device: DeviceLike = None) -> NestedTensor | StridedNestedTensor:
    return joined(tensors, device) if layout is jagged else strided_of(tensors, device=device)


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
    min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> NestedTensor:
    """A nested tensor of the rows `values` (all, ..): sequences begin at `offsets` (batch + 1,), or are `lengths` long.

    Offsets and lengths are read. With both, sequences are the first `lengths` rows from their offsets on.

    >>> x = genesis.nested.nested_tensor_from_jagged(genesis.arange(5), genesis.tensor([0, 2, 5]))
    >>> x.unbind()
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    if jagged_dim not in (None, 1):
        raise ArgumentError(f"nested_tensor_from_jagged: jagged_dim is {jagged_dim}; want 1")
    if offsets is None:
        if lengths is None:
            raise ArgumentError("nested_tensor_from_jagged: wants offsets or lengths")
        offsets, lengths = _rules.cat([lengths.new_zeros(1), lengths.cumsum(0)]), None
    known = values_of(offsets)
    if known.ndim != 1 or not len(known) or known[0] or (known[1:] < known[:-1]).any() or known[-1] > len(values):
        met = f"offsets {known.tolist()} of {len(values)} rows"
        raise ArgumentError(f"nested_tensor_from_jagged: {met}; want them to rise from 0")
    if lengths is not None:
        spans = zip(known[:-1].tolist(), values_of(lengths).tolist(), strict=True)
        return joined([values[start : start + length] for start, length in spans])
    sizes = tuple((known[1:] - known[:-1]).tolist())
    return nested(values[: int(known[-1])].unsqueeze(0), offsets, sizes)


def to_padded_tensor(input: Tensor, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """A dense tensor with the largest extents; shorter tensors are padded with `padding`.

    >>> genesis.nested.to_padded_tensor(genesis.nested.nested_tensor([[1.0, 2.0], [3.0]]), 0.0)
    tensor([[1., 2.],
            [3., 0.]])
    """
    return input.to_padded_tensor(padding, output_size)


def narrow(
    input: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: object = None
) -> NestedTensor | StridedNestedTensor:
    """The sequences `input[k, start[k] : start[k] + length[k]]` of a dense tensor (batch, longest, ..)."""
    if dim != 1:
        raise ArgumentError(f"narrow: along axis 1, got {dim}")
    count = input.shape[0]
    first, sizes = ([int(n)] * count if isinstance(n, int) else values_of(n).tolist() for n in (start, length))
    return _of_layout([input[k, at : at + size] for k, (at, size) in enumerate(zip(first, sizes, strict=True))], layout)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements where `mask` holds, one sequence per row."""
    return joined([row[chosen] for row, chosen in zip(tensor.unbind(), mask.expand(tensor.shape).unbind(), strict=True)])


_installed = _rules, _strided_rules  # imported for the rules that they register
