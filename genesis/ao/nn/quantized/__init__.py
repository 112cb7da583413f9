"""Layers with integer weights, of which those of `dynamic` quantise their inputs at each call; and operations as modules, whose
results a quantised model observes: here they compute with floats."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ao.nn.quantized import dynamic
from genesis.functions.methods.table import functions_of
from genesis.nn.module import Module
from genesis.nn.shaping import Identity
from genesis.tensor.handle import Tensor

__all__ = ["FloatFunctional", "dynamic"]
__dir__ = __all__.copy

_add, _mul, _matmul, _cat = functions_of("add", "mul", "matmul", "cat")


class FloatFunctional(Module):
    """Sums, products and the like, whose results go through `activation_post_process`.

    >>> genesis.ao.nn.quantized.FloatFunctional().add_relu(genesis.tensor([1.0, -3.0]), genesis.tensor([1.0, 1.0]))
    tensor([2., 0.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Module = Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Raises RuntimeError: its methods compute."""
        raise RuntimeError("FloatFunctional: is not called; want one of its methods, such as add")

    def _seen(self, x: Tensor) -> Tensor:
        result: Tensor = self.activation_post_process(x)
        return result

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`x + y`."""
        return self._seen(_add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x + y`, which is not observed."""
        result: Tensor = _add(x, y)
        return result

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x * y`."""
        return self._seen(_mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x * y`, which is not observed."""
        result: Tensor = _mul(x, y)
        return result

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x @ y`."""
        return self._seen(_matmul(x, y))

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """The tensors, concatenated."""
        return self._seen(_cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """`relu(x + y)`."""
        return self._seen(_add(x, y).relu())
