"""Normalizations that also return their statistics, as PyTorch's backward needs them: `genesis.native_batch_norm` and others.

Each returns (output, mean, 1 / sqrt(variance + eps)). As in PyTorch, gradients flow only through the statistics of groups.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.functions.overrides import overridable
from genesis.nn.functional import batch_norm, group_norm, layer_norm
from genesis.tensor.handle import Tensor

Normal = tuple[Tensor, Tensor, Tensor]


def _with_statistics(normal: Tensor, x: Tensor, axes: Sequence[int], keepdim: bool, eps: float, like: Tensor | None) -> Normal:
    """Statistics in the dtype of the parameter `like`, or of `x`; computed in at least float32."""
    wide = x.float() if x.dtype.itemsize < 4 else x
    statistics = wide.mean(axes, keepdim), (wide.var(axes, keepdim=keepdim, correction=0) + eps).rsqrt()
    dtype = x.dtype if like is None else like.dtype
    return normal, *[s.to(dtype) for s in statistics]  # type: ignore[return-value]


@overridable
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float,
) -> Normal:
    """`nn.functional.batch_norm` of (n, channels, ..), with the batch's statistics (channels,); empty unless `training`.

    >>> x = genesis.tensor([[1.0], [3.0]])
    >>> genesis.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1:]
    (tensor([2.]), tensor([1.]))
    """
    normal = batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        like = input if running_mean is None else running_mean
        return normal, like.new_empty(0), like.new_empty(0)
    return _with_statistics(normal, input.detach(), (0, *range(2, input.ndim)), False, eps, running_mean)


@overridable
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> Normal:
    """`nn.functional.group_norm` of (N, C, ..), with statistics (N, group).

    Raises ValueError unless `input` has N times C times HxW elements.

    >>> genesis.native_group_norm(genesis.tensor([[[1.0, 3.0]]]), None, None, 1, 1, 2, 1, 0.0)
    (tensor([[[-1.,  1.]]]), tensor([[2.]]), tensor([[1.]]))
    """
    if input.shape[:2] != (N, C) or input.numel() != N * C * HxW:
        raise ValueError(f"native_group_norm: input has shape {input.shape}; want ({N}, {C}, ..) of {HxW} elements each")
    normal = group_norm(input, group, weight, bias, eps)
    return _with_statistics(normal, input.reshape(N, group, C // group * HxW), (2,), False, eps, weight)


@overridable
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> Normal:
    """`nn.functional.layer_norm`, with statistics that have extents 1 along the axes of `normalized_shape`.

    >>> genesis.native_layer_norm(genesis.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)[1:]
    (tensor([[2.]]), tensor([[1.]]))
    """
    normal = layer_norm(input, tuple(normalized_shape), weight, bias, eps)
    return _with_statistics(normal, input.detach(), tuple(range(-len(normalized_shape), 0)), True, eps, weight)
