"""Windows over the last axes: padding, `im2col` and `fold`, pixel shuffles.

All windows of a value are one view of it, whose gradient sums the windows back over each other. A matrix product with
that view is a convolution (`genesis.ops.convolution`), a reduction of it a pooling (`genesis.ops.pooling`).
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.dtypes import bool_, int64
from genesis.ir.errors import ArgumentError, UnknownModeError
from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.joining import cat
from genesis.ops.layout import Layout, contiguous_layout, window_layout
from genesis.ops.registry import OPERATIONS, cast, composite, expand
from genesis.ops.view_gradient import put_sums
from genesis.ops.views import flip_value, permute_value, put_value, reshape_value, slice_value, view_node

PerAxis = int | Sequence[int]


def per_axis(name: str, setting: str, value: PerAxis, count: int, least: int = 1) -> tuple[int, ...]:
    """A setting for each of `count` axes, from one value or one per axis."""
    values = (value,) * count if isinstance(value, int) else tuple(value)
    if len(values) == 1:
        values *= count
    if len(values) != count or not all(isinstance(v, int) and v >= least for v in values):
        raise ArgumentError(f"{name}: {setting} is {value}; want an integer of {least} or more, or {count} of them")
    return values


def _counts(name: str, extents: Shape, sizes: Shape, strides: Shape, dilations: Shape) -> Shape:
    """The number of windows along each axis. Raises ValueError if there is none."""
    reaches = [d * (k - 1) + 1 for k, d in zip(sizes, dilations, strict=True)]
    for extent, reach in zip(extents, reaches, strict=True):
        if reach > extent:
            raise ValueError(f"{name}: a window that spans {reach} does not fit into the padded extent {extent}")
    return tuple((e - r) // s + 1 for e, r, s in zip(extents, reaches, strides, strict=True))


def windows(name: str, x: Value, sizes: Shape, strides: Shape, dilations: Shape) -> Value:
    """All windows over the last axes of `x`, as a view (.., *sizes, *counts)."""
    spatial = x.shape[x.ndim - len(sizes) :]
    counts = _counts(name, spatial, sizes, strides, dilations)
    return view_node(x, window_layout(x.shape, sizes, strides, dilations, counts), name)


def _cut(x: Value, axis: int, front: int, back: int) -> Value:
    """`x` without the elements at both ends of an axis that negative paddings count."""
    first, end = max(-front, 0), x.shape[axis] - max(-back, 0)
    if end < first:
        raise ValueError(f"pad: {(front, back)} cut more than the extent {x.shape[axis]}")
    return slice_value(x, axis, first, end)


def pad_value(x: Value, before: Shape, after: Shape, value: float = 0) -> Value:
    """`x` padded with `value` before and after along each of the last axes; negative widths cut."""
    lead = x.ndim - len(before)
    for axis, (first, last) in enumerate(zip(before, after, strict=True), lead):
        x = _cut(x, axis, first, last)
    front, back = tuple(max(p, 0) for p in before), tuple(max(p, 0) for p in after)
    if not any(front) and not any(back):
        return x
    rest = [e + f + b for e, f, b in zip(x.shape[lead:], front, back, strict=True)]
    shape = (*x.shape[:lead], *rest)
    strides = contiguous_layout(shape).strides
    offset = sum(f * s for f, s in zip(front, strides[lead:], strict=True))
    return put_value(expand(cast(x.graph.constant(value, x.dtype), x.dtype), shape), x, Layout(x.shape, strides, offset), shape)


# ---- pad ----
@composite("constant_pad_nd", method=False, takes_complex=True, elements=("value",))
def constant_pad_nd(input: Value, pad: Sequence[int], value: float = 0) -> Value:
    """`pad` with a constant."""
    return OPERATIONS["pad"](input, pad, "constant", value)


@composite("pad", method=False, namespace="nn.functional", takes_complex=True, elements=("value",))
def pad(input: Value, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Value:
    """`input` with more elements around it.

    Args:
        input: of any shape.
        pad: how many elements before and after along the last axis, then along the one before it, and so on; negative
            ones are cut off instead.
        mode: "constant" pads with `value`, "reflect" mirrors at the edge without repeating it, "replicate" repeats the edge,
            "circular" continues at the other end.
        value: 0 if None.

    Raises ValueError for other modes, an odd number of paddings, more elements than the mode has values for, and
    more that are cut off than there are.

    >>> x = genesis.tensor([1, 2, 3])
    >>> pad = genesis.nn.functional.pad
    >>> pad(x, (1, 2)).tolist(), pad(x, (2, 2), "reflect").tolist(), pad(x, (1, 0), "circular").tolist()
    ([0, 1, 2, 3, 0, 0], [3, 2, 1, 2, 3, 2, 1], [3, 1, 2, 3])
    """
    pads = tuple(pad)
    if len(pads) % 2 or len(pads) > 2 * input.ndim:
        raise ValueError(f"pad: {pads} are {len(pads)} paddings; want two for each of at most {input.ndim} axes")
    before, after = pads[-2::-2], pads[-1::-2]
    if mode == "constant":
        return pad_value(input, before, after, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise UnknownModeError(f"pad: mode must be 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}")
    if value:
        raise ValueError(f"pad: value {value} is of no use in mode {mode!r}")
    for axis, (front, back) in enumerate(zip(before, after, strict=True), input.ndim - len(before)):
        input = _mirrored(input, axis, front, back, mode)
    return input


def _mirrored(x: Value, axis: int, front: int, back: int, mode: str) -> Value:
    if mode != "circular" and min(front, back) < 0 < max(front, back):  # the edge is repeated before it is cut
        return _cut(_mirrored(x, axis, max(front, 0), max(back, 0), mode), axis, min(front, 0), min(back, 0))
    x = _cut(x, axis, front, back)
    front, back, extent = max(front, 0), max(back, 0), x.shape[axis]
    most = {"reflect": max(extent - 1, 0), "circular": extent, "replicate": front + back if extent else 0}[mode]
    if max(front, back) > most:
        raise ValueError(f"pad: {(front, back)} elements along axis {axis} of extent {extent}; want {most} at most")
    if mode == "reflect":
        ends = [slice_value(x, axis, 1, front + 1), slice_value(x, axis, extent - 1 - back, extent - 1)]
        first, last = [flip_value(e, axis) for e in ends]
    elif mode == "circular":
        first, last = slice_value(x, axis, extent - front, extent), slice_value(x, axis, 0, back)
    else:
        first, last = (
            expand(edge, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
            for edge, count in ((slice_value(x, axis, 0, 1), front), (slice_value(x, axis, extent - 1, extent), back))
        )
    parts = [part for part in (first, x, last) if part.shape[axis]]
    return cat.define(parts, axis) if len(parts) > 1 else x


# ---- im2col and back ----
@composite("im2col", method=False, aliases=("nn.functional.unfold",), public=False, takes_complex=True)
def im2col(input: Value, kernel_size: PerAxis, dilation: PerAxis = 1, padding: PerAxis = 0, stride: PerAxis = 1) -> Value:
    """The windows of images as columns: (n, c, h, w) or (c, h, w) -> (n, c * kernel elements, windows).

    Raises ValueError for other ranks, and where no window fits.

    >>> genesis.nn.functional.unfold(genesis.arange(9).reshape(1, 3, 3), 2)
    tensor([[0, 1, 3, 4],
            [1, 2, 4, 5],
            [3, 4, 6, 7],
            [4, 5, 7, 8]])
    """
    sizes, steps, taps, margins = _settings("unfold", kernel_size, stride, dilation, padding)
    if input.ndim not in (3, 4):
        raise ValueError(f"unfold: input must be (n, c, h, w) or (c, h, w), got shape {input.shape}")
    found = windows("unfold", pad_value(input, margins, margins), sizes, steps, taps)
    lead = input.shape[: input.ndim - 3]
    return reshape_value(found, (*lead, input.shape[-3] * numel(sizes), numel(found.shape[-2:])))


@composite("fold", method=False, namespace="nn.functional")
def fold(
    input: Value, output_size: PerAxis, kernel_size: PerAxis, dilation: PerAxis = 1, padding: PerAxis = 0, stride: PerAxis = 1
) -> Value:
    """Sums columns back into images at their windows' positions: the transpose of `unfold`.

    `input` is (n, c * kernel elements, windows), or that without n. Raises ValueError unless these fit `output_size`.

    >>> genesis.nn.functional.fold(genesis.ones(1, 4, 4), (3, 3), 2)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    size = per_axis("fold", "output_size", output_size, 2)
    sizes, steps, taps, margins = _settings("fold", kernel_size, stride, dilation, padding)
    wide = tuple(e + 2 * m for e, m in zip(size, margins, strict=True))
    counts = _counts("fold", wide, sizes, steps, taps)
    if input.ndim not in (2, 3) or input.shape[-2] % numel(sizes) or input.shape[-1] != numel(counts):
        raise ValueError(
            f"fold: input {input.shape} does not fit; want (.., c * {numel(sizes)}, {numel(counts)}) for output_size {size}"
        )
    lead = (*input.shape[:-2], input.shape[-2] // numel(sizes))
    at = window_layout((*lead, *wide), sizes, steps, taps, counts)
    terms = cast(input, int64) if input.dtype is bool_ else input
    summed = cast(put_sums(reshape_value(terms, at.shape), at, (*lead, *wide)), input.dtype)
    return pad_value(summed, tuple(-m for m in margins), tuple(-m for m in margins))


def _settings(name: str, kernel: PerAxis, stride: PerAxis, dilation: PerAxis, padding: PerAxis) -> tuple[Shape, ...]:
    return (
        per_axis(name, "kernel_size", kernel, 2), per_axis(name, "stride", stride, 2),
        per_axis(name, "dilation", dilation, 2), per_axis(name, "padding", padding, 2, 0),
    )


# ---- channels to pixels, and back ----
def _image(name: str, input: Value, channels: int, rows: int, columns: int) -> tuple[int, int, int]:
    """The channels, rows and columns of images (.., c, h, w), which the arguments must divide."""
    wants = f"want (.., c, h, w) that {channels}, {rows} and {columns} divide"
    if input.ndim < 3 or min(channels, rows, columns) < 1:
        raise ValueError(f"{name}: input has shape {input.shape}; {wants}")
    c, h, w = input.shape[-3:]
    if c % channels or h % rows or w % columns:
        raise ValueError(f"{name}: input has shape {input.shape}; {wants}")
    return c, h, w


@composite("pixel_shuffle", method=False, namespace="nn.functional", takes_complex=True)
def pixel_shuffle(input: Value, upscale_factor: int) -> Value:
    """(.., c * r^2, h, w) -> (.., c, h * r, w * r): every r^2 channels become r x r pixels (Shi et al., 2016).

    Raises ValueError unless r^2 divides the channels.

    >>> genesis.nn.functional.pixel_shuffle(genesis.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    r = upscale_factor
    c, h, w = _image("pixel_shuffle", input, r * abs(r), 1, 1)
    lead = input.shape[:-3]
    n = len(lead)
    parts = reshape_value(input, (*lead, c // (r * r), r, r, h, w))
    spread = permute_value(parts, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape_value(spread, (*lead, c // (r * r), h * r, w * r))


@composite("pixel_unshuffle", method=False, namespace="nn.functional", takes_complex=True)
def pixel_unshuffle(input: Value, downscale_factor: int) -> Value:
    """(.., c, h * r, w * r) -> (.., c * r^2, h, w): the inverse of `pixel_shuffle`."""
    r = downscale_factor
    c, h, w = _image("pixel_unshuffle", input, 1, r, r)
    lead = input.shape[:-3]
    n = len(lead)
    parts = reshape_value(input, (*lead, c, h // r, r, w // r, r))
    joined = permute_value(parts, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape_value(joined, (*lead, c * r * r, h // r, w // r))


@composite("channel_shuffle", method=False, namespace="nn.functional", takes_complex=True)
def channel_shuffle(input: Value, groups: int) -> Value:
    """Interleaves the channels (axis 1) of the groups: the first of each, then the second of each (Zhang et al., 2018).

    >>> genesis.nn.functional.channel_shuffle(genesis.arange(4).reshape(1, 4, 1), 2).tolist()
    [[[0], [2], [1], [3]]]
    """
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        raise ValueError(f"channel_shuffle: {groups} groups of shape {input.shape}; want (n, c, ..) that {groups} divides")
    n, c, *rest = input.shape
    parts = reshape_value(input, (n, groups, c // groups, *rest))
    return reshape_value(permute_value(parts, (0, 2, 1, *range(3, parts.ndim))), input.shape)
