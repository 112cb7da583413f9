"""Pooling: reductions over windows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TypeVar

from genesis.ir.dtypes import int32, int64
from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.elementwise import maximum, minimum, pow, relu, sign, where
from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.ordering import as_before, rows_along
from genesis.ops.reduction import argmax, first_greatest, mean, sum
from genesis.ops.registry import Operation, cast, composite, widened
from genesis.ops.source import iota
from genesis.ops.views import permute_value, reshape_value, view_node
from genesis.ops.window import PerAxis, pad_value, per_axis, windows

Result = TypeVar("Result")


def _checked(name: str, input: Value, axes: int) -> None:
    if input.ndim not in (axes + 1, axes + 2):
        raise ValueError(f"{name}: input must have {axes + 1} or {axes + 2} axes, got shape {input.shape}")


def _overhang(extent: int, size: int, stride: int, margin: int, dilation: int, ceil_mode: bool) -> int:
    """The elements that windows read after the input: its padding, and with `ceil_mode` what the last window needs beyond."""
    reach = dilation * (size - 1) + 1
    left = extent + 2 * margin - reach
    if not ceil_mode:
        return margin
    count = -(-left // stride) + 1
    if (count - 1) * stride >= extent + margin:  # a window must start within the input or the padding before it
        count -= 1
    return max(margin, (count - 1) * stride + reach - extent - margin)


def _least(x: Value) -> float | int:
    if x.dtype.is_floating_point:
        return float("-inf")
    bits = 8 * x.dtype.itemsize
    return -(1 << (bits - 1)) if x.dtype.is_signed else 0


class _Settings:
    """The arguments that all poolings share, one value per axis."""

    def __init__(
        self, name: str, input: Value, axes: int, kernel: PerAxis, stride: PerAxis | None, padding: PerAxis, dilation: PerAxis,
        ceil_mode: bool,
    ) -> None:
        _checked(name, input, axes)
        if 0 in input.shape[input.ndim - axes - 1 :]:
            raise ValueError(f"{name}: input has shape {input.shape}; want no axis but the batch's without elements")
        self.name = name
        self.sizes = per_axis(name, "kernel_size", kernel, axes)
        self.steps = self.sizes if stride is None or stride == () else per_axis(name, "stride", stride, axes)
        self.margins = per_axis(name, "padding", padding, axes, 0)
        self.taps = per_axis(name, "dilation", dilation, axes)
        if any(2 * m > k for m, k in zip(self.margins, self.sizes, strict=True)):
            raise ValueError(f"{name}: padding {self.margins} is more than half of kernel_size {self.sizes}")
        self.extents = input.shape[input.ndim - axes :]
        self.after = tuple(
            _overhang(*each, ceil_mode)
            for each in zip(self.extents, self.sizes, self.steps, self.margins, self.taps, strict=True)
        )

    def windows(self, x: Value, fill: float) -> Value:
        """(.., *counts, *sizes)."""
        found = windows(self.name, pad_value(x, self.margins, self.after, fill), self.sizes, self.steps, self.taps)
        axes, lead = len(self.sizes), x.ndim - len(self.sizes)
        order = [*range(lead), *range(lead + axes, lead + 2 * axes), *range(lead, lead + axes)]
        return permute_value(found, order)


# ---- max ----
def _last(axes: int) -> str:
    return "the last axis" if axes == 1 else f"the last {axes} axes"


def _max_pool(axes: int) -> Operation:
    def define(
        input: Value, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0, dilation: PerAxis = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Value | tuple[Value, Value]:
        settings = _Settings(name, input, axes, kernel_size, stride, padding, dilation, ceil_mode)
        x = input if input.dtype.is_floating_point else cast(input, int64)  # so that padding can be less than any element
        found = settings.windows(x, _least(x))
        rows = reshape_value(found, (*found.shape[:-axes], numel(settings.sizes)))
        values = cast(first_greatest(rows), input.dtype)
        return (values, _flat_indices(argmax(rows, -1), settings)) if return_indices else values

    name = f"max_pool{axes}d"
    define.__doc__ = f"""The greatest element of each window over {_last(axes)}; NaN wins.

    `stride` is `kernel_size` if None; `padding` counts as less than anything; with `ceil_mode` a last window may reach
    beyond. With `return_indices`, (values, indices into the flattened plane). The gradient goes to the first position that has
    the value. Raises ValueError where no window fits.

    >>> x = genesis.arange({4**axes}.0).reshape({', '.join(['1'] + ['4'] * axes)})
    >>> genesis.nn.functional.{name}(x, {(4, 2, 2) if axes == 3 else 2})
    tensor({_PICKED[axes]})
    """
    return composite(name, method=False, namespace="nn.functional")(define)


_PICKED = {1: "[[1., 3.]]", 2: "[[[ 5.,  7.],\n             [13., 15.]]]", 3: "[[[[53., 55.],\n              [61., 63.]]]]"}


def _flat_indices(at: Value, settings: _Settings) -> Value:
    """Indices into the flattened plane, from indices within windows."""
    axes = len(settings.sizes)
    position: Value | int = 0
    rest = cast(at, int32)  # a window is short, and 64 bits take five times as long to divide
    for axis in reversed(range(axes)):
        plane, count = numel(settings.extents[axis + 1 :]), at.shape[at.ndim - axes + axis]
        start = iota(at.graph, count) * settings.steps[axis] - settings.margins[axis]
        tap = rest
        if axis:
            rest = rest // settings.sizes[axis]
            tap = tap - rest * settings.sizes[axis]
        start, first = (reshape_value(v, (count,) + (1,) * (axes - axis - 1)) for v in (start, start % settings.taps[axis]))
        offset = maximum(start + cast(tap, int64) * settings.taps[axis], first)  # padding comes first where all is -infinity
        position = position + offset * plane
    return position  # type: ignore[return-value]


# ---- average ----
def _average(
    name: str, axes: int, input: Value, kernel: PerAxis, stride: PerAxis | None, padding: PerAxis, ceil_mode: bool,
    include_pad: bool, divisor: int | None,
) -> Value:
    settings = _Settings(name, input, axes, kernel, stride, padding, 1, ceil_mode)
    if divisor == 0:
        raise ValueError(f"{name}: divisor_override must not be 0")
    found = settings.windows(widened(input), 0)
    over = tuple(range(found.ndim - axes, found.ndim))
    total = sum(found, over, dtype=found.dtype)
    plain = settings.after == settings.margins and (include_pad or not any(settings.margins))
    if divisor is not None or plain:
        return cast(total / (divisor or numel(settings.sizes)), input.dtype)
    for axis in range(axes):
        count = total.shape[total.ndim - axes + axis]
        start = iota(input.graph, count) * settings.steps[axis] - settings.margins[axis]
        margin = settings.margins[axis] if include_pad else 0
        end = minimum(start + settings.sizes[axis], settings.extents[axis] + margin)
        inside = cast(end - maximum(start, -margin), total.dtype)
        total = total / reshape_value(inside, (count,) + (1,) * (axes - axis - 1))
    return cast(total, input.dtype)


_AVERAGED = "`stride` is `kernel_size` if None. Zeros of `padding` are counted if `count_include_pad`; with `ceil_mode` a\n" \
    "    last window may reach beyond, which never counts. Raises ValueError where no window fits."


@composite(
    "avg_pool1d", method=False, namespace="nn.functional",
    doc=f"The mean of each window over the last axis.\n\n    {_AVERAGED}\n    ",
)
def avg_pool1d(
    input: Value, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Value:
    return _average("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def _avg_pool(axes: int) -> Operation:
    def define(
        input: Value, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Value:
        return _average(name, axes, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    name = f"avg_pool{axes}d"
    doc = f"The mean of each window over {_last(axes)}, or its sum over `divisor_override`.\n\n    {_AVERAGED}\n    "
    return composite(name, method=False, namespace="nn.functional", doc=doc)(define)


def _lp_pool(axes: int) -> Operation:
    def define(
        input: Value, norm_type: float, kernel_size: PerAxis, stride: PerAxis | None = None, ceil_mode: bool = False
    ) -> Value:
        powers = _average(name, axes, pow(input, norm_type), kernel_size, stride, 0, ceil_mode, True, None)
        total = sign(powers) * relu(abs(powers)) * numel(per_axis(name, "kernel_size", kernel_size, axes))
        return pow(total, 1 / norm_type)

    name = f"lp_pool{axes}d"
    doc = f"(sum of x^p)^(1/p) of each window over {_last(axes)}."
    return composite(name, method=False, namespace="nn.functional", doc=doc)(define)


# ---- to a given size ----
def _parted(x: Value, axis: int, count: int, reduce: Callable[[Value, Value | None], Result]) -> Result:
    """`reduce` over each of `count` parts of an axis: it gets windows that hold the parts, along a new last axis, and a mask
    (None: all). Window k begins at element k * (extent // count).

    Parts overlap if `count` does not divide the extent: part k is [floor(k extent / count), ceil((k + 1) extent / count)).
    """
    last, (step, rest) = rows_along(x, axis), divmod(x.shape[axis], count)
    if not rest:
        return reduce(reshape_value(last, (*last.shape[:-1], count, step)), None)
    shape, strides = (*last.shape[:-1], count, step + rest), contiguous_layout(last.shape).strides
    rows = view_node(last, Layout(shape, (*strides[:-1], step, 1), 0), "parts")
    part, position = reshape_value(iota(x.graph, count), (count, 1)), iota(x.graph, step + rest)
    end = step + ((part + 1) * rest + count - 1) // count
    return reduce(rows, (position >= part * rest // count) & (position < end))


def _counts(name: str, input: Value, output_size: PerAxis | None, axes: int) -> Shape:
    _checked(name, input, axes)
    extents = input.shape[input.ndim - axes :]
    wanted = (output_size,) * axes if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(wanted) != axes:
        raise ValueError(f"{name}: output_size is {output_size}; want an integer or {axes} of them")
    return per_axis(name, "output_size", tuple(e if w is None else w for w, e in zip(wanted, extents, strict=True)), axes)


def _adaptive_avg_pool(axes: int) -> Operation:
    def averaged(rows: Value, mask: Value | None) -> Value:
        if mask is None:
            return mean(rows, -1)
        return sum(where(mask, rows, 0), -1) / sum(cast(mask, rows.dtype), -1)

    def define(input: Value, output_size: PerAxis | None) -> Value:
        y, counts, lead = widened(input), _counts(name, input, output_size, axes), input.ndim - axes
        parts = [(count, *divmod(extent, count)) for extent, count in zip(input.shape[lead:], counts, strict=True)]
        if not any(rest for _, _, rest in parts):
            # One sum, whose gradient is the same along all axes: rows of pixels are then one axis in the kernels around it.
            rows = reshape_value(y, (*input.shape[:lead], *chain(*[(count, step) for count, step, _ in parts])))
            return cast(mean(rows, tuple(range(lead + 1, rows.ndim, 2))), input.dtype)
        for axis, count in enumerate(counts, lead):
            y = as_before(_parted(y, axis, count, averaged), axis, y.ndim)
        return cast(y, input.dtype)

    name = f"adaptive_avg_pool{axes}d"
    define.__doc__ = f"""The means of `output_size` parts, as equal as can be, of {_last(axes)}; None keeps an extent."""
    return composite(name, method=False, namespace="nn.functional")(define)


def _adaptive_max_pool(axes: int) -> Operation:
    def greatest(rows: Value, mask: Value | None) -> tuple[Value, Value]:
        rows = rows if mask is None else where(mask, rows, _least(rows))
        at = argmax(rows, -1)
        # Where all is -infinity the greatest is the first, which the mask may hide.
        return first_greatest(rows), at if mask is None else maximum(at, argmax(mask, -1))

    def define(input: Value, output_size: PerAxis | None, return_indices: bool = False) -> Value | tuple[Value, Value]:
        y, position = input, None
        for axis, count in reversed([*enumerate(_counts(name, input, output_size, axes), input.ndim - axes)]):
            extent, plane = y.shape[axis], numel(input.shape[axis + 1 :])
            y, at = (as_before(v, axis, v.ndim) for v in _parted(y, axis, count, greatest))
            shape = (count,) + (1,) * (input.ndim - axis - 1)
            at = at + reshape_value(iota(y.graph, count) * (extent // count), shape)
            if position is not None:
                position = y.graph.add("gather", (position, at), at.shape, int64, {"dim": axis})
            position = at * plane if position is None else at * plane + position
        return (y, position) if return_indices else y  # type: ignore[return-value]

    name = f"adaptive_max_pool{axes}d"
    define.__doc__ = f"""The greatest elements of `output_size` parts, as equal as can be, of {_last(axes)}.

    None keeps an extent. With `return_indices`, (values, indices into the flattened plane).
    """
    return composite(name, method=False, namespace="nn.functional")(define)


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))
avg_pool2d, avg_pool3d = map(_avg_pool, (2, 3))
lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg_pool, (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_max_pool, (1, 2, 3))
