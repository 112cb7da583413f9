"""What an object file takes and gives: where the slots of its program come from."""

from __future__ import annotations

from typing import NamedTuple


class Copy(NamedTuple):
    """A result that lies elsewhere, or in other strides, than the caller wants it: its slot, and the layout, in elements."""

    slot: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


class Interface(NamedTuple):
    """Where the slots of a program come from.

    Attributes:
        inputs: for each slot of an input: which of the caller's inputs, or None.
        weights: for each slot of an input that the caller does not give: the byte in the weights where it begins.
        outputs: for each slot of an output: which of the caller's results, or None.
        buffers: for each slot of an output that the caller does not give: the byte of the working memory where it begins.
        copies: for each of the caller's results, how it is copied, or None if the program writes it.
        scalars: numbers, as words.
        weights_bytes: the size of the weights.
        working_bytes: the size of the working memory, without the arena.
    """

    inputs: list[int | None]
    weights: list[int]
    outputs: list[int | None]
    buffers: list[int]
    copies: list[Copy | None]
    scalars: list[int]
    weights_bytes: int
    working_bytes: int
