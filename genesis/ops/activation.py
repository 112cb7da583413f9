"""Activations, and the softmax family along an axis.

The branch that `where` drops is computed from safe inputs: neither its overflow nor the overflow's gradient (NaN) gets through.
"""

from __future__ import annotations

from math import isfinite, pi

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType
from genesis.ir.graph import Value
from genesis.ir.shapes import normalize_axes, normalize_axis, numel
from genesis.ir.user_warnings import warn_user
from genesis.ops.complex_primitives import real_value
from genesis.ops.conversion import stop_gradient
from genesis.ops.elementwise import erf, exp, expm1, log, log1pexp, sigmoid, tanh, where
from genesis.ops.reduction import amax, sum
from genesis.ops.registry import Operation, cast, composite, floating_dtype, rounded_once, widened
from genesis.ops.rows import formula
from genesis.ops.views import reshape_value, slice_value


# ---- activations ----
def _activation(
    name: str, expression: AnyFunction, doc: str, wide: bool = True, method: bool = False, in_place: bool = True,
    takes_complex: bool = False,
) -> Operation:
    return formula(name, expression, doc, wide=wide, method=method, in_place=in_place, namespace="nn.functional",
                   takes_complex=takes_complex)


@composite("gelu", namespace="nn.functional")
@rounded_once
def gelu(input: Value, approximate: str = "none") -> Value:
    """x * Phi(x) (Hendrycks and Gimpel, 2016); `approximate="tanh"` takes their tanh formula."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    if approximate == "tanh":
        return 0.5 * input * (1 + tanh((2 / pi) ** 0.5 * (input + 0.044715 * input * input * input)))
    return 0.5 * input * (1 + erf(input * 0.5**0.5))


@composite("softplus", method=False, autocast="float32", namespace="nn.functional")
@rounded_once
def softplus(input: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds `threshold`."""
    scaled = input * beta
    return where(scaled > threshold, input, log1pexp(scaled) / beta)


