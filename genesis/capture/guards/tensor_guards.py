"""Guards of tensors that a call reaches by name, such as parameters and an optimizer's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.execution.realize import realize
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape
from genesis.tensor.handle import Tensor
from genesis.tracing.trace import Array

LABELS = (
    "whether {} is a view", "the shape or dtype of {}", "requires_grad of {}", "the hooks of {}", "the strides of {}",
    "whether NumPy sees the memory of {}",
)


class TensorGuard(NamedTuple):
    """A root and its required state; the guard that fails has the number `number` + the index of its label in LABELS."""

    tensor: Tensor
    node: Node
    requires_grad: bool
    is_bare: bool  # a leaf without hooks
    is_read: bool
    strides: Shape | None
    is_private: bool
    number: int


def guarded_arrays(rows: Sequence[TensorGuard]) -> list[Array] | int:
    """The tensors' arrays, or the number of the guard that failed."""
    arrays = []
    for tensor, node, requires_grad, is_bare, is_read, strides, is_private, number in rows:
        array = tensor._array
        if tensor._base is not None:
            return number
        if array.node is not node and unlike(array.node, node):  # as of a tensor that was loaded
            return number + 1
        if tensor._requires_grad is not requires_grad:
            return number + 2
        if is_bare and (tensor._hooks or tensor._post_hooks or tensor._node_hooks is not None):
            return number + 3
        if is_read:
            memory = array.memory or realize(array)
            if memory.strides != strides:
                return number + 4
            if is_private and memory.buffer.shared:
                return number + 5
        arrays.append(array)
    return arrays


def unlike(now: Node, then: Node) -> bool:
    """Whether values differ in shape, dtype or differentiability, which programs rely on."""
    return now.shape != then.shape or now.dtype is not then.dtype or now.differentiable != then.differentiable
