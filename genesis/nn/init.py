"""First values of parameters: each function fills its tensor in place, outside any derivation, and returns it."""

from __future__ import annotations

import math

from genesis.dispatch import call_on, filled
from genesis.ops.registry import OPERATIONS
from genesis.random import draws
from genesis.storage import write
from genesis.tensor import Tensor
from genesis.thread import recording

__all__ = [
    "calculate_gain", "constant_", "fans", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "uniform_",
    "xavier_normal_", "xavier_uniform_", "zeros_",
]


def _fill(tensor: Tensor, name: str, *arguments: float) -> Tensor:
    """Write a draw of the distribution `name` into `tensor`."""
    seed, start = draws(tensor.numel())
    arguments_of_draw = seed, start, tensor.shape, tensor.dtype, *map(float, arguments)
    with recording(False) as again, again:
        return write(tensor, call_on(tensor.device, OPERATIONS[name], arguments_of_draw))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Numbers in [a, b).

    >>> import genesis
    >>> weight = genesis.nn.init.uniform_(genesis.empty(100), -1, 1)
    >>> bool((weight.abs() <= 1).all())
    True
    """
    return _fill(tensor, "uniform", a, b)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal numbers."""
    return _fill(tensor, "normal", mean, std)


def constant_(tensor: Tensor, value: float) -> Tensor:
    """`value` everywhere.

    >>> import genesis
    >>> genesis.nn.init.constant_(genesis.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with recording(False) as again, again:
        return write(tensor, filled(value, tensor.shape, tensor.dtype, tensor.device))


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return constant_(tensor, 1)


# ---- scaled to keep the variance from layer to layer ----


def fans(tensor: Tensor) -> tuple[int, int]:
    """(inputs, outputs) that one element of a weight (outputs, inputs, *window) connects.

    >>> import genesis
    >>> genesis.nn.init.fans(genesis.empty(8, 3, 5, 5))
    (75, 200)
    """
    if tensor.ndim < 2:
        raise ValueError(f"fans: want a weight of two axes at least, got shape {tensor.shape}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity shrinks the standard deviation (PyTorch's table).

    >>> calculate_gain("relu")
    1.4142135623730951
    """
    slope = 0.01 if param is None else param
    gains = {
        "linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75,
        "leaky_relu": math.sqrt(2 / (1 + slope**2)),
    }
    if nonlinearity not in gains:
        raise ValueError(f"calculate_gain: no nonlinearity {nonlinearity!r}; want one of {', '.join(gains)}")
    return gains[nonlinearity]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"kaiming: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Uniform with variance gain^2 / fan (He, Zhang, Ren and Sun, 2015)."""
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normal with variance gain^2 / fan (He, Zhang, Ren and Sun, 2015)."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))))
