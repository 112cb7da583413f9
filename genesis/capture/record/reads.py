"""Values that Python reads within a recorded call: a replay goes on only if it computes the same values.

They are guards, checked after the program that computes them. Before the last of them a call only computes, without effects: if
a guard fails, another recording or the function itself can still take the call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from genesis.autograd.forward_values import GOES_ON
from genesis.capture.record.origins import users_frame
from genesis.capture.record.records import Refusal, Source, SplitError
from genesis.capture.record.sources import SourceTable
from genesis.capture.replay.program import Program
from genesis.execution.realize import realize, realize_by_twin
from genesis.ir.annotations import Scalar, Tree
from genesis.pytree import leaves_of
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tensor.traced_number import Number
from genesis.tracing.source_line import resolve_line, user_line
from genesis.tracing.trace import Array

LOOK = "a value is looked at"
UNREACHED = "that no argument, name or attribute leads to"
MOST_BYTES = 64  # of a value: longer ones are data, which rarely repeat

Line = tuple[str, int] | None


class Read(NamedTuple):
    """A value that Python read.

    Attributes:
        source: where a replay finds it: an output, or a tensor from before the call.
        position: the program that computes it; -1 for a value from before the call.
        values: its bytes, in row-major order. Bits are compared, so NaN equals itself.
        label: its description in messages.
    """

    source: Source
    position: int
    values: bytes
    label: str


class Missed(Exception):
    """A call would continue differently from the recorded one; says why. It has had no effect."""


class OtherValueError(Missed):
    """A value that Python reads within a call differs from the recorded call's."""

    def __init__(self, read: Read, found: bytes, prefix: list[object]) -> None:
        super().__init__(read.label)
        self.source, self.found = named(read.source), found
        self.prefix = prefix  # the programs that have run


def named(source: Source) -> Source:
    """A source in a form that is comparable between recordings."""
    kind, *rest = source
    if kind == "tensor":
        return kind, id(rest[0].tensor)
    return (kind, named(rest[0])) if kind in ("gradient", "base") else source


class _Found(NamedTuple):
    array: Array  # kept alive, as its id is a key
    values: bytes | None
    line: Line


class Looks:
    """The part of `Recorder` for what Python reads of tensors, and for the reasons against a replay."""

    def __init__(self, fullgraph: bool, returns_items: bool, compares: bool) -> None:
        self._fullgraph = fullgraph and not returns_items
        self._returns_items = returns_items
        self._compares = compares  # values that Python reads may be guards
        self.refusals: list[Refusal] = []
        self.sources = SourceTable()
        self.programs: list[Program] = []
        self._found: dict[int, _Found] = {}  # the values read so far, by the ids of their arrays
        self._looks = 0  # how often Python looked at values
        self.items: list[Scalar] = []  # the results of `item()` among them
        self.numbers: list[Number] = []  # those that are alive: the call may store them

    # ---- hooks (see tracing/recording_hooks.py) ----

    def refuse(self, reason: str, passes: bool = False) -> None:
        """Mark the call as not replayable; `passes`: the reason may not apply to the next call."""
        refusal = Refusal(reason, _users_line(), passes)
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def value_looked_at(self) -> None:
        """Python reads memory: what it does from here on may depend on the values."""
        self._looks += 1
        self.refuse(LOOK)
        if self._fullgraph:
            raise SplitError(f"compile: with fullgraph=True, {self.refusals[-1]}")

    def values_read(self, array: Array) -> None:
        """Python reads the values of `array`: a replay holds where it computes the same ones."""
        if self._fullgraph or not self._compares:
            self.value_looked_at()
            return
        self._looks += 1
        memory = realize(array)
        if id(array) not in self._found:
            values = memory.numpy(array.node.dtype).tobytes() if array.node.nbytes <= MOST_BYTES else None
            self._found[id(array)] = _Found(array, values, _users_line())

    def item_read(self, tensor: Tensor) -> Any:
        """The number in `tensor`: a Number that replays re-read, if such calls only return it."""
        array = array_of(tensor)
        # A number that is only returned need not split the call's program.
        values = (realize_by_twin if self._returns_items else realize)(array).numpy(array.node.dtype)
        if values.size != 1:
            raise ValueError(f"item: a tensor of shape {tensor.shape} is not one number; want exactly one element")
        value = values.astype(array.node.dtype.compute.numpy).item()
        if self._returns_items and type(value) in (int, float):
            return Number(value, ("item", tensor_of(array)), self)
        self.items.append(value)
        self.values_read(array)
        return value

    # ---- at the end of the call ----

    def only_returns_items(self, result: Tree) -> bool:
        """Whether the only obstacles to a replay are numbers read from tensors and returned, and the splits they cause."""
        reasons = [refusal.reason for refusal in self.refusals]
        looks = all(reason.startswith((LOOK, GOES_ON)) or reason.endswith(UNREACHED) for reason in reasons)
        # A result that contains itself is refused, so that its leaves are not asked for.
        return looks and bool(self.items) and self._looks == len(self.items) and (
            {*map(id, leaves_of(result))}.issuperset(map(id, self.items)))

    def reads(self) -> list[Read]:
        """The guards of values; adds to `refusals` why a value cannot be one."""
        reads, refusals = [], self.refusals
        for array, values, line in self._found.values():
            if self.sources.constant_of(array) is not None:
                continue
            source = self.sources.source_of_array(array)
            if values is None:
                refusals.append(Refusal(f"{LOOK} of {array.node.nbytes} bytes, which is more than {MOST_BYTES}", line))
            elif source is None:
                refusals.append(Refusal(f"{LOOK} that no argument, name, attribute or program leads to", line))
            else:
                position = source[1] if source[0] == "output" else -1
                reads.append(Read(source, position, values, str(Refusal(LOOK, line))))
                if any(program.written for program in self.programs[: position + 1]):
                    refusals.append(Refusal(f"{LOOK} after a tensor was written over", line))
                if any(program.plan.collectives for program in self.programs[: position + 1]):
                    refusals.append(Refusal(f"{LOOK} after other processes took part", line))
        return sorted(reads, key=lambda read: read.position)


def _users_line() -> Line:
    frame = users_frame()
    return resolve_line(*user_line()) if frame is None else resolve_line(frame.f_code, frame.f_lasti)
