"""Optimizer steps on only the rows of sparse gradients."""

from __future__ import annotations

from genesis.ir.shapes import numel
from genesis.optim.optimizer import Group, Optimizer
from genesis.sparse.positions import flat_positions
from genesis.sparse.sparse_tensor import SparseTensor, coalesced
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write


def update_rows(
    optimizer: Optimizer, parameters: list[Tensor], gradients: list[SparseTensor], group: Group, age: int
) -> None:
    """Run the optimizer's operation on the rows of sparse gradients, of the parameters and their state."""
    slots, settings = optimizer.slots(group), optimizer.settings(group, age)
    for parameter, gradient in zip(parameters, map(coalesced, gradients), strict=True):
        at, elements = flat_positions(gradient._positions, gradient.extents), gradient.values()
        whole = [parameter, *[optimizer.state[parameter][slot] for slot in slots]]
        shape = (numel(gradient.extents), *elements.shape[1:])
        flat = [one if one.shape == shape else one.reshape(shape) for one in whole]  # a table is written in place
        rows = [[one[at]] for one in flat]
        kept = dict(zip(slots, rows[1:], strict=True))
        results = call(optimizer.operation, (rows[0], [elements], *[kept.get(kind, []) for kind in optimizer.kinds], *settings))
        for one, before, new in zip(whole, flat, results, strict=True):
            after = before.index_copy(0, at, new)
            write(one, after if before is one else after.reshape(one.shape))
