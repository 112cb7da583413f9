"""Normalization to mean 0 and variance 1, over rows, channels or batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from genesis.ir.graph import Value
from genesis.ir.shapes import numel
from genesis.ops.elementwise import pow, rsqrt
from genesis.ops.reduction import mean
from genesis.ops.registry import cast, composite, expand, floating_dtype, primitive, promoted, widened
from genesis.ops.views import reshape_value, slice_value
from genesis.ops.window import pad_value


def _grad(g: Value, y: Value, value: Value, x: Value, scale: Value) -> tuple[Value | None, ...]:
    """scale * (g - mean(g) - y mean(g y)): the gradient of the parts, but with both means in one pass.

    It reads the `value`, so that `y` itself may be written over, as by an activation in place.
    """
    axes = tuple([axis + x.ndim for axis in y.node.attrs["axes"]])
    slope = g - value * mean(g * value, axes, True)
    return None, (slope - mean(g, axes, True) if y.node.attrs["centred"] else slope) * scale, None


# Inputs: the normalized value, x for the gradient, and the scale; `axes` are negative.
primitive("normalized", "elementwise", grad=_grad, reference=lambda node, value, x, scale: value,
          emit=lambda k, value, x, scale: value, cost=0)


def normalized(x: Value, axes: Sequence[int], eps: float, centred: bool = True) -> Value:
    """(x - mean) / sqrt(variance + eps) over `axes`; or x / sqrt(mean of squares + eps) if not `centred`."""
    axes = tuple(axes)
    rest: Value = x - mean(x, axes, True) if centred else x
    scale = rsqrt(mean(rest * rest, axes, True) + eps)
    attrs = {"axes": tuple([axis - x.ndim for axis in axes]), "centred": centred}
    return x.graph.add("normalized", (rest * scale, x, expand(scale, x.shape)), x.shape, x.dtype, attrs)


def _per_channel(value: Value, rank: int) -> Value:
    return reshape_value(value, (value.shape[0],) + (1,) * (rank - 2))


def _affine(name: str, x: Value, weight: Value | None, bias: Value | None) -> Value:
    for setting, value in (("weight", weight), ("bias", bias)):
        if value is not None and value.shape != (x.shape[1],):
            raise ValueError(f"{name}: {setting} has shape {value.shape}; want ({x.shape[1]},), the channels of the input")
    x = x if weight is None else x * _per_channel(weight, x.ndim)
    return x if bias is None else x + _per_channel(bias, x.ndim)


@composite("local_response_norm", method=False, namespace="nn.functional")
def local_response_norm(input: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Value:
    """x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta (Krizhevsky, Sutskever and Hinton, 2012).

    `input` is (n, channels, ..); channels beyond the ends count as zeros. Raises ValueError for fewer than three axes.

    >>> genesis.nn.functional.local_response_norm(genesis.tensor([[[1.0], [1.0]]]), 2, alpha=2.0, beta=1.0)
    tensor([[[0.5000],
             [0.3333]]])
    """
    if input.ndim < 3 or size < 1:
        raise ValueError(f"local_response_norm: size {size} of shape {input.shape}; want 1 or more, and (n, channels, ..)")
    x = widened(input)
    before, after = ((0, n, *(0,) * (x.ndim - 2)) for n in (size // 2, (size - 1) // 2))
    squares = pad_value(x * x, before, after)
    total = slice_value(squares, 1, 0, x.shape[1])
    for position in range(1, size):
        total = total + slice_value(squares, 1, position, position + x.shape[1])
    average = total / size if x.dtype.is_floating_point else total // size  # as in PyTorch, an integer for integers
    return cast(x / pow(average * alpha + k, beta), floating_dtype(input.dtype))


@composite("batch_norm", (), method=False)
def batch_norm(
    input: Value, running_mean: Value | None, running_var: Value | None, weight: Value | None = None,
    bias: Value | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Value:
    """(x - mean) / sqrt(var + eps) for each channel, then `weight` and `bias` (Ioffe and Szegedy, 2015).

    Arguments and errors are those of `nn.functional.batch_norm`, which updates the running mean and variance too.
    """
    if input.shape == (0,):
        return input
    if input.ndim < 2:
        raise ValueError(f"batch_norm: input must be (n, channels, ..), got shape {input.shape}")
    x = widened(input)
    if training:
        if numel(input.shape) == input.shape[1]:
            raise ValueError(f"batch_norm: wants more than one value for each channel when training, got shape {input.shape}")
        normal = normalized(x, (0, *range(2, x.ndim)), eps)
    else:
        if running_mean is None or running_var is None:
            raise ValueError("batch_norm: wants running_mean and running_var unless training")
        if running_mean.shape != (x.shape[1],) or running_var.shape != (x.shape[1],):
            raise ValueError(
                f"batch_norm: running statistics have shapes {running_mean.shape} and {running_var.shape}; want "
                f"({x.shape[1]},), the channels of the input"
            )
        normal = (x - _per_channel(running_mean, x.ndim)) * rsqrt(_per_channel(running_var, x.ndim) + eps)
    return cast(_affine("batch_norm", normal, weight, bias), input.dtype)


@composite("batch_statistics", (3,), method=False, public=False)
def batch_statistics(input: Value, running_mean: Value, running_var: Value, momentum: Value | float) -> tuple[Value, Value]:
    """The running mean and variance (of n-1) after a batch: moved by `momentum` towards the batch's own."""
    x = widened(input)
    count = numel(x.shape) // x.shape[1]
    shape = running_mean.shape
    axes = (0, *range(2, x.ndim))  # all but the channel axis
    centre = mean(x, axes, True)
    centred = x - centre
    variance = reshape_value(mean(centred * centred, axes, True), shape) * (count / (count - 1))

    def moved(old: Value, new: Value) -> Value:
        wide = widened(old)
        one = expand(wide.graph.constant(1, wide.dtype), shape)  # beside a number alone, `momentum` is rounded to float32
        return cast(wide * (one - momentum) + new * momentum, old.dtype)  # infinite ones stay so

    return moved(running_mean, reshape_value(centre, shape)), moved(running_var, variance)


