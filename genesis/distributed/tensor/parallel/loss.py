"""Cross entropy with classes sharded over ranks: no rank has all scores."""

from __future__ import annotations

from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.nn.functional import all_reduce
from genesis.distributed.tensor.placement_types import Partial, Replicate
from genesis.distributed.tensor.redistribution import redistribute_local
from genesis.ir.errors import ArgumentError
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording


def loss_parallel_cross_entropy(
    input: Tensor, target: Tensor, device_mesh: DeviceMesh, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """The cross entropy of scores (rows, classes / ranks), this rank's classes, and classes (rows), the same on all ranks.

    As `nn.functional.cross_entropy` of the whole scores; each rank gets the loss and its part's gradient. Raises
    ValueError for other shapes and reductions.

    >>> genesis.distributed.init_process_group()
    >>> mesh = genesis.distributed.init_device_mesh("cpu", (1,))
    >>> scores = genesis.zeros(2, 4)
    >>> genesis.distributed.tensor.parallel.loss_parallel_cross_entropy(scores, genesis.tensor([0, 3]), mesh)
    tensor(1.3863)
    >>> genesis.distributed.destroy_process_group()
    """
    if input.ndim != 2 or target.shape != input.shape[:1]:
        raise ArgumentError(f"cross entropy of classes in parts: {input.shape}, {target.shape}; want (rows, classes), (rows)")
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"reduction: {reduction!r}; want 'mean', 'sum' or 'none'")
    group = device_mesh.get_group()
    with recording(False) as again, again:
        greatest = all_reduce(input.amax(1), "max", group)
        index = target - group.rank() * input.shape[1]
        here = (index >= 0) & (index < input.shape[1])
        counted = target != ignore_index
    scores = input - greatest.reshape(-1, 1)
    total = redistribute_local(scores.exp().sum(1), Partial(), Replicate(), group)
    own = scores.gather(1, index.clamp(0, input.shape[1] - 1).reshape(-1, 1)).reshape(-1) * here
    losses = (total.log() - redistribute_local(own, Partial(), Replicate(), group)) * counted
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.sum() / counted.sum()
