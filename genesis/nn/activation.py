"""Activations."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.layer import Layer
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "LogSigmoid", "LogSoftmax", "Mish", "ReLU", "SiLU", "Sigmoid", "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Softsign", "Tanh", "Tanhshrink",
]


class ReLU(Layer):
    """max(x, 0).

    >>> genesis.nn.ReLU()(genesis.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    inplace: bool = False
    function = functional.relu


class GELU(Layer):
    """x * Phi(x), or with `approximate="tanh"` its tanh formula (Hendrycks and Gimpel, 2016).

    >>> genesis.nn.GELU()(genesis.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """

    approximate: str = "none"
    function = functional.gelu


class SiLU(Layer):
    """x * sigmoid(x).

    >>> genesis.nn.SiLU()(genesis.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """

    inplace: bool = False
    function = functional.silu


class Tanh(Layer):
    """The hyperbolic tangent.

    >>> genesis.nn.Tanh()(genesis.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    function = functional.tanh


class Sigmoid(Layer):
    """1 / (1 + exp(-x)).

    >>> genesis.nn.Sigmoid()(genesis.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    function = functional.sigmoid


class Softmax(Layer):
    """exp(x) / sum(exp(x)) along `dim`.

    >>> genesis.nn.Softmax(dim=1)(genesis.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    dim: int | None = None
    function = functional.softmax


class Softmax2d(Module):
    """exp(x) / sum(exp(x)) over the channels at each pixel of (n, c, h, w) or (c, h, w).

    >>> genesis.nn.Softmax2d()(genesis.zeros(4, 1, 1)).reshape(-1)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The same shape. Raises ValueError for other ranks."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: input must be (n, c, h, w) or (c, h, w), got shape {input.shape}")
        return functional.softmax(input, -3)


class ELU(Layer):
    """x where positive, alpha * (exp(x) - 1) elsewhere.

    >>> genesis.nn.ELU()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.6321,  0.2500,  8.0000])
    """

    alpha: float = 1.0
    inplace: bool = False
    function = functional.elu


class CELU(Layer):
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere.

    >>> genesis.nn.CELU(0.5)(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.4323,  0.2500,  8.0000])
    """

    alpha: float = 1.0
    inplace: bool = False
    function = functional.celu


class SELU(Layer):
    """1.0507 * elu(x, 1.6733).

    >>> genesis.nn.SELU()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-1.1113,  0.2627,  8.4056])
    """

    inplace: bool = False
    function = functional.selu


class Mish(Layer):
    """x * tanh(softplus(x)).

    >>> genesis.nn.Mish()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.3034,  0.1696,  8.0000])
    """

    inplace: bool = False
    function = functional.mish


class Softplus(Layer):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds `threshold`.

    >>> genesis.nn.Softplus()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([0.3133, 0.8259, 8.0003])
    """

    beta: float = 1.0
    threshold: float = 20.0
    function = functional.softplus


class Softsign(Layer):
    """x / (1 + |x|).

    >>> genesis.nn.Softsign()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.5000,  0.2000,  0.8889])
    """

    function = functional.softsign


class LogSigmoid(Layer):
    """log(sigmoid(x)), without overflow.

    >>> genesis.nn.LogSigmoid()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-1.3133e+00, -5.7594e-01, -3.3541e-04])
    """

    function = functional.logsigmoid


class Tanhshrink(Layer):
    """x - tanh(x).

    >>> genesis.nn.Tanhshrink()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-2.3841e-01,  5.0813e-03,  7.0000e+00])
    """

    function = functional.tanhshrink


class GLU(Layer):
    """a * sigmoid(b) for the halves a and b along `dim`.

    >>> genesis.nn.GLU()(genesis.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    dim: int = -1
    function = functional.glu


class LogSoftmax(Layer):
    """log(softmax(x)) along `dim`.

    >>> genesis.nn.LogSoftmax(0)(genesis.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    dim: int | None = None
    function = functional.log_softmax


class Softmin(Layer):
    """softmax(-x) along `dim`.

    >>> genesis.nn.Softmin(0)(genesis.zeros(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    dim: int | None = None
    function = functional.softmin
