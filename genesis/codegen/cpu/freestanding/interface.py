"""The interface of an object file: how arguments, weights and working memory fill the slots of its program."""

from __future__ import annotations

from typing import NamedTuple


class Copy(NamedTuple):
    """A result that is copied to the caller's memory, as its location or strides differ: its slot, and layout in elements."""

    slot: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


class Interface(NamedTuple):
    """The sources of a program's slots.

    Attributes:
        inputs: for each input slot: the number of the caller's argument, or None for a weight.
        weights: for each input slot that is a weight: its offset in the weights, in bytes.
        outputs: for each output slot: the number of the caller's result, or None for working memory.
        buffers: for each output slot in working memory: its offset there, in bytes.
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
