"""Replays without Python: the guards, program slots and results of a call as instructions.

They serve calls of programs on the host that are too short to handle signals. They do the work of `Compiled` and `Entry`,
or return MISSED before anything has happened, and then those run. Values that the function reads between programs are compared
in memory. If one differs the call is missed: only the last program changes tensors, so nothing is to be undone but Python's
part. No Python runs from the first slot of a program to its end, so no interrupt arrives; it is called before, as for new
memory. Programs of a few milliseconds hold the GIL. Other threads run beside longer ones, and wait where they read what is
computed. Replays that change tensors, compute numbers or are long hold the lock. A program with collectives is run by Python.
"""

from __future__ import annotations

import operator
import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from genesis.capture.guards.entry_check import EntryCheck
from genesis.capture.guards.native_check import NativeCheck
from genesis.capture.record.reads import Read
from genesis.capture.record.records import InputSource, Mode, Positional, Source
from genesis.capture.record.results import Results
from genesis.capture.replay.changing_program import TensorChanges
from genesis.capture.replay.collective_run import CollectiveRun
from genesis.capture.replay.critical_section import run_critical
from genesis.capture.replay.host_program import HostProgram
from genesis.capture.replay.native_modes import require_device, require_plain_thread
from genesis.capture.replay.native_results import NativeResults
from genesis.capture.replay.pending_values import PendingValues
from genesis.capture.replay.program import Program
from genesis.capture.replay.taken_steps import NOTHING, Compute, PythonCalls
from genesis.execution.result_words import RUNS, ResultWords, fill_slots, in_turns, word_address
from genesis.execution.verified_program import KNOWN
from genesis.ir.annotations import Attributes
from genesis.runtime import rng
from genesis.runtime.counters import replayed
from genesis.runtime.instructions import MISSED, Constant, Instructions, Register
from genesis.runtime.memory import Buffer
from genesis.runtime.scratch import scratch
from genesis.runtime.team import team
from genesis.tracing.memory import Memory
from genesis.tracing.tensor_state import UNTRACKED
from genesis.tracing.trace import LOCK, Array, Trace, critical

Assignment = tuple[Register, str, Register, Register]  # tensor, name, value, and the value before


