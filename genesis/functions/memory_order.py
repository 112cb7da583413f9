"""The memory order of PyTorch's tensors: PyTorch draws random numbers in that order."""

from __future__ import annotations

from genesis.ir.shapes import Shape
from genesis.ops.layout import Layout
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tracing.pytorch_strides import strides_of_array


def strides_of(tensor: Tensor) -> Shape:
    """The strides that PyTorch's tensor would have.

    >>> strides_of(genesis.relu(genesis.zeros(2, 3).T))
    (1, 3)
    """
    return tensor.stride() if isinstance(tensor, CompositeTensor) else strides_of_array(array_of(tensor))


def memory_axes(tensor: Tensor) -> list[int]:
    """A tensor's axes from the outermost in PyTorch's memory to the innermost."""
    strides = strides_of(tensor)
    return [*range(len(strides))] if 0 in strides else sorted(range(len(strides)), key=lambda axis: -strides[axis])


def is_row_major(tensor: Tensor) -> bool:
    """Whether PyTorch's tensor would be contiguous in row-major order."""
    return Layout(tensor.shape, strides_of(tensor), 0).is_contiguous
