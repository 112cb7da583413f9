"""torchvision's compiled operations, `torch.ops.torchvision`, with positional arguments."""

from __future__ import annotations

import numpy as np

import genesis
from genesis.tensor.handle import Tensor

__all__ = ["deform_conv2d", "nms"]


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The rows (int64) of `dets` (n, 4), as x1, y1, x2, y2, that no kept one of a higher score overlaps by more than that."""
    boxes, left = dets.detach().numpy(), np.argsort(-scores.detach().numpy(), kind="stable")
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while left.size:
        first, left = left[0], left[1:]
        kept.append(first)
        low, high = np.maximum(boxes[first, :2], boxes[left, :2]), np.minimum(boxes[first, 2:], boxes[left, 2:])
        common = np.maximum(high - low, 0).prod(axis=1)
        with np.errstate(invalid="ignore"):  # two empty boxes: NaN, which overlaps nothing
            left = left[~(common / (areas[first] + areas[left] - common) > iou_threshold)]
    return genesis.tensor(np.array(kept, np.int64))


def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int, pad_h: int,
    pad_w: int, dil_h: int, dil_w: int, n_weight_grps: int, n_offset_grps: int, use_mask: bool,
) -> Tensor:
    """A convolution (n, o, h', w') of `input` (n, c, h, w) whose elements lie off the grid by an `offset` (n, 2 g k, h', w').

    Between pixels and beyond the border they are interpolated, with zeros outside, and `mask` (n, g k, h', w') scales them,
    as in Zhu et al., "Deformable ConvNets v2", https://arxiv.org/abs/1811.11168. k is the size of `weight`'s window.
    """
    (n, c, h, w), (kernel_h, kernel_w), (out_h, out_w) = input.shape, weight.shape[2:], offset.shape[2:]
    window = kernel_h * kernel_w
    shifts = offset.reshape(n, n_offset_grps, window, 2, out_h, out_w)
    row = genesis.arange(kernel_h).repeat_interleave(kernel_w)[:, None, None] * dil_h - pad_h
    column = genesis.arange(kernel_w).repeat(kernel_h)[:, None, None] * dil_w - pad_w
    y = shifts[:, :, :, 0] + (row + genesis.arange(out_h)[:, None] * stride_h)
    x = shifts[:, :, :, 1] + (column + genesis.arange(out_w) * stride_w)
    grid = genesis.stack([(2 * x + 1) / w - 1, (2 * y + 1) / h - 1], -1)  # of `grid_sample`: -1 and 1 are the outer edges
    sampled = genesis.nn.functional.grid_sample(
        input.reshape(n * n_offset_grps, -1, h, w), grid.reshape(n * n_offset_grps, window * out_h, out_w, 2),
        padding_mode="zeros", align_corners=False).reshape(n, n_offset_grps, -1, window, out_h, out_w)
    if use_mask:
        sampled = sampled * mask.reshape(n, n_offset_grps, 1, window, out_h, out_w)
    columns = sampled.reshape(n, n_weight_grps, c // n_weight_grps * window, out_h * out_w)
    products = weight.reshape(n_weight_grps, -1, columns.shape[2]) @ columns
    return products.reshape(n, -1, out_h, out_w) + bias[:, None, None]
