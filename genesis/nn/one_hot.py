"""Positions as rows of zeros with a one."""

from __future__ import annotations

from genesis.functions.overrides import overridable
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = ["one_hot"]


@overridable
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A row of `num_classes` for each element of an integer `tensor` (..), int64 (.., num_classes): 1 there, 0 elsewhere.

    With -1, so many classes as the greatest element asks for, which computes it. Raises TypeError for other dtypes,
    ValueError for another negative `num_classes` or none to count, and, when it is computed, IndexError for an element
    out of range.

    >>> import genesis
    >>> one_hot(genesis.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if num_classes < -1 or (num_classes == -1 and not tensor.numel()):
        raise ValueError(f"one_hot: num_classes is {num_classes} for shape {tensor.shape}; want the number of classes")
    count = int(tensor.max().item()) + 1 if num_classes == -1 else num_classes
    return call(OPERATIONS["one_hot"], (tensor, count))
