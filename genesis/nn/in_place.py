"""Activations that may put their result into their input."""

from __future__ import annotations

from genesis.nn.module import Module
from genesis.storage import write
from genesis.tensor import Tensor

__all__ = ["InPlace"]


class InPlace(Module):
    """What can put its result into its input, which `inplace` asks for."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Of any shape, the same shape."""
        return write(input, self._of(input)) if self.inplace else self._of(input)

    def _of(self, input: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has neither _of(input), the activation of a tensor, nor a forward()")

    def extra_repr(self) -> str:
        """Whether the input is written to."""
        return "inplace=True" if self.inplace else ""
