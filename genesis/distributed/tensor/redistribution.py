"""Local tensors from one placement to another, with gradients.

A tensor that ranks hold as a whole has gradients that they hold as a whole; parts have parts; and the gradient of each term of
a sum is that of the sum. One rule gives all of Megatron's pairs (Shoeybi et al., 2019; Korthikanti et al., 2022): backward
moves a gradient from its placement to that of what it is the gradient of.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from genesis.autograd.custom import Context
from genesis.autograd.function import Function
from genesis.distributed.nn.functional import collective
from genesis.distributed.process_group import ProcessGroup
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from genesis.ir.errors import ArgumentError
from genesis.ir.replayable import replayable_module
from genesis.ops import collective as rows
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach


def redistribute_local(
    tensor: Tensor, source: Placement, target: Placement, group: ProcessGroup, gradient: Placement | None = None
) -> Tensor:
    """This rank's tensor of placement `target`, of what the ranks of `group` hold in placement `source`.

    Args:
        gradient: the placement of the result's gradient, where that is not `target`'s own: Partial for a tensor that all
            ranks have, and that each uses for a part of a layer only.

    Raises ValueError for a tensor that has no equal parts, and where `target` is a sum and `source` is not.
    """
    if group.size() == 1:
        return tensor
    forth = partial(_moved, source=source, target=target, group=group)
    back = partial(_moved, source=gradient or _of_gradient(target), target=_of_gradient(source), group=group)
    if not tensor.requires_grad:
        return forth(tensor)
    return _Redistributed.apply(tensor, forth, back)  # type: ignore[no-any-return]


class _Redistributed(Function):
    """`forth` of a tensor, whose gradient is `back` of the result's."""

    @staticmethod
    def forward(ctx: Context, tensor: Tensor, forth: Any, back: Any) -> Tensor:
        ctx.save_variable("back", back)
        result = forth(tensor)
        return detach(tensor) if result is tensor else result

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> Tensor:
        return ctx.saved_variables["back"](gradient)  # type: ignore[no-any-return]


def _of_gradient(placement: Placement) -> Placement:
    return Replicate() if isinstance(placement, Partial) else placement


def _moved(tensor: Tensor, source: Placement, target: Placement, group: ProcessGroup) -> Tensor:
    """A tensor of another placement, without a gradient."""
    source, target = _counted(source, tensor), _counted(target, tensor)
    if source == target:
        return tensor
    if isinstance(source, Partial):
        if isinstance(target, Shard):
            return _along(rows.reduce_scatter, tensor, target.dim, group, "sum", None)
        return collective(rows.all_reduce, tensor, "sum", group.number)
    if isinstance(target, Partial):
        raise ArgumentError(f"redistribute: from {source} to a sum; want Shard or Replicate")
    if isinstance(source, Replicate):
        assert isinstance(target, Shard)
        return cut(tensor, target.dim, group)
    assert isinstance(source, Shard)
    if isinstance(target, Replicate):
        return _along(rows.all_gather, tensor, source.dim, group, None)
    assert isinstance(target, Shard)
    _check_parts(tensor, target.dim, group)
    sent = tensor.transpose(0, target.dim)  # parts along the new axis go out, and come back along the old one
    came = collective(rows.all_to_all, sent, None, None, group.number).transpose(0, target.dim)
    return _rejoined(came, source.dim, target.dim, group.size())


def _rejoined(tensor: Tensor, old: int, new: int, parts: int) -> Tensor:
    """Parts that lie one after the other along axis `new`, joined along axis `old`."""
    shape = [*tensor.shape]
    split = tensor.reshape([*shape[:new], parts, shape[new] // parts, *shape[new + 1 :]]).movedim(new, old)
    shape[new] //= parts
    shape[old] *= parts
    return split.reshape(shape)


def cut(tensor: Tensor, dim: int, group: ProcessGroup) -> Tensor:
    """This rank's part of a tensor that all have. Raises ValueError where the axis has no equal parts."""
    _check_parts(tensor, dim, group)
    size = tensor.shape[dim] // group.size()
    return tensor.narrow(dim, group.rank() * size, size)


def _along(row: Any, tensor: Tensor, dim: int, group: ProcessGroup, *settings: Any) -> Tensor:
    """A collective that cuts or joins axis 0, on another axis."""
    if row is rows.reduce_scatter:
        _check_parts(tensor, dim, group)
    return collective(row, tensor.transpose(0, dim), *settings, group.number).transpose(0, dim)


def _counted(placement: Placement, tensor: Tensor) -> Placement:
    """A placement whose axis is counted from the front. Raises IndexError for an axis that is not there."""
    if not isinstance(placement, Shard):
        return placement
    if not -tensor.ndim <= placement.dim < tensor.ndim:
        raise IndexError(f"{placement} of a tensor of shape {tensor.shape}; want one of its axes")
    return Shard(placement.dim % tensor.ndim)


def _check_parts(tensor: Tensor, dim: int, group: ProcessGroup) -> None:
    if tensor.shape[dim] % group.size():
        raise ArgumentError(f"axis {dim} of shape {tensor.shape} has no {group.size()} equal parts, one for each rank")


replayable_module(__name__)
