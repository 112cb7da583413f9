"""Activations made of exponentials."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.in_place import InPlace
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

__all__ = [
    "CELU", "ELU", "GLU", "SELU", "LogSigmoid", "LogSoftmax", "Mish", "Softmin", "Softplus", "Softsign", "Tanhshrink",
]


class ELU(InPlace):
    """x where positive, alpha * (exp(x) - 1) elsewhere.

    >>> import genesis
    >>> genesis.nn.ELU()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.6321,  0.2500,  8.0000])
    """

    _printed = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return functional.elu(input, self.alpha, inplace=self.inplace)


class CELU(InPlace):
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere.

    >>> import genesis
    >>> genesis.nn.CELU(0.5)(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.4323,  0.2500,  8.0000])
    """

    _printed = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return functional.celu(input, self.alpha, inplace=self.inplace)


class SELU(InPlace):
    """1.0507 * elu(x, 1.6733).

    >>> import genesis
    >>> genesis.nn.SELU()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-1.1113,  0.2627,  8.4056])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.selu(input, inplace=self.inplace)


class Mish(InPlace):
    """x * tanh(softplus(x)).

    >>> import genesis
    >>> genesis.nn.Mish()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.3034,  0.1696,  8.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.mish(input, inplace=self.inplace)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds `threshold`.

    >>> import genesis
    >>> genesis.nn.Softplus()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([0.3133, 0.8259, 8.0003])
    """

    _printed = "beta", "threshold"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.softplus(input, self.beta, self.threshold)


class Softsign(Module):
    """x / (1 + |x|).

    >>> import genesis
    >>> genesis.nn.Softsign()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-0.5000,  0.2000,  0.8889])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.softsign(input)


class LogSigmoid(Module):
    """log(sigmoid(x)), without overflow.

    >>> import genesis
    >>> genesis.nn.LogSigmoid()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-1.3133e+00, -5.7594e-01, -3.3541e-04])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.logsigmoid(input)


class Tanhshrink(Module):
    """x - tanh(x).

    >>> import genesis
    >>> genesis.nn.Tanhshrink()(genesis.tensor([-1.0, 0.25, 8.0]))
    tensor([-2.3841e-01,  5.0813e-03,  7.0000e+00])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.tanhshrink(input)


class GLU(Module):
    """a * sigmoid(b), of the halves a and b along `dim`.

    >>> import genesis
    >>> genesis.nn.GLU()(genesis.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    _printed = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.glu(input, self.dim)


class LogSoftmax(Module):
    """log(softmax(x)) along `dim`.

    >>> import genesis
    >>> genesis.nn.LogSoftmax()(genesis.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    _printed = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.log_softmax(input, self.dim)


class Softmin(Module):
    """softmax(-x) along `dim`.

    >>> import genesis
    >>> genesis.nn.Softmin()(genesis.zeros(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    _printed = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return functional.softmin(input, self.dim)
