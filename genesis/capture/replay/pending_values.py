"""The values that a program computes are pending while other threads may have the interpreter."""

from __future__ import annotations

from collections.abc import Mapping

from genesis.execution.result_words import ResultWords, word_address
from genesis.ir.errors import OutOfRangeError
from genesis.runtime.devices import Device
from genesis.runtime.instructions import Instructions, Register
from genesis.tracing.trace import BUSY, Trace


class PendingValues:
    """Emits instructions by which arrays are pending for a while: another thread that reads one waits for LOCK.

    `arrays` are those of values, by number, in the memory of `words`.
    """

    def __init__(self, code: Instructions, device: Device, arrays: Mapping[int, Register], words: ResultWords) -> None:
        self._code, self._arrays, self._words = code, arrays, words
        self._trace = trace = Trace(device)
        trace.end(keeps=False)
        trace.failure = OutOfRangeError("an index was out of range in a call of another thread")
        self._held: dict[int, tuple[Register, Register]] = {}  # memory and trace of each array

    def begin(self) -> None:
        """Make the arrays pending. From here to the end no Python runs in this thread."""
        code = self._code
        self._note(False, BUSY)
        for value, array in self._arrays.items():
            self._held[value] = code.attribute(array, "memory"), code.attribute(array, "trace")
            code.assign(array, "trace", code.constant(self._trace))
            code.assign(array, "memory", code.constant(None))

    def end(self) -> None:
        """Give the arrays their memory."""
        for value in self._held:
            self._give(value)
        self._note(True, True)

    def lose(self, befores: Mapping[int, Register]) -> None:
        """Lose the values of a failed run. Those to be written over arrays that tensors had `before` are what they were."""
        for value in filter(befores.__contains__, self._held):
            other = self._code.emit("SKIP_OTHER", befores[value], word_address(self._words.results, value), 0)
            self._give(value)
            self._code.skip_from(other)
        self._note(True, True)
        if self._arrays:
            self._code.call(self._words.forget)

    def _give(self, value: int) -> None:
        memory, trace = self._held[value]
        self._code.assign(self._arrays[value], "memory", memory)  # first: whoever finds no trace finds memory
        self._code.assign(self._arrays[value], "trace", trace)

    def _note(self, done: bool, closed: int) -> None:
        for name, value in {"done": done, "closed": closed}.items() if self._arrays else ():
            self._code.assign(self._code.constant(self._trace), name, self._code.constant(value))
