"""Initial values of parameters: each function fills its tensor in place, without a gradient, and returns it."""

from __future__ import annotations

import math

from genesis.functions.creation import ones
from genesis.functions.random_draws import drawn, stream
from genesis.functions.ranges import eye
from genesis.functions.selection import where
from genesis.ir.dtypes import bool_
from genesis.linalg import qr
from genesis.random import randperm
from genesis.runtime.rng import Generator
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tracing.state import grad_mode

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "fans", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]
__dir__ = __all__.copy


def _fill(tensor: Tensor, generator: Generator | None, name: str, *arguments: float) -> Tensor:
    """Write a draw of the distribution `name` into `tensor`."""
    with grad_mode(False):
        parameters = map(float, arguments)
        return write(tensor, drawn(name, tensor.shape, tensor.dtype, *parameters, device=tensor.device, generator=generator))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers in [a, b), from `generator` or the default one.

    >>> weight = genesis.nn.init.uniform_(genesis.empty(100), -1, 1)
    >>> bool((weight.abs() <= 1).all())
    True
    """
    return _fill(tensor, generator, "uniform", a, b)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers."""
    return _fill(tensor, generator, "normal", mean, std)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Generator | None = None
) -> Tensor:
    """Normal numbers truncated to [a, b], by the inverse of the distribution function.

    >>> weight = genesis.nn.init.trunc_normal_(genesis.empty(100), std=2.0, a=-1, b=1)
    >>> bool((weight.abs() <= 1).all())
    True
    """
    if stream(tensor.device, generator) is not None:
        with grad_mode(False):
            return write(tensor, _truncated(tensor, mean, std, a, b, generator))
    low, high = (math.erf((end - mean) / (std * math.sqrt(2))) for end in (a, b))
    dtype = tensor.dtype.compute
    with grad_mode(False):
        even = drawn("uniform", tensor.shape, dtype, low, high, device=tensor.device, generator=generator)
        return write(tensor, (even.erfinv() * (std * math.sqrt(2)) + mean).clamp(a, b).to(tensor.dtype))


def _truncated(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None) -> Tensor:
    """By rejection, as in PyTorch: from normal numbers if most are accepted, otherwise from uniform ones."""
    def accepted(kind: str, *parameters: float) -> Tensor:
        return drawn(kind, tensor.shape, tensor.dtype, *parameters, device=tensor.device, generator=generator)

    share = (math.erf((b - mean) / (std * math.sqrt(2))) - math.erf((a - mean) / (std * math.sqrt(2)))) / 2
    result, pending = [ones(tensor.shape, dtype=dtype, device=tensor.device) for dtype in (tensor.dtype, bool_)]
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    while bool(pending.any()):
        if share > 0.3:
            result = where(pending, accepted("normal", mean, std), result)
            pending = (result < a) | (result > b)
        else:
            result = where(pending, tried := accepted("uniform", a, b), result)
            pending = pending & (accepted("uniform").log() > ((tried - mean) / std) ** 2 * -0.5 - peak)
    return result


def constant_(tensor: Tensor, val: float) -> Tensor:
    """`val` everywhere.

    >>> genesis.nn.init.constant_(genesis.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with grad_mode(False):
        return write(tensor, filled(val, tensor.shape, tensor.dtype, tensor.device))


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return constant_(tensor, 1)


def eye_(tensor: Tensor) -> Tensor:
    """The matrix with ones on its diagonal.

    >>> genesis.nn.init.eye_(genesis.empty(1, 2))
    tensor([[1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_: want a matrix, got shape {tensor.shape}")
    with grad_mode(False):
        return write(tensor, eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The weight (outputs, inputs, *window) of a convolution that is the identity on as many channels as possible, in each
    group.

    >>> genesis.nn.init.dirac_(genesis.empty(2, 2, 3))[1].tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise ValueError(f"dirac_: {groups} groups of shape {tensor.shape}; want 3 to 5 axes, the first divisible by groups")
    outputs = tensor.shape[0] // groups
    middle = tuple(extent // 2 for extent in tensor.shape[2:])
    with grad_mode(False):
        zeros_(tensor)
        for group in range(groups):
            part = tensor.narrow(0, group * outputs, outputs)
            part[(slice(None), slice(None), *middle)] = eye(outputs, tensor.shape[1], dtype=tensor.dtype, device=tensor.device)
        return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal numbers in a matrix, with a fraction `sparsity` of zeros in each column (Martens, 2010).

    >>> (genesis.nn.init.sparse_(genesis.empty(10, 3), sparsity=0.25) == 0).sum(0)
    tensor([3, 3, 3])
    """
    if tensor.ndim != 2:
        raise ValueError(f"sparse_: want a matrix, got shape {tensor.shape}")
    with grad_mode(False):
        normal_(tensor, 0, std, generator)
        rows, columns = tensor.shape
        for column in range(columns):
            zeros = randperm(rows, device=tensor.device, generator=generator)[: math.ceil(sparsity * rows)]
            tensor[zeros, column] = 0
        return tensor


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """`gain` times orthonormal rows, or columns if there are fewer, of a weight viewed as (outputs, all else).

    Q of normal numbers, times the signs of R's diagonal (Saxe, McClelland and Ganguli, 2014; Mezzadri, 2007).

    >>> weight = genesis.nn.init.orthogonal_(genesis.empty(3, 5))
    >>> bool(genesis.allclose(weight @ weight.T, genesis.eye(3), atol=1e-6))
    True
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: want a weight of two axes at least, got shape {tensor.shape}")
    if not tensor.numel():
        return tensor
    rows, dtype = tensor.shape[0], tensor.dtype.compute
    columns = tensor.numel() // rows
    with grad_mode(False):
        numbers = drawn("normal", (rows, columns), dtype, device=tensor.device, generator=generator)
        q, r = qr(numbers.T if rows < columns else numbers)
        q = q * r.diagonal().sgn()
        return write(tensor, ((q.T if rows < columns else q).reshape(tensor.shape) * gain).to(tensor.dtype))


# ---- scaled to preserve the variance from layer to layer ----
def fans(tensor: Tensor) -> tuple[int, int]:
    """(inputs, outputs) that one element of a weight (outputs, inputs, *window) connects.

    >>> genesis.nn.init.fans(genesis.empty(8, 3, 5, 5))
    (75, 200)
    """
    if tensor.ndim < 2:
        raise ValueError(f"fans: want a weight of two axes at least, got shape {tensor.shape}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain that compensates a nonlinearity's effect on the standard deviation (PyTorch's table).

    >>> calculate_gain("relu")
    1.4142135623730951
    """
    slope = 0.01 if param is None else param
    gains = {
        "linear": 1.0, **{f"conv{kind}{axes}d": 1.0 for kind in ("", "_transpose") for axes in (1, 2, 3)}, "sigmoid": 1.0,
        "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75, "leaky_relu": math.sqrt(2 / (1 + slope**2)),
    }
    if nonlinearity not in gains:
        raise ValueError(f"calculate_gain: no nonlinearity {nonlinearity!r}; want one of {', '.join(gains)}")
    return gains[nonlinearity]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"kaiming: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Uniform with variance gain^2 / fan (He, Zhang, Ren and Sun, 2015)."""
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Normal with variance gain^2 / fan (He, Zhang, Ren and Sun, 2015)."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)
