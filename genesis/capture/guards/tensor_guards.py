"""Guards of tensors that a call reaches by name, such as parameters and an optimizer's state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


class TensorGuards:
    """The guards of an entry's tensors. Fast path: the array has the node of the last call."""

    def __init__(self, rows: Sequence[TensorGuard]) -> None:
        self._rows = rows
        self._nodes = [row.node for row in rows]
        self._tensors = [row.tensor for row in rows]
        self._requires_grad = [row.requires_grad for row in rows]
        self._are_bare = [row.is_bare for row in rows]

    def rows(self) -> Iterator[tuple[TensorGuard, Node]]:
        """Each guard, and the node of its fast path."""
        return zip(self._rows, self._nodes, strict=True)

    def arrays(self) -> list[Array] | int:
        """The tensors' arrays, or the number of the guard that failed."""
        # A loop over attributes takes 10 ns a look-up, passes of `map` 40 ns: measured with 4 and with 160 tensors.
        arrays = []
        for tensor, node, requires_grad, is_bare in zip(
            self._tensors, self._nodes, self._requires_grad, self._are_bare, strict=True
        ):
            array = tensor._array
            memory = array.memory
            if (
                array.node is not node or memory is None or memory.strides is not None or tensor._base is not None
                or tensor._requires_grad is not requires_grad or memory.buffer._flat is not None
                or memory.buffer._owner is not None
                or (is_bare and (tensor._hooks or tensor._post_hooks or tensor._node_hooks is not None))
            ):
                return self._looked_through()
            arrays.append(array)
        return arrays

    def _looked_through(self) -> list[Array] | int:
        # A tensor that was loaded, or overwritten by uncompiled code, has an equivalent node of another program: learn it.
        found = _guarded_arrays(self._rows)
        if found.__class__ is not int:  # equivalent, of another program
            self._nodes = [array.node for array in found]  # type: ignore[union-attr]
        return found


def _guarded_arrays(rows: Sequence[TensorGuard]) -> list[Array] | int:
    arrays = []
    for tensor, node, requires_grad, is_bare, is_read, strides, is_private, number in rows:
        array = tensor._array
        if tensor._base is not None:
            return number
        if array.node is not node and unlike(array.node, node):
            return number + 1
        if tensor._requires_grad is not requires_grad:
            return number + 2
        if is_bare and (tensor._hooks or tensor._post_hooks or tensor._node_hooks is not None):
            return number + 3
        if is_read:
            memory = array.memory or realize(array)
            if memory.strides != strides:
                return number + 4
            buffer = memory.buffer
            if is_private and (buffer._flat is not None or buffer._owner is not None) and buffer.shared:
                return number + 5
        arrays.append(array)
    return arrays


def unlike(now: Node, then: Node) -> bool:
    """Whether values differ in shape, dtype or differentiability, which programs rely on."""
    return now.shape != then.shape or now.dtype is not then.dtype or now.differentiable != then.differentiable
