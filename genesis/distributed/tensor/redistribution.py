"""Redistribution of local tensors between placements, differentiably.

A replicated tensor has replicated gradients, a sharded one sharded gradients, and each term of a sum has the gradient of the
sum. So one rule gives all of Megatron's operator pairs (Shoeybi et al., 2019; Korthikanti et al., 2022): backward redistributes
a gradient from its own placement to that of its tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

from genesis.autograd.custom import Context
from genesis.autograd.function import Function
from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.nn.functional import all_reduce, collective
from genesis.distributed.process_group import ProcessGroup
from genesis.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, part_at
from genesis.functions.creation import full_like
from genesis.ops import collective as rows
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach


def redistributed(
    local: Tensor, mesh: DeviceMesh, source: Sequence[Placement], target: Sequence[Placement], shape: Sequence[int]
) -> Tensor:
    """This rank's part, in placements `target`, of a tensor of `shape`, from that in placements `source`."""
    steps = [*zip(range(mesh.ndim), source, target, strict=True)]
    if any(_shares_an_axis((*target[:axis], *source[axis:])) for axis in range(mesh.ndim + 1)):
        # Nested parts are cut from the first mesh axis on, and joined from the last one on.
        steps = [*[(axis, old, Replicate()) for axis, old, _ in reversed(steps)],
                 *[(axis, Replicate(), new) for axis, _, new in steps]]
    placed = [*source]
    for axis, old, new in steps:
        if old != new:
            extent = part_at(shape, mesh, placed[:axis])[1][old.dim] if isinstance(old, Shard) else None
            local = redistribute_local(local, old, new, mesh.get_group(axis), extent=extent)
            placed[axis] = new
    return local


def _shares_an_axis(placements: Sequence[Placement]) -> bool:
    """Whether several axes of the mesh shard the same axis of the tensor."""
    cuts = [each.dim for each in placements if isinstance(each, Shard)]
    return len({*cuts}) < len(cuts)


def redistribute_local(
    tensor: Tensor, source: Placement, target: Placement, group: ProcessGroup, gradient: Placement | None = None,
    extent: int | None = None,
) -> Tensor:
    """This rank's tensor with placement `target`, from tensors of the ranks of `group` with placement `source`.

    Args:
        gradient: the placement of the result's gradient, if it differs from `target`'s: Partial for a replicated tensor that
            each rank uses only for a part of a layer.
        extent: that of the whole along the axis in parts, if these differ in length. Parts are cut as by `chunk`.
    """
    if group.size() == 1:
        return tensor
    forth = partial(_moved, source=source, target=target, group=group, extent=extent)
    cut_to = tensor.shape[target.dim] if isinstance(target, Shard) and (
        not isinstance(source, Shard) or source.dim % tensor.ndim != target.dim % tensor.ndim) else extent
    back = partial(_moved, source=gradient or _of_gradient(target), target=_of_gradient(source), group=group, extent=cut_to)
    if not tensor.requires_grad:
        return forth(tensor)
    return _Redistributed.apply(tensor, forth, back)  # type: ignore[no-any-return]


class _Redistributed(Function):
    """`forth` of a tensor; its gradient is `back` of the result's gradient."""

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


def _moved(tensor: Tensor, source: Placement, target: Placement, group: ProcessGroup, extent: int | None = None) -> Tensor:
    """A tensor in another placement, without gradient."""
    source, target = _counted(source, tensor), _counted(target, tensor)
    if source == target:
        return tensor
    if isinstance(source, Partial):
        if isinstance(target, Shard) and source.reduce_op in ("sum", "avg"):
            cuts = (*rows.chunks(tensor.shape[target.dim], group.size()),)
            return _along(rows.reduce_scatter, tensor, target.dim, group, source.reduce_op, cuts)
        whole = collective(rows.all_reduce, tensor, source.reduce_op, group.number)
        return _moved(whole, Replicate(), target, group)
    if isinstance(source, Shard):
        parts, count = group.size(), tensor.shape[source.dim]
        if isinstance(target, Shard) and extent in (None, count * parts) and tensor.shape[target.dim] % parts == 0:
            sent = tensor.transpose(0, target.dim)  # send parts along the new axis, receive parts along the old one
            came = collective(rows.all_to_all, sent, None, None, group.number).transpose(0, target.dim)
            return _rejoined(came, source.dim, target.dim, parts)
        sizes = None if extent is None else (*rows.chunks(extent, parts),)
        return _moved(_along(rows.all_gather, tensor, source.dim, group, sizes), Replicate(), target, group)
    if isinstance(target, Shard):
        return cut(tensor, target.dim, group)
    assert isinstance(target, Partial)  # an average, a greatest or a least value is that of equal ones
    neutral = {"sum": 0, "prod": 1}.get(target.reduce_op)
    return tensor if neutral is None or group.rank() == 0 else full_like(tensor, neutral)


def _rejoined(tensor: Tensor, old: int, new: int, parts: int) -> Tensor:
    """Parts concatenated along axis `new`, rejoined along axis `old`."""
    shape = [*tensor.shape]
    split = tensor.reshape([*shape[:new], parts, shape[new] // parts, *shape[new + 1 :]]).movedim(new, old)
    shape[new] //= parts
    shape[old] *= parts
    return split.reshape(shape)


def cut(tensor: Tensor, dim: int, group: ProcessGroup) -> Tensor:
    """This rank's part of a replicated tensor, as `chunk` cuts."""
    sizes = rows.chunks(tensor.shape[dim], group.size())
    return tensor.narrow(dim, min(sum(sizes[: group.rank()]), tensor.shape[dim]), sizes[group.rank()])


def _along(row: Any, tensor: Tensor, dim: int, group: ProcessGroup, *settings: Any) -> Tensor:
    """A collective on axis 0, applied to another axis."""
    return collective(row, tensor.transpose(0, dim), *settings, group.number).transpose(0, dim)


def _counted(placement: Placement, tensor: Tensor) -> Placement:
    """A placement with a nonnegative axis. Raises IndexError for an axis out of range."""
    if not isinstance(placement, Shard):
        return placement
    if not -tensor.ndim <= placement.dim < tensor.ndim:
        raise IndexError(f"{placement} of a tensor of shape {tensor.shape}; want one of its axes")
    return Shard(placement.dim % tensor.ndim)


class Sharding(NamedTuple):
    """How a tensor is divided, but for its shape."""

    device_mesh: DeviceMesh
    placements: tuple[Placement, ...]

    def norm_of_all(self, norm: Tensor, norm_type: float) -> Tensor:
        """The norm over all ranks' parts, from this rank's `norm`."""
        for axis, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                group = self.device_mesh.get_group(axis)
                norm = all_reduce(norm, "max", group) if norm_type == inf else (
                    all_reduce(norm**norm_type, "sum", group) ** (1 / norm_type))
        return norm
