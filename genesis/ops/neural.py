"""The functions of neural networks, composed from primitives; their gradients follow from their parts."""

from __future__ import annotations

from math import pi

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.graph import Value
from genesis.ir.shapes import normalize_axis
from genesis.ops.conversion import stop_gradient
from genesis.ops.elementwise import erf, exp, log, sigmoid, tanh, where
from genesis.ops.normalization import normalized
from genesis.ops.reduction import amax, sum
from genesis.ops.registry import cast, composite, floating_dtype, promoted, rounded_once, widened
from genesis.ops.source import iota
from genesis.ops.views import reshape_value

__all__ = ["gelu", "layer_norm", "log_softmax", "logsumexp", "rms_norm", "silu", "softmax", "tril", "triu"]


# ---- activations ----
@composite("silu", in_place=True, namespace="nn.functional")
@rounded_once
def silu(input: Value) -> Value:
    """x * sigmoid(x) (Hendrycks and Gimpel, 2016)."""
    return input * sigmoid(input)


@composite("gelu", namespace="nn.functional")
@rounded_once
def gelu(input: Value, approximate: str = "none") -> Value:
    """x * Phi(x) (Hendrycks and Gimpel, 2016); `approximate="tanh"` takes their tanh formula."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    if approximate == "tanh":
        return 0.5 * input * (1 + tanh((2 / pi) ** 0.5 * (input + 0.044715 * input * input * input)))
    return 0.5 * input * (1 + erf(input * 0.5**0.5))


@composite("leaky_relu", method=False, in_place=True, namespace="nn.functional")
def leaky_relu(input: Value, negative_slope: float = 0.01) -> Value:
    """x where positive, `negative_slope` * x elsewhere."""
    return where(input > 0, input, input * negative_slope)


# ---- along an axis ----


def _shifted(input: Value, axis: int) -> tuple[Value, Value]:
    """`input` with its maximum along `axis` taken off (as a constant: it cancels in the gradient), and that maximum."""
    if input.ndim and not input.shape[axis]:
        return input, input
    top = stop_gradient(amax(input, axis, True))
    return input - top, top


def _float(input: Value, dtype: object) -> Value:
    return cast(input, dtype or floating_dtype(input.dtype))  # type: ignore[arg-type]


@composite("softmax", autocast="float32", namespace=("special", "nn.functional"))
def softmax(input: Value, dim: int = -1, dtype: object = None) -> Value:
    """exp(x) / sum(exp(x)) along `dim`.

    The maximum is taken off first, so nothing overflows. Integers become `dtype` or the default float. Raises IndexError for
    an axis that is not there.

    >>> import genesis
    >>> genesis.softmax(genesis.tensor([0.0, 0.0, 1000.0]), dim=0)
    tensor([0., 0., 1.])
    """
    axis = normalize_axis("softmax", dim, input.ndim)
    x = _float(input, dtype)
    shifted, _ = _shifted(widened(x), axis)
    e = exp(shifted)
    return cast(e * (1 / sum(e, axis, True)), x.dtype)  # one division for each row


@composite("log_softmax", autocast="float32", namespace=("special", "nn.functional"))
def log_softmax(input: Value, dim: int = -1, dtype: object = None) -> Value:
    """log(softmax(x)) along `dim`, without overflow.

    >>> import genesis
    >>> genesis.log_softmax(genesis.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    axis = normalize_axis("log_softmax", dim, input.ndim)
    x = _float(input, dtype)
    shifted, _ = _shifted(widened(x), axis)
    return cast(shifted - log(sum(exp(shifted), axis, True)), x.dtype)


@composite("logsumexp", autocast="float32", namespace="special")
@rounded_once
def logsumexp(input: Value, dim: int | tuple[int, ...], keepdim: bool = False) -> Value:
    """log(sum(exp(x))) over `dim`, without overflow.

    >>> import genesis
    >>> genesis.logsumexp(genesis.tensor([1000.0, 1000.0]), dim=0)
    tensor(1000.6932)
    """
    top = stop_gradient(amax(input, dim, True))
    top = where(top - top == 0, top, 0)  # an infinite maximum is not taken off
    y = log(sum(exp(input - top), dim, True)) + top
    return y if keepdim else reshape_value(y, sum(input, dim).shape)


# ---- normalisation ----


def _scaled(input: Value, x: Value, weight: Value | None, bias: Value | None) -> Value:
    """x * weight + bias, in the dtype that `input` has with these."""
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

    >>> import genesis
    >>> genesis.nn.functional.layer_norm(genesis.tensor([[1.0, 3.0], [2.0, 2.0]]), (2,), eps=0.0625)
    tensor([[-0.9701,  0.9701],
            [ 0.0000,  0.0000]])
    """
    axes = _last("layer_norm", input, normalized_shape)
    return _scaled(input, normalized(widened(input), axes, eps), weight, bias)


@composite("rms_norm", (), method=False, autocast="float32", namespace="nn.functional")
def rms_norm(
    input: Value, normalized_shape: tuple[int, ...], weight: Value | None = None, eps: float | None = None
) -> Value:
    """x / sqrt(mean(x^2) + eps) over the last axes, then `weight` (Zhang and Sennrich, 2019).

    Without `eps`, that of the dtype that it computes in, float32 or float64. Raises ValueError if the shape of `input` does
    not end in normalized_shape.

    >>> import genesis
    >>> genesis.nn.functional.rms_norm(genesis.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    axes = _last("rms_norm", input, normalized_shape)
    x = widened(input)
    eps = float(np.finfo(x.dtype.numpy).eps) if eps is None else eps
    return _scaled(input, normalized(x, axes, eps, centred=False), weight, None)


def _last(name: str, input: Value, normalized_shape: tuple[int, ...]) -> tuple[int, ...]:
    count = len(normalized_shape)
    if not count or input.shape[-count:] != tuple(normalized_shape):
        raise ValueError(f"{name}: normalized_shape {tuple(normalized_shape)} is not the end of shape {input.shape}")
    return tuple(range(input.ndim - count, input.ndim))


# ---- triangles ----


@composite("tril", in_place=True)
def tril(input: Value, diagonal: int = 0) -> Value:
    """The lower triangle of the last two axes, zeros above."""
    return _triangle(input, diagonal, lower=True)


@composite("triu", in_place=True)
def triu(input: Value, diagonal: int = 0) -> Value:
    """The upper triangle of the last two axes, zeros below."""
    return _triangle(input, diagonal, lower=False)


def _triangle(input: Value, diagonal: int, lower: bool) -> Value:
    if input.ndim < 2:
        raise ValueError(f"tril, triu: want two axes at least, got shape {input.shape}")
    rows = reshape_value(iota(input.graph, input.shape[-2], int64), (input.shape[-2], 1))
    columns = iota(input.graph, input.shape[-1], int64)
    inside = columns - rows <= diagonal if lower else columns - rows >= diagonal
    return where(inside, input, input.graph.constant(0, input.dtype))
