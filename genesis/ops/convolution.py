"""Convolutions, as matrix products of the input's windows and the weight."""

from __future__ import annotations

from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.ops.contraction import product, swapped
from genesis.ops.correlation import block
from genesis.ops.layout import Layout, window_layout
from genesis.ops.registry import alike, cast, composite, expand
from genesis.ops.view_gradient import put_sums
from genesis.ops.views import reshape_value
from genesis.ops.window import PerAxis, pad_value, per_axis, windows


def _checked(name: str, input: Value, weight: Value, bias: Value | None, groups: int, axes: int) -> Value:
    """`input` with a batch axis."""
    if input.ndim not in (axes + 1, axes + 2) or weight.ndim != axes + 2:
        raise ValueError(
            f"{name}: input {input.shape} and weight {weight.shape}; want {axes + 1} or {axes + 2} axes, and {axes + 2}"
        )
    alike(name, input, weight, input if bias is None else bias)
    if not isinstance(groups, int) or groups < 1:
        raise ValueError(f"{name}: groups is {groups!r}; want an integer of 1 or more")
    return input if input.ndim == axes + 2 else reshape_value(input, (1, *input.shape))


def _finished(y: Value, bias: Value | None, batched: bool) -> Value:
    """Adds the bias of each channel and drops the batch axis if the input had none."""
    if bias is not None:
        if bias.shape != (y.shape[1],):
            raise ValueError(f"convolution: bias has shape {bias.shape}; want ({y.shape[1]},), the channels of the output")
        y = y + reshape_value(bias, (y.shape[1],) + (1,) * (y.ndim - 2))
    return y if batched else reshape_value(y, y.shape[1:])