@composite("hardtanh", method=False, in_place=True, namespace="nn.functional", elements=("min_val", "max_val"))
def hardtanh(input: Value, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    """x clamped to [min_val, max_val]; no gradient at the bounds. Raises ValueError unless min_val is below max_val."""
    if not min_val <= max_val:
        raise ValueError(f"hardtanh: bounds are {min_val} and {max_val}; want the first below the second")
    if min_val < 0 and input.dtype.category == 1 and not input.dtype.is_signed:
        raise ValueError(f"hardtanh: min_val is {min_val}, and {input.dtype.name} has no negative numbers; want 0 or more")
    return cast(where(input <= min_val, min_val, where(input >= max_val, max_val, input)), input.dtype)


@composite("softshrink", method=False, namespace="nn.functional")
@rounded_once
def softshrink(input: Value, lambd: float = 0.5) -> Value:
    """x - lambd above `lambd`, x + lambd below -lambd, 0 between. Raises ValueError for a negative `lambd`."""
    if lambd < 0:
        raise ValueError(f"softshrink: lambd is {lambd}; want 0 or more")
    return where(input > lambd, input - lambd, where(input < -lambd, input + lambd, hardshrink(input, lambd)))


@composite("threshold", method=False, in_place=True, namespace="nn.functional", elements=("threshold", "value"))
def threshold(input: Value, threshold: float, value: float) -> Value:
    """x where it exceeds `threshold`, `value` elsewhere."""
    x = widened(input)
    return cast(where(x <= threshold, value, x), input.dtype)


@composite("prelu", 2, autocast="low", namespace="nn.functional")
def prelu(input: Value, weight: Value) -> Value:
    """x where positive, weight * x elsewhere; one weight, or one for each channel (axis 1). Raises ValueError otherwise."""
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.shape not in ((), (1,), (channels,)):
        raise ValueError(f"prelu: weight has shape {weight.shape}; want (1,) or ({channels},), the channels of {input.shape}")
    if not input.ndim:
        weight = reshape_value(weight, ())
    elif weight.ndim:
        rest = (1,) * max(input.ndim - 2, 0)
        weight = reshape_value(weight, (*weight.shape, *rest) if input.ndim > 1 else weight.shape)
    return where(input > 0, input, weight * input)


silu = _activation("silu", lambda input: input * sigmoid(input), "x * sigmoid(x) (Hendrycks and Gimpel, 2016).", method=True,
                   takes_complex=True)
leaky_relu = _activation(
    "leaky_relu", lambda input, negative_slope=0.01: where(input > 0, input, input * negative_slope),
    "x where positive, `negative_slope` * x elsewhere.", wide=False,
)


def _scaled(alpha: float, input: Value, growth: Value) -> Value:
    """alpha * growth, and 0 where `input` is 0 for every alpha, as in PyTorch."""
    return alpha * growth if isfinite(alpha) else where(input == 0, input, alpha * growth)


def _celu(input: Value, alpha: float = 1.0) -> Value:
    if not alpha:
        raise ValueError("celu: alpha is 0; want another number")
    return where(input > 0, input, _scaled(alpha, input, expm1(where(input > 0, 0, input / alpha))))


elu = _activation(
    "elu", lambda input, alpha=1.0: where(input > 0, input, _scaled(alpha, input, expm1(where(input > 0, 0, input)))),
    "x where positive, alpha * (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2016).",
)
celu = _activation("celu", _celu, "x where positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017).", method=True)
selu = _activation(
    "selu", lambda input: 1.0507009873554804934193349852946 * elu(input, 1.6732632423543772848170429916717),
    "1.0507 * elu(x, 1.6733) (Klambauer et al., 2017).", method=True,
)
logsigmoid = _activation("logsigmoid", lambda input: -log1pexp(-input), "log(sigmoid(x)), without overflow.", in_place=False)
mish = _activation("mish", lambda input: input * tanh(softplus(input)), "x * tanh(softplus(x)) (Misra, 2020).")
softsign = _activation(  # integers are summed as integers, as in PyTorch
    "softsign", lambda input: cast(widened(input) / (1 + abs(widened(input))), floating_dtype(input.dtype)), "x / (1 + |x|).",
    wide=False, in_place=False, takes_complex=True)
tanhshrink = _activation("tanhshrink", lambda input: input - tanh(input), "x - tanh(x).", wide=False, in_place=False,
                         takes_complex=True)
relu6 = _activation("relu6", lambda input: hardtanh(input, 0, 6), "x held within [0, 6].", wide=False)
hardsigmoid = _activation("hardsigmoid", lambda input: hardtanh(input + 3, 0.0, 6.0) / 6, "(x + 3) / 6 held within [0, 1].")
hardswish = _activation(
    "hardswish", lambda input: input * hardtanh(input + 3, 0.0, 6.0) / 6, "x * hardsigmoid(x) (Howard et al., 2019).",
)
hardshrink = _activation(
    "hardshrink", lambda input, lambd=0.5: where((input >= -lambd) & (input <= lambd), 0, input),
    "x, but 0 within [-lambd, lambd].", wide=False, method=True, in_place=False,
)


# ---- along an axis ----
def less_top(name: str, input: Value, dim: int | None, dtype: DType | None = None) -> tuple[Value, int, DType]:
    """(`input` widened, minus its maximum along `dim`; the axis; the result's dtype).

    The maximum counts as a constant: it cancels in the gradient. `dim` is by default 1, but 0 of 0, 1 or 3 axes, as in PyTorch.
    """
    if dim is None:
        dim = int(input.ndim not in (0, 1, 3))
        warn_user(f"{name}: the axis is chosen by the number of axes, {dim} of {input.ndim}; want dim={dim}")
    axis, dtype = normalize_axis(name, dim, input.ndim), dtype or floating_dtype(input.dtype)
    x = widened(cast(input, dtype))
    return x if x.ndim and not x.shape[axis] else x - stop_gradient(amax(x, axis, True)), axis, dtype


@composite("softmax", autocast="float32", namespace=("special", "nn.functional"), takes_complex=True)
def softmax(input: Value, dim: int | None = None, dtype: DType | None = None) -> Value:
    """exp(x) / sum(exp(x)) along `dim`.

    The maximum is subtracted first, so nothing overflows. Integers become `dtype` or the default float. Raises IndexError for
    an axis out of range.

    >>> genesis.softmax(genesis.tensor([0.0, 0.0, 1000.0]), dim=0)
    tensor([0., 0., 1.])
    """
    shifted, axis, result = less_top("softmax", input, dim, dtype)
    e = exp(shifted)
    return cast(e * (1 / sum(e, axis, True)), result)  # one division per row


@composite("log_softmax", autocast="float32", namespace=("special", "nn.functional"), takes_complex=True)
def log_softmax(input: Value, dim: int | None = None, dtype: DType | None = None) -> Value:
    """log(softmax(x)) along `dim`, without overflow.

    >>> genesis.log_softmax(genesis.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    shifted, axis, result = less_top("log_softmax", input, dim, dtype)
    return cast(shifted - log(sum(exp(shifted), axis, True)), result)


@composite("logsumexp", autocast="float32", namespace="special", takes_complex=True)
@rounded_once
def logsumexp(input: Value, dim: int | tuple[int, ...], keepdim: bool = False) -> Value:
    """log(sum(exp(x))) over `dim`, without overflow; -inf for no elements.

    >>> genesis.logsumexp(genesis.tensor([1000.0, 1000.0]), dim=0)
    tensor(1000.6932)
    """
    if not numel([input.shape[axis] for axis in normalize_axes("logsumexp", dim, input.ndim)]):
        return log(sum(exp(input), dim, keepdim))
    top = stop_gradient(amax(real_value(input), dim, True))
    top = where(top - top == 0, top, 0)  # an infinite maximum is not subtracted
    y = log(sum(exp(input - top), dim, True)) + top
    return y if keepdim else reshape_value(y, sum(input, dim).shape)


@composite("glu", method=False, namespace="nn.functional")
def glu(input: Value, dim: int = -1) -> Value:
    """a * sigmoid(b) for the halves a and b along `dim` (Dauphin et al., 2017). Raises ValueError for an odd extent."""
    axis = normalize_axis("glu", dim, input.ndim)
    extent = input.shape[axis] if input.ndim else 1
    if extent % 2:
        raise ValueError(f"glu: dim {dim} of shape {input.shape} has an odd extent; want one that halves")
    first, second = slice_value(input, axis, 0, extent // 2), slice_value(input, axis, extent // 2, extent)
    return cast(widened(first) * sigmoid(widened(second)), input.dtype)


@composite("softmin", method=False, namespace="nn.functional", takes_complex=True)
def softmin(input: Value, dim: int | None = None, dtype: DType | None = None) -> Value:
    """softmax(-x) along `dim`."""
    return softmax(-input, dim, dtype)
