"""More activations, composed from primitives. What a branch does not use is computed of harmless numbers, so that neither
an overflow nor its derivative gets through."""

from __future__ import annotations

from genesis.ir.graph import Value
from genesis.ir.shapes import normalize_axis
from genesis.ops.elementwise import abs as magnitude
from genesis.ops.elementwise import exp, expm1, log1p, sigmoid, tanh, where
from genesis.ops.neural import softmax
from genesis.ops.registry import cast, composite, floating_dtype, rounded_once, widened
from genesis.ops.views import reshape_value, slice_value

__all__ = ["elu", "glu", "hardtanh", "logsigmoid", "mish", "prelu", "softplus"]


@composite("elu", method=False, in_place=True, namespace="nn.functional")
@rounded_once
def elu(input: Value, alpha: float = 1.0) -> Value:
    """x where positive, alpha * (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2016)."""
    return where(input > 0, input, alpha * expm1(where(input > 0, 0, input)))


@composite("celu", in_place=True, namespace="nn.functional")
@rounded_once
def celu(input: Value, alpha: float = 1.0) -> Value:
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017)."""
    return where(input > 0, input, alpha * expm1(where(input > 0, 0, input / alpha)))


@composite("selu", in_place=True, namespace="nn.functional")
@rounded_once
def selu(input: Value) -> Value:
    """1.0507 * elu(x, 1.6733) (Klambauer et al., 2017)."""
    return 1.0507009873554804934193349852946 * elu(input, 1.6732632423543772848170429916717)


@composite("softplus", method=False, autocast="float32", namespace="nn.functional")
@rounded_once
def softplus(input: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds `threshold`."""
    large = input * beta > threshold
    return where(large, input, log1p(exp(where(large, 0, input * beta))) / beta)


@composite("softsign", method=False, namespace="nn.functional")
def softsign(input: Value) -> Value:
    """x / (1 + |x|)."""
    x = widened(input)
    return cast(x / (1 + magnitude(x)), floating_dtype(input.dtype))


@composite("logsigmoid", method=False, namespace="nn.functional")
@rounded_once
def logsigmoid(input: Value) -> Value:
    """log(sigmoid(x)), without overflow."""
    return where(input < 0, input, 0) - log1p(exp(where(input < 0, input, -input)))


@composite("mish", method=False, in_place=True, namespace="nn.functional")
@rounded_once
def mish(input: Value) -> Value:
    """x * tanh(softplus(x)) (Misra, 2020)."""
    return input * tanh(softplus(input))


@composite("hardtanh", method=False, in_place=True, namespace="nn.functional")
def hardtanh(input: Value, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    """x held within [min_val, max_val]; no gradient at the bounds. Raises ValueError unless min_val is below max_val."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: bounds are {min_val} and {max_val}; want the first below the second")
    return cast(where(input <= min_val, min_val, where(input >= max_val, max_val, input)), input.dtype)


@composite("relu6", method=False, in_place=True, namespace="nn.functional")
def relu6(input: Value) -> Value:
    """x held within [0, 6]."""
    return hardtanh(input, 0, 6)


@composite("hardsigmoid", method=False, in_place=True, namespace="nn.functional")
@rounded_once
def hardsigmoid(input: Value) -> Value:
    """(x + 3) / 6 held within [0, 1]."""
    return hardtanh(input + 3, 0.0, 6.0) / 6


@composite("hardswish", method=False, in_place=True, namespace="nn.functional")
@rounded_once
def hardswish(input: Value) -> Value:
    """x * hardsigmoid(x) (Howard et al., 2019)."""
    return input * hardtanh(input + 3, 0.0, 6.0) / 6


@composite("hardshrink", namespace="nn.functional")
def hardshrink(input: Value, lambd: float = 0.5) -> Value:
    """x, but 0 within [-lambd, lambd]."""
    return where((input >= -lambd) & (input <= lambd), 0, input)


@composite("softshrink", method=False, namespace="nn.functional")
def softshrink(input: Value, lambd: float = 0.5) -> Value:
    """x less `lambd` beyond it, plus `lambd` below -lambd, 0 between. Raises ValueError for a negative one."""
    if lambd < 0:
        raise ValueError(f"softshrink: lambd is {lambd}; want 0 or more")
    return where(input > lambd, input - lambd, where(input < -lambd, input + lambd, hardshrink(input, lambd)))


@composite("tanhshrink", method=False, namespace="nn.functional")
def tanhshrink(input: Value) -> Value:
    """x - tanh(x)."""
    return input - tanh(input)


@composite("threshold", method=False, in_place=True, namespace="nn.functional")
def threshold(input: Value, threshold: float, value: float) -> Value:
    """x where it exceeds `threshold`, `value` elsewhere."""
    return cast(where(input <= threshold, value, input), input.dtype)


@composite("prelu", 2, autocast="low", namespace="nn.functional")
def prelu(input: Value, weight: Value) -> Value:
    """x where positive, weight * x elsewhere; one weight, or one for each channel (axis 1). Raises ValueError otherwise."""
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.shape not in ((), (1,), (channels,)):
        raise ValueError(f"prelu: weight has shape {weight.shape}; want (1,) or ({channels},), the channels of {input.shape}")
    if weight.ndim and input.ndim:
        rest = (1,) * max(input.ndim - 2, 0)
        weight = reshape_value(weight, (*weight.shape, *rest) if input.ndim > 1 else weight.shape)
    return where(input > 0, input, weight * input)


# ---- along an axis ----


@composite("glu", method=False, namespace="nn.functional")
def glu(input: Value, dim: int = -1) -> Value:
    """a * sigmoid(b), of the halves a and b along `dim` (Dauphin et al., 2017). Raises ValueError for an odd extent."""
    axis = normalize_axis("glu", dim, input.ndim)
    extent = input.shape[axis] if input.ndim else 1
    if extent % 2:
        raise ValueError(f"glu: dim {dim} of shape {input.shape} has an odd extent; want one that halves")
    first, second = slice_value(input, axis, 0, extent // 2), slice_value(input, axis, extent // 2, extent)
    return cast(widened(first) * sigmoid(widened(second)), input.dtype)


@composite("softmin", method=False, namespace="nn.functional")
def softmin(input: Value, dim: int = -1, dtype: object = None) -> Value:
    """softmax(-x) along `dim`."""
    return softmax(-input, dim, dtype)
