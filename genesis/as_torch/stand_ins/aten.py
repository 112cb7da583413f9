"""Operations of `torch.ops.aten` without a function in `torch`, with positional arguments."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.tensor.handle import Tensor

__all__ = ["max_pool2d_with_indices_backward", "native_dropout_backward"]


def max_pool2d_with_indices_backward(
    grad_output: Tensor, input: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil_mode: bool, indices: Tensor,
) -> Tensor:
    """The gradient of `input` (.., h, w): `grad_output` (.., h', w') added at the `indices` of the maxima."""
    zeros = grad_output.new_zeros(input.shape).flatten(-2)
    return zeros.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).reshape(input.shape)


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """`grad_output` where `mask` is true, times `scale`; 0 elsewhere."""
    return grad_output * mask * scale
