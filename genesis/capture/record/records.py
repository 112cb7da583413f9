"""The records of a call: its programs, and the tensors they read and write.

A *source* says where a replay finds a value:

    ("leaf", j)         the j-th leaf of the arguments
    ("tensor", state)   the tensor of a State, which guards require to be the same
    ("gradient", s)     the `.grad` of what s finds
    ("base", s)         the root that what s finds is a view of
    ("output", p, i)    the value at position i of program p
    ("constant", array) an array that the call made from Python's numbers, which are guarded
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from genesis.ops.layout import Layout
from genesis.tensor.handle import Tensor
from genesis.tracing.source_line import line_name
from genesis.tracing.trace import Array, Change

Source = tuple[Any, ...]
Leaves = Sequence[Any]  # of a call's arguments: tensors and numbers
Settings = tuple[Any, ...]  # the numbers of an optimizer's step
Positional = tuple[Any, ...]  # what `*args` holds
Mode = tuple[Any, ...]  # the modes of a call, see `modes`
Values = Mapping[tuple[int, int], Array]  # results of programs, by program and position


class SplitError(RuntimeError):
    """A function compiled with `fullgraph=True` reads a value, or does something that cannot be replayed."""


class Refusal(NamedTuple):
    """Why a call cannot be replayed, and the user's file and line. `passes`: the reason may not apply to the next call."""

    reason: str
    line: tuple[str, int] | None
    passes: bool = False

    def __str__(self) -> str:
        return f"{self.reason} (at {line_name(self.line)})" if self.line else self.reason


class InputSource(NamedTuple):
    """An input of a program: all of what `source` finds, or the part `within` of its memory.

    `copied`: NumPy sees that memory, so the input is a copy.
    `derived`: (program, position) of the output whose memory a view has re-read: backward goes on from there.
    """

    source: Source
    within: Layout | None = None
    copied: bool = False
    derived: tuple[int, int] | None = None


class Write(NamedTuple):
    """A tensor that a program overwrites: with which output, and by how much versions rise."""

    source: Source
    output: int
    versions: int
    notes: int
    change: Change | None


@dataclass(eq=False)
class State:
    """A tensor from before the call: its state then, and its source."""

    tensor: Tensor
    array: Array
    version: int
    requires_grad: bool
    gradient: Tensor | None
    hooks: tuple[Any, ...]
    base: Tensor | None
    extras: list[str]  # attributes that the user added
    changes: int  # how often the memory of `array` had been overwritten
    label: str = ""
    source: Source | None = None
    reads_gradient: bool | None = None  # None: `.grad` was not used; False: it was replaced before it was read

    @property
    def notes(self) -> int:
        """The number of the call's writes to that memory."""
        return self.array.memory.buffer.version - self.changes  # type: ignore[union-attr]

    def release(self) -> None:
        """Drop all data, and the tensor unless guards compare it."""
        self.array = self.gradient = self.base = None  # type: ignore[assignment]
        if self.source is None or self.source[0] != "tensor":
            self.tensor = None  # type: ignore[assignment]

    @classmethod
    def of(cls, tensor: Tensor) -> State:
        extras = [name for name in vars(tensor) if not hasattr(Tensor, name)]
        return cls(
            tensor, tensor._array, tensor._changes, tensor._requires_grad, tensor._grad, hooks_of(tensor), tensor._base, extras,
            tensor._array.memory.buffer.version,  # type: ignore[union-attr]
        )


def signed(word: int) -> int:
    """A 64-bit word as a signed integer."""
    return word - (1 << 64) if word >> 63 else word


def hooks_of(tensor: Tensor) -> tuple[Any, ...]:
    """The hooks that backward runs at a leaf."""
    every = tensor._hooks, tensor._post_hooks
    return (*[tuple((hooks or {}).values()) for hooks in every], tensor._node_hooks, tensor._retains_grad)