@composite("group_norm", (), method=False, autocast="float32", namespace="nn.functional")
def group_norm(
    input: Value, num_groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5
) -> Value:
    """(x - mean) / sqrt(var + eps) over groups of channels, then `weight` and `bias` for each channel (Wu and He, 2018).

    `input` is (n, channels, ..). Raises ValueError unless `num_groups` divides the channels, and for a single
    example of one element in each group.
    """
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise ValueError(f"group_norm: {num_groups} groups do not divide the channels of shape {input.shape}")
    if numel(input.shape) == num_groups:
        raise ValueError(f"group_norm: {num_groups} groups of shape {input.shape}; want more than one element in each")
    x = widened(input)
    rows = reshape_value(x, (x.shape[0], num_groups, numel(x.shape[1:]) // num_groups))
    normal = reshape_value(normalized(rows, (2,), eps), x.shape)
    return cast(_affine("group_norm", normal, weight, bias), input.dtype)


# ---- over the last axes ----
def _scaled(input: Value, x: Value, weight: Value | None, bias: Value | None) -> Value:
    """x * weight + bias, in the dtype to which `input` promotes with them."""
    dtype = promoted(*[v for v in (input, weight, bias) if v is not None])[0].dtype
    if weight is not None:
        x = x * weight
    return cast(x if bias is None else x + bias, dtype)


@composite("layer_norm", (), method=False, autocast="float32", namespace="nn.functional")
def layer_norm(
    input: Value, normalized_shape: tuple[int, ...], weight: Value | None = None, bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """(x - mean) / sqrt(var + eps) over the last axes, then `weight` and `bias` (Ba, Kiros and Hinton, 2016).

    Args:
        input: (.., *normalized_shape), floating.
        normalized_shape: the extents of the last axes, over which mean and variance (of n, not n-1) are taken.
        weight, bias: of shape normalized_shape; left out if None.
        eps: added to the variance.

    Raises ValueError if the shape of `input` does not end in normalized_shape.

    >>> genesis.nn.functional.layer_norm(genesis.tensor([[1.0, 3.0], [2.0, 2.0]]), (2,), eps=0.0625)
    tensor([[-0.9701,  0.9701],
            [ 0.0000,  0.0000]])
    """
    axes = _last("layer_norm", input, normalized_shape)
    return _scaled(input, normalized(widened(input), axes, eps), weight, bias)


@composite("rms_norm", (), method=False, autocast="float32", namespace="nn.functional", takes_complex=True)
def rms_norm(input: Value, normalized_shape: tuple[int, ...], weight: Value | None = None, eps: float | None = None) -> Value:
    """x / sqrt(mean(x^2) + eps) over the last axes, then `weight` (Zhang and Sennrich, 2019).

    `eps` defaults to that of the dtype it computes in, float32 or float64. Raises ValueError if the shape of `input` does
    not end in normalized_shape.

    >>> genesis.nn.functional.rms_norm(genesis.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    axes = _last("rms_norm", input, normalized_shape)
    x = widened(input)
    eps = float(np.finfo(x.dtype.numpy).eps) if eps is None else eps
    if x.dtype.is_complex:
        return _scaled(input, x * rsqrt(mean(x * x, axes, True) + eps), weight, None)
    return _scaled(input, normalized(x, axes, eps, centred=False), weight, None)


def _last(name: str, input: Value, normalized_shape: tuple[int, ...]) -> tuple[int, ...]:
    count = len(normalized_shape)
    if not count or input.shape[-count:] != tuple(normalized_shape):
        raise ValueError(f"{name}: normalized_shape {tuple(normalized_shape)} is not the end of shape {input.shape}")
    return tuple(range(input.ndim - count, input.ndim))
