"""Tensors made of other tensors: they have no array of their own, and say what an operation means for their parts.

Dispatch finds out where it would read the array: dense tensors pay nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, ClassVar

from genesis.ir.annotations import Attributes
from genesis.ir.replayable import Described, replayable_module
from genesis.tensor.handle import CallArguments, Tensor


class NotDenseError(NotImplementedError, TypeError):
    """Something wants the elements of a dense tensor and met another."""

    def __init__(self, tensor: CompositeTensor, wish: str = "") -> None:
        super().__init__(tensor, wish)
        self.tensor = tensor
        self.wish = wish

    def __str__(self) -> str:
        wish = self.wish or _first_of_ours(self.__traceback__)
        return f"{wish}: takes dense tensors, got {self.tensor.described()}; {self.tensor.hint}"


def _first_of_ours(trace: TracebackType | None) -> str:
    """The function of the library that the user called."""
    while trace is not None and not trace.tb_frame.f_globals.get("__name__", "").startswith("genesis."):
        trace = trace.tb_next
    found = "this"
    while trace is not None and (found := trace.tb_frame.f_code.co_name) == "public":  # of what may be overridden
        trace = trace.tb_next
    return found


class CompositeTensor(Tensor, Described):
    """A tensor that is made of others. A subclass says what operations mean for it, and overrides what reads the array.

    Attributes:
        parts: the attributes that hold the tensors that it is made of.
        hint: what to do where an operation has no meaning for it.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    hint: ClassVar[str] = ""

    @property
    def _array(self) -> Any:  # type: ignore[override]
        raise NotDenseError(self)

    def described(self) -> str:
        """The kind and the shape, for errors."""
        raise NotImplementedError

    def computed(self, name: str, arguments: CallArguments, attributes: Attributes) -> Any:
        """What the operation `name` gives of arguments with this one among them. Raises NotDenseError for others."""
        raise NotDenseError(self, name)

    def written(self, value: Tensor) -> Tensor:
        """The tensor itself, which holds `value` from now on."""
        raise NotDenseError(self, "in-place")

    @property
    def derived_part(self) -> Tensor:
        """The tensor through which gradients flow to it."""
        raise NotDenseError(self, "grad")

    def gradient_of(self, gradient: Tensor) -> Tensor:
        """The gradient by it, of that by its `derived_part`."""
        raise NotDenseError(self, "grad")

    def part_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors that it is made of, by the names of their attributes."""
        for name in self.parts:
            part = vars(self)[name]
            if part is not None:
                yield name, part


replayable_module(__name__)
