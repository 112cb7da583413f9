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


class ReLU(Layer, function=functional.relu):
    inplace: bool = False


class GELU(Layer, function=functional.gelu):
    approximate: str = "none"


class SiLU(Layer, function=functional.silu):
    inplace: bool = False


class Tanh(Layer, function=functional.tanh): ...
class Sigmoid(Layer, function=functional.sigmoid): ...


class Softmax(Layer, function=functional.softmax):
    dim: int | None = None


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


class ELU(Layer, function=functional.elu):
    alpha: float = 1.0
    inplace: bool = False


class CELU(Layer, function=functional.celu):
    alpha: float = 1.0
    inplace: bool = False


class SELU(Layer, function=functional.selu):
    inplace: bool = False


class Mish(Layer, function=functional.mish):
    inplace: bool = False


class Softplus(Layer, function=functional.softplus):
    beta: float = 1.0
    threshold: float = 20.0


class Softsign(Layer, function=functional.softsign): ...
class LogSigmoid(Layer, function=functional.logsigmoid): ...
class Tanhshrink(Layer, function=functional.tanhshrink): ...


class GLU(Layer, function=functional.glu):
    dim: int = -1


class LogSoftmax(Layer, function=functional.log_softmax):
    dim: int | None = None


class Softmin(Layer, function=functional.softmin):
    dim: int | None = None