class NativeReplay:
    """The function of (args, kwargs) that replays a call, or returns MISSED.

    `given` are the numbers of inputs among the arrays that the check returns. Only the last program may change tensors. A
    program with collectives must be the only one. Other threads run beside programs that take `long`. Raises NotNativeError.
    """

    def __init__(
        self, check: EntryCheck, modes: Mode, programs: Sequence[HostProgram], given: Mapping[InputSource, int],
        reads: Sequence[Read], results: Results, changes: TensorChanges, compute: Compute | None, draws: int | None, long: bool,
    ) -> None:
        self._code = code = Instructions(2, (Array, Memory, Buffer, Trace))
        self._long = long
        self._programs, self._numbers, self._reads, self._results = programs, given, reads, results
        self._changes, self._compute, self._draws = changes, compute, draws
        last = programs[-1].recorded
        self._communicates = bool(last.plan.collectives)
        self._arena_bytes = max([program.recorded.plan.arena_bytes for program in programs])
        self._count, self._turn = array("Q", [0]), array("Q", [0])
        self._is_locked = self._compute is not None or bool(changes.roots or changes.gradients) or self._communicates or long
        self._calls = PythonCalls(self._compute)
        require_plain_thread(code, modes, self._is_locked)
        guards = NativeCheck(code)
        for lines, constants in check.parts:
            guards.add(lines, constants)
        self._given = [guards.evaluate(name) for name in check.inputs]
        self._leaves = [guards.names[f"a{j}"] for j in range(check.leaves)]
        self._before = [
            guards.arrays.get(root) or code.attribute(code.constant(root), "_array") for root, _ in changes.roots]
        require_device(code, modes, last.device, [*self._given, *self._before])
        self._require_values(-1, [])
        code.emit("ENTER")
        views = [results.views_in(position) for position in range(len(programs))]
        words = [[code.keep(one.words(shown)) for one, shown in zip(programs, views, strict=True)] for _ in range(RUNS)]
        for k in in_turns(code, self._turn, words):
            result = self._run(words[k], words[k - 1])
            code.emit("ADD", word_address(self._count), 1)
            if not self._communicates:  # runs with collectives count themselves
                code.emit("ADD", word_address(replayed), 1)
            code.emit("RETURN", result)
        code.keep((self._count, self._turn, self._calls, programs))
        self._replay = code.function()
        self.function: Callable[..., Any] = self._replay_locked if self._is_locked else self._replay

    @property
    def replays(self) -> int:
        """The number of calls replayed."""
        return self._count[0]

    def _replay_locked(self, args: Positional, kwargs: Attributes) -> Any:
        """For calls that change tensors or run Python: takes the lock, and undoes Python's part on failure."""
        with LOCK:
            try:
                result = run_critical(self._replay, args, kwargs)
            except BaseException:
                self._calls.take_back()
                raise
            if result is MISSED:
                self._calls.take_back()
            return result

    def _run(self, words: Sequence[ResultWords], previous: Sequence[ResultWords]) -> Register:
        """Run the programs; returns the register of the return value."""
        code, last = self._code, len(self._programs) - 1
        for one in words:
            self._provide(one)
        if self._is_locked:
            self._note_nothing()
            code.emit("STORE", word_address(self._calls.done), 0)
            code.assign(code.constant(self._calls), "taken", code.constant(NOTHING))
        # A single program's numbers come last: a handler that interrupts sees no effect of it.
        numbers = self._computed() if last else None
        built = NativeResults(code, self._leaves, self._programs, words)
        assignments = self._assignments(built)
        result = built.build(self._results.tree) if self._results.is_new else None
        if self._communicates:
            self._run_communicating(assignments, words[-1], previous[-1])
            return built.build(self._results.tree) if result is None else result
        built.note_owners()
        temporary = self._temporaries() if self._arena_bytes else None
        device = self._programs[-1].recorded.device
        for k in range(last + 1):
            pending = PendingValues(code, device, built.arrays_of(k) if self._long and k == last else {}, words[k])
            self._run_program(k, assignments if k == last else (), words, previous, temporary, numbers, pending)
        code.emit("STORE", word_address(self._calls.done), 1)
        if result is None:
            result = built.build(self._results.tree)
        self._release(words)
        if self._is_locked:
            self._note_nothing()
        return result

    def _run_program(
        self, k: int, assignments: Sequence[Assignment], words: Sequence[ResultWords], previous: Sequence[ResultWords],
        temporary: Register | None, numbers: Register | None, pending: PendingValues,
    ) -> None:
        """Run program `k`; the last one also makes the `assignments`. A single program computes its numbers itself."""
        code, program = self._code, self._programs[k]
        if program.verify is not None:  # Python, which may run the same program
            self._require_idle()
            self._fill(k, words, temporary, numbers)
            copied = code.call(program.program.copied)
            code.call(partial(program.verify, KNOWN + len(self._results.views_in(k))), copied)
        self._require_idle()
        if program is self._programs[-1]:
            self._tell_backwards(words[k], previous[k])
            numbers = numbers if k else self._computed()
        self._fill(k, words, temporary, numbers)
        if words[k].has_large:
            sole = code.emit("SKIP_ALONE", word_address(words[k].large), 0, 0)
            self._release(words)  # another thread has come to hold, since memory was chosen, what would be written over
            code.emit("MISS")
            code.skip_from(sole)
        self._draw()
        for tensor, name, value, _ in assignments:
            code.assign(tensor, name, value)
        pending.begin()
        run = code.emit("RUN_BESIDE" if self._long else "RUN", program.program.address)
        self._undo(assignments, words, pending)
        code.skip_from(run)
        pending.end()
        self._require_values(k, words)

    def _run_communicating(self, assignments: Sequence[Assignment], words: ResultWords, previous: ResultWords) -> None:
        """Run the only program, which has collectives, and make the assignments."""
        code = self._code
        self._tell_backwards(words, previous)
        self._run_collectives(words)
        code.emit("STORE", word_address(self._calls.done), 1)
        for tensor, name, value, _ in assignments:
            code.assign(tensor, name, value)
        self._note_nothing()

    def _require_idle(self) -> None:
        """Go on if no other thread has a run under way or fills slots for one: Python may have let it come before."""
        self._code.emit("WORD", team.under_way, 0)
        if not self._is_locked:
            self._code.require_attribute(critical, "running", False)

    def _note_nothing(self) -> None:
        """Release the arrays that the last call, or this one, overwrote."""
        code, noted = self._code, self._code.new(list)
        code.assign(code.constant(self._calls), "noted", noted)

    def _temporaries(self) -> Register:
        """The register of the address of memory for temporaries. The shared buffer never shrinks."""
        code, get = self._code, partial(scratch.buffer, self._arena_bytes)
        shared = scratch.is_shared(get())
        return code.attribute(code.attribute(code.constant(scratch), "shared") if shared else code.call(get), "ptr")

    def _provide(self, words: ResultWords) -> None:
        """Replace result buffers that have another owner."""
        code = self._code
        if words.has_large:
            code.call(words.renew)
        else:
            skip = code.emit("SKIP_ALONE", word_address(words.owned), 0, 0)
            code.call(words.renew)
            code.skip_from(skip)

    def _computed(self) -> Register | None:
        """The register of the numbers that Python computes; None if it computes none."""
        if self._compute is None:
            return None
        numbers = self._code.call(self._calls.compute, *self._leaves)
        self._code.emit("IS_NOT", numbers, None)
        return numbers

    def _undo(self, assignments: Sequence[Assignment], words: Sequence[ResultWords], pending: PendingValues) -> None:
        """Undo after a failed run: an index was out of range, before anything was overwritten.

        What another thread has assigned meanwhile stays. A new version makes views reload that it has made.
        """
        code = self._code
        for tensor, name, value, before in assignments:
            changed = code.emit("SKIP_APART", code.attribute(tensor, name), value, 0)
            is_version = self._long and name == "_changes"
            code.assign(tensor, name, code.call(operator.add, before, code.constant(UNTRACKED)) if is_version else before)
            code.skip_from(changed)
        self._draw(back=True)
        pending.lose(dict(zip([write.output for _, write in self._changes.roots], self._before, strict=True)))
        if self._is_locked:
            code.call(self._calls.take_back)
        self._release(words)
        code.emit("MISS")

    def _draw(self, back: bool = False) -> None:
        """Move the random numbers' counter behind those that the slots draw, or back."""
        if self._draws is not None:
            self._code.emit("ADD", _random_word(rng.COUNTER), -self._draws if back else self._draws)

    def _release(self, words: Sequence[ResultWords]) -> None:
        for one in words:
            if one.has_large:
                self._code.call(one.release)

    def _require_values(self, position: int, words: Sequence[ResultWords]) -> None:
        """Go on if the values that the function reads after a program, or before all, are unchanged."""
        code = self._code
        for read in self._reads:
            if read.position != position:
                continue
            values = code.keep(array("B", read.values))
            if read.source[0] == "output":
                address = self._address(InputSource(read.source), words)
            else:
                address = word_address(code.keep(array("Q", [0])))
                memory = code.attribute(self._array(read.source), "memory")
                code.emit("ADDRESS", address, code.attribute(memory, "pointer"), 0)
                code.emit("MOVE", memory, code.constant(None))
            code.emit("BYTES", address, word_address(values), len(values))

    def _run_collectives(self, words: ResultWords) -> None:
        code, program = self._code, self._programs[-1]
        run = CollectiveRun(program, self._changes, self._compute is not None, self._calls, words.run)
        changing = self._leaves if self._compute else [self._leaves[source[1]] for _, source in program.recorded.slots]
        inputs = [self._array(one.source) for one in program.recorded.inputs]
        code.emit("IS", code.call(run, *inputs, *changing), Constant(True))

    def _array(self, source: Source) -> Register:
        """The register of the array that `source` finds, which no program of the call computes."""
        return self._code.constant(source[1]) if source[0] == "constant" else self._given[self._numbers[InputSource(source)]]

    def _address(self, one: InputSource, words: Sequence[ResultWords]) -> int:
        """The address of the word that has the address of what another program computes."""
        _, program, position = one.source
        return word_address(words[program].addresses, self._programs[program].buffer_of(position, one.within))

    def _inputs(self, recorded: Program, words: Sequence[ResultWords]) -> Iterator[tuple[Register, int] | int]:
        """The inputs of a program, as `fill_slots` takes them."""
        for k in recorded.plan.inputs:
            one = recorded.inputs[k]
            if one.source[0] == "output":
                yield self._address(one, words)
            else:
                itemsize = recorded.nodes[recorded.positions[k]].dtype.itemsize
                yield self._array(one.source), 0 if one.within is None else one.within.offset * itemsize

    def _assignments(self, built: NativeResults) -> list[Assignment]:
        """What is assigned to attributes in the end. All that can raise comes before that."""
        code, changes = self._code, self._changes
        roots = [(code.constant(root), write) for root, write in changes.roots]
        assignments = [(root, "_array", built.array(write.output, len(self._programs) - 1), before)
                       for (root, write), before in zip(roots, self._before, strict=True)]
        for root, write in roots:
            number = code.attribute(root, "_changes")
            assignments.append((root, "_changes", code.call(operator.add, number, code.constant(write.versions)), number))
        for tensor, recipe in changes.gradients:
            former = code.attribute(code.constant(tensor), "_grad")  # the old gradient lives on until the end
            gradient = code.constant(None) if recipe is None else built.made(recipe)
            assignments.append((code.constant(tensor), "_grad", gradient, former))
        return assignments

    def _tell_backwards(self, words: ResultWords, previous: ResultWords) -> None:
        """Tell backwards that still have to read what is overwritten.

        Small results of the previous run are skipped if only their tensor owns them, as nothing else can read them.
        """
        code = self._code
        for k, ((_, write), before) in enumerate(zip(self._changes.roots, self._before, strict=True)):
            if not write.notes:
                continue
            is_small = k < len(words.unread)
            other = code.emit("SKIP_OTHER", before, word_address((previous if is_small else words).results, write.output), 0)
            if is_small:
                silent = code.emit("SKIP_ALONE", word_address(previous.unread[k]), 0, 0)
            else:  # written in place: it has no other owner
                silent = code.emit("SKIP_IS", code.constant(None), None, 0)
            code.skip_from(other)
            code.call(partial(self._calls.note, write.notes, write.change), before)
            code.skip_from(silent)

    def _fill(self, which: int, words: Sequence[ResultWords], temporary: Register | None, numbers: Register | None) -> None:
        """Fill the slots of program `which`."""
        code, program = self._code, self._programs[which]
        recorded, sources = program.recorded, dict(program.recorded.slots)
        slots = fill_slots(code, program.program, self._inputs(recorded, words), words[which],
                           temporary if recorded.plan.arena_bytes else None)
        drawn = {} if self._draws is None else {k: source for k, source in sources.items() if source[0] != "leaf"}
        first = sum(len(one.recorded.slots) for one in self._programs[:which])  # of the computed numbers
        registers = {} if self._compute is not None and numbers is None else {
            k: self._leaves[source[1]] if numbers is None else code.item(numbers, index)
            for index, (k, source) in enumerate(sources.items(), first) if k not in drawn}
        if drawn:  # no other thread may be changing the words
            code.emit("WORD", _random_word(rng.CHANGING), 0)
        for k, (value, (slot, kind)) in enumerate(zip(recorded.numbers, slots, strict=True)):
            if k in drawn:
                word, *further = drawn[k]
                code.emit("COPY", slot, _random_word(rng.SEED if word == "seed" else rng.COUNTER))
                for number in further:
                    code.emit("ADD", slot, number)
            elif k in registers:
                code.emit("REAL" if kind == "d" else "INTEGER", slot, registers[k])
            else:
                code.emit("STORE", slot, *struct.unpack("q", struct.pack(kind, value)))


def _random_word(number: int) -> int:
    """The address of a word of the default random numbers' generator."""
    return word_address(rng.default_generator.words, number)