def _paddings(name: str, padding: PerAxis | str, steps: Shape, reaches: Shape) -> tuple[Shape, Shape]:
    """The padding before and after along each axis."""
    if padding == "valid":
        return (0,) * len(steps), (0,) * len(steps)
    if padding == "same":
        if any(s != 1 for s in steps):
            raise ValueError(f"{name}: padding 'same' wants a stride of 1, got {steps}")
        return tuple((r - 1) // 2 for r in reaches), tuple(r // 2 for r in reaches)
    if isinstance(padding, str):
        raise ValueError(f"{name}: padding must be integers, 'same' or 'valid', got {padding!r}")
    margins = per_axis(name, "padding", padding, len(steps), 0)
    return margins, margins


_SHAPES = {1: "(n, c, l)", 2: "(n, c, h, w)", 3: "(n, c, d, h, w)"}
_WEIGHTS = {1: "(out, in / groups, k)", 2: "(out, in / groups, kh, kw)", 3: "(out, in / groups, kd, kh, kw)"}


def _convolution(axes: int) -> object:
    def define(
        input: Value, weight: Value, bias: Value | None = None, stride: PerAxis = 1, padding: PerAxis | str = 0,
        dilation: PerAxis = 1, groups: int = 1,
    ) -> Value:
        x = _checked(name, input, weight, bias, groups, axes)
        steps, taps = per_axis(name, "stride", stride, axes), per_axis(name, "dilation", dilation, axes)
        channels, sizes = weight.shape[0], weight.shape[2:]
        if x.shape[1] != weight.shape[1] * groups or channels % groups:
            raise ValueError(
                f"{name}: input {input.shape} does not fit weight {weight.shape} in {groups} groups; want "
                f"{weight.shape[1] * groups} input channels, and output channels that {groups} divides"
            )
        reaches = tuple(t * (k - 1) + 1 for t, k in zip(taps, sizes, strict=True))
        x = pad_value(x, *_paddings(name, padding, steps, reaches))
        found = windows(name, x, sizes, steps, taps)
        images, counts = x.shape[0], found.shape[2 + axes :]
        inner = numel(weight.shape[1:])
        columns = reshape_value(found, (images, groups, inner, numel(counts)))
        rows = reshape_value(weight, (1, groups, channels // groups, inner))
        y = product(expand(rows, (images, *rows.shape[1:])), columns)
        return _finished(reshape_value(y, (images, channels, *counts)), bias, input.ndim == axes + 2)

    name = f"conv{axes}d"
    define.__doc__ = f"""The cross-correlation of `input` with `weight`, over its last {axes} axes.

    Args:
        input: {_SHAPES[axes]}, or that without n.
        weight: {_WEIGHTS[axes]}.
        bias: (out,); left out if None.
        stride: how far windows are apart: an integer, or one for each axis.
        padding: zeros around the input: integers, "valid" for none, or "same" for an output of the input's extents.
        dilation: how far the elements of a window are apart.
        groups: so many parts of the channels are convolved each on its own.

    Raises ValueError for extents that do not fit, TypeError where the dtypes differ.

    >>> y = genesis.nn.functional.{name}(genesis.ones({', '.join(['1', '2'] + ['5'] * axes)}), \
genesis.ones({', '.join(['3', '2'] + ['3'] * axes)}))
    >>> y.shape, y.flatten()[0].item()
    ({(1, 3) + (3,) * axes}, {float(2 * 3 ** axes)})
    """
    return composite(name, (), method=False, namespace="nn.functional", autocast="low", takes_complex=True)(define)


def _transposed_convolution(axes: int) -> object:
    def define(
        input: Value, weight: Value, bias: Value | None = None, stride: PerAxis = 1, padding: PerAxis = 0,
        output_padding: PerAxis = 0, groups: int = 1, dilation: PerAxis = 1,
    ) -> Value:
        x = _checked(name, input, weight, bias, groups, axes)
        steps, taps = per_axis(name, "stride", stride, axes), per_axis(name, "dilation", dilation, axes)
        margins = per_axis(name, "padding", padding, axes, 0)
        more = per_axis(name, "output_padding", output_padding, axes, 0)
        if any(m >= max(s, t) for m, s, t in zip(more, steps, taps, strict=True)):
            raise ValueError(f"{name}: output_padding {more} must be less than stride {steps} or dilation {taps}")
        if x.shape[1] != weight.shape[0] or weight.shape[0] % groups:
            raise ValueError(
                f"{name}: input {input.shape} does not fit weight {weight.shape} in {groups} groups; want {weight.shape[0]} "
                f"input channels, a number that {groups} divides"
            )
        sizes, counts = weight.shape[2:], x.shape[2:]
        images, channels = x.shape[0], weight.shape[1] * groups
        rows = reshape_value(weight, (1, groups, weight.shape[0] // groups, numel(weight.shape[1:])))
        points = reshape_value(x, (images, groups, rows.shape[2], numel(counts)))
        columns = product(swapped(expand(rows, (images, *rows.shape[1:]))), points, wide=True)
        reached = tuple((n - 1) * s + t * (k - 1) + 1 for n, s, t, k in zip(counts, steps, taps, sizes, strict=True))
        whole = (images, channels, *reached)
        at = window_layout(whole, sizes, steps, taps, counts)
        y = put_sums(reshape_value(columns, at.shape), at, whole)
        left = tuple(max(r - m - max(m - o, 0), 0) for r, m, o in zip(reached, margins, more, strict=True))
        strides = contiguous_strides(whole)
        y = block(y, Layout((images, channels, *left), strides, sum(m * s for m, s in zip(margins, strides[2:], strict=True))))
        y = pad_value(y, (0,) * axes, tuple(max(o - m, 0) for m, o in zip(margins, more, strict=True)))
        return cast(_finished(y, bias, input.ndim == axes + 2), x.dtype)

    name = f"conv_transpose{axes}d"
    define.__doc__ = f"""The gradient of `conv{axes}d` by its input, as an operation of its own: windows laid over each other.

    `weight` is (in, out / groups, ..). `padding` is cut off around the result, `output_padding` added after it; other
    arguments and errors as those of `conv{axes}d`.
    """
    return composite(name, (), method=False, namespace="nn.functional", autocast="low", takes_complex=True)(define)


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transposed_convolution, (1, 2, 3))
