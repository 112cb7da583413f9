"""torchvision's compiled operations, `torch.ops.torchvision`, with positional arguments."""

from __future__ import annotations

import numpy as np

import genesis
from genesis.ir.errors import ArgumentError
from genesis.tensor.handle import Tensor

__all__ = ["deform_conv2d", "nms"]


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The rows (int64) of `dets` (n, 4), as x1, y1, x2, y2, that no kept one of a higher score overlaps by more than that."""
    if dets.ndim != 2 or dets.shape != (*scores.shape, 4):
        raise ArgumentError(
            f"nms: got boxes of shape {tuple(dets.shape)} and scores {tuple(scores.shape)}; want (n, 4) and (n,)")
    boxes = dets.detach().to(genesis.promote_types(dets.dtype, genesis.float32)).numpy()  # areas overflow 16 bits
    left = scores.detach().argsort(descending=True, stable=True).numpy()
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while left.size:
        first, left = left[0], left[1:]
        kept.append(first)
        low, high = np.maximum(boxes[first, :2], boxes[left, :2]), np.minimum(boxes[first, 2:], boxes[left, 2:])
        common = np.maximum(high - low, 0).prod(axis=1)
        with np.errstate(invalid="ignore"):  # two empty boxes: NaN, which overlaps nothing
            left = left[~(common / (areas[first] + areas[left] - common) > np.float64(iou_threshold))]
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
    sampled = _between_pixels(input.reshape(n, n_offset_grps, c // n_offset_grps, h, w), y, x)
    if use_mask:
        sampled = sampled * mask.reshape(n, n_offset_grps, 1, window, out_h, out_w)
    columns = sampled.reshape(n, n_weight_grps, c // n_weight_grps * window, out_h * out_w)
    products = weight.reshape(n_weight_grps, -1, columns.shape[2]) @ columns
    return products.reshape(n, -1, out_h, out_w) + bias[:, None, None]


def _between_pixels(images: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The elements (n, g, c, ..) of `images` (n, g, c, h, w) at `y` and `x` (n, g, ..); on pixels, with the slopes beyond."""
    h, w = images.shape[3:]
    top, left = y.detach().floor(), x.detach().floor()
    parts = []
    for i, vertical in ((top, 1 - (y - top)), (top + 1, y - top)):
        for j, horizontal in ((left, 1 - (x - left)), (left + 1, x - left)):
            is_inside = (i >= 0) & (i < h) & (j >= 0) & (j < w)
            at = genesis.where(is_inside, i, 0).long() * w + genesis.where(is_inside, j, 0).long()
            found = images.flatten(3).gather(3, at.flatten(2)[:, :, None].expand(-1, -1, images.shape[2], -1))
            share = genesis.where(is_inside, vertical * horizontal, 0)[:, :, None]
            parts.append(found.unflatten(3, at.shape[2:]) * share)
    return genesis.stack(parts).sum(0)
