"""Many tensors as one: a collective of a long tensor takes less time than many of short ones."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.replayable import replayable_module
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import detach


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of tensors of one dtype, one after the other, without a gradient."""
    flat = [tensor.detach().reshape((-1,)) for tensor in tensors]
    return flat[0] if len(flat) == 1 else call(OPERATIONS["cat"], (flat,))


def put(tensors: Sequence[Tensor], whole: Tensor) -> None:
    """Write each one's part of what `joined` made of such tensors to it."""
    start = 0
    for tensor in tensors:
        write(detach(tensor), whole[start : start + tensor.numel()].reshape(tensor.shape))
        start += tensor.numel()


replayable_module(__name__)
