"""Replays without Python: the guards of a call, the slots of its program and its results as instructions.

They serve a call that is one short program of the host's. They do what
`Compiled`, `Entry` and `SingleProgramReplay` do for it, or say MISSED before anything has happened; then those do. The
interpreter runs nothing else meanwhile, so there is nothing to lock and no interrupt to mind. Where they call Python, as for an
optimizer's step, the lock is held. A program with collectives is run by Python, and the interpreter runs others meanwhile.
"""

from __future__ import annotations

import operator
import struct
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from genesis.autograd.hooks import observing
from genesis.capture.guards.entry_check import EntryCheck
from genesis.capture.guards.native_check import NativeCheck
from genesis.capture.record.records import Mode, Positional
from genesis.capture.record.results import Recipe, Results
from genesis.capture.replay.collective_run import CollectiveRun
from genesis.capture.replay.critical_section import has_come_between, run_critical
from genesis.capture.replay.native_slots import NativeSlots
from genesis.capture.replay.program import ReplayProgram
from genesis.capture.replay.python_calls import PythonCalls
from genesis.capture.replay.single_program import SingleProgramReplay, TensorChanges
from genesis.execution.flush import FLUSH_HOOKS, has_pending_collectives
from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import default_dtype
from genesis.ops.layout import Layout
from genesis.runtime import determinism
from genesis.runtime import team as threads
from genesis.runtime.collectives import GROUPS
from genesis.runtime.counters import replayed
from genesis.runtime.devices import CPU, seen_devices
from genesis.runtime.instructions import MISSED, Constant, Instructions, Place
from genesis.runtime.native import UNOBSERVED
from genesis.runtime.references import IN_LIST
from genesis.runtime.timeline import timeline
from genesis.tensor.call_modes import REPLACING
from genesis.tensor.handle import Tensor, shares
from genesis.tracing.state import thread_state
from genesis.tracing.trace import BUSY, LOCK, critical

# Seconds that a program may keep the interpreter, as any Python code may (`sys.getswitchinterval`).
LONGEST = 5e-3
RUNS = 2  # in which results lie by turns


class ResultWords:
    """A run of a program, and the words that instructions know its memory by.

    Attributes:
        owned: {how many, objects.., counts..} of what makes up its results, for SKIP_ALONE.
        addresses: those of its buffers.
        arrays: the addresses of its results, as arrays.
        run: the run.
        unread: for each small value that a tensor gets, {2, array, memory, counts..} as long as that tensor alone owns it,
            which a register holds meanwhile, too.
    """

    def __init__(self, single: SingleProgramReplay) -> None:
        self._single, self._pool = single, single.pool
        self.run = run = self._pool.new_run(CPU)
        self.owned = array("Q", bytes(8 * (1 + 2 * self._pool.kept_count)))
        self.addresses = array("Q", run.addresses)
        self.arrays = array("Q", bytes(8 * len(run.arrays)))
        self.unread = [array("Q", [2, id(None), id(None), 0, 0]) for _ in self._pool.selected]
        self._disown()

    def _disown(self) -> None:
        """Nothing that there is is alone: the next call renews all."""
        count = self._pool.kept_count
        self.owned[:] = array("Q", [count, *[id(None)] * count, *[0] * count])

    def renew(self) -> None:
        """Find memory in place of what somebody owns, and for large results."""
        self._disown()  # should this raise
        run = self.run
        self.release()  # what a call has left that came to nothing
        self._pool.provide(run, self._single.reused())
        self.addresses[:] = array("Q", run.addresses)
        self.arrays[:] = array("Q", [id(made) for made in run.arrays])
        counts = {id(kept): counted - IN_LIST + 1 for kept, counted in zip(run.kept, run.unowned or (), strict=True)}
        self.owned[:] = array("Q", [len(counts), *counts, *counts.values()])
        for words, value in zip(self.unread, self._pool.selected, strict=True):
            of_array, of_memory = id(run.arrays[value]), id(run.memories[value])
            words[:] = array("Q", [2, of_array, of_memory, counts[of_array] + 2, counts[of_memory]])

    def release(self) -> None:
        """Let go of large results, which their tensors own now."""
        self._pool.drop_passing(self.run)


class NativeReplay:
    """The function of (args, kwargs) that replays a call, or returns MISSED."""

    def __init__(
        self, check: EntryCheck, modes: Mode, program: ReplayProgram, single: SingleProgramReplay, results: Results,
        changes: TensorChanges, slots: NativeSlots,
    ) -> None:
        self._code = code = Instructions(2)
        self._program = program
        self._single, self._results, self._changes, self._slots = single, results, changes, slots
        self._count, self._turn = array("Q", [0]), array("Q", [0])
        self._is_locked = slots.compute is not None or bool(changes.roots or changes.gradients) or single.communicates
        self._calls = PythonCalls(slots.compute)
        self._require_plain_thread(modes)
        guards = NativeCheck(code)
        for lines, constants in check.parts:
            guards.add(lines, constants)
        given = [guards.evaluate(name) for name in check.inputs]
        self._inputs = [
            (given[which] if isinstance(which, int) else code.constant(which), offset) for which, offset in slots.inputs]
        self._leaves = [guards.names[f"a{j}"] for j in range(check.leaves)]
        self._before = [
            guards.arrays.get(root) or code.attribute(code.constant(root), "_array") for root, *_ in changes.roots]
        code.emit("ENTER")
        words = [code.keep(ResultWords(single)) for _ in range(RUNS)]
        for k in range(RUNS):
            skip = code.emit("SKIP_HALF", _at(self._turn), 1 - k, 0)
            self._run(words[k], words[k - 1])
            code.emit("STORE", _at(self._turn), 1 - k)
            code.emit("ADD", _at(self._count), 1)
            if not single.communicates:  # whose runs count themselves
                code.emit("ADD", _at(replayed), 1)
            code.emit("RETURN", self._result)
            code.skip_from(skip)
        code.keep((self._count, self._turn, single))
        self._replay = code.function()
        self.function: Callable[..., Any] = self._replay_locked if self._is_locked else self._replay

    @property
    def replays(self) -> int:
        """How often it did."""
        return self._count[0]

    def _require_plain_thread(self, modes: Mode) -> None:
        """What `Compiled.__call__` asks before it looks at entries."""
        code = self._code
        for container in (REPLACING, FLUSH_HOOKS, seen_devices):
            code.emit("SIZE", code.constant(container), 0)
        code.emit("IS", code.attribute(code.constant(timeline), "spans"), None)
        if not self._is_locked:
            code.emit("IS", code.attribute(code.constant(critical), "running"), Constant(False))
        code.emit("WORD", threads.team.under_way, 0)
        code.emit("SIZE", code.attribute(code.constant(observing), "observers"), 0)
        state = code.attribute(code.constant(thread_state), "__dict__")
        is_enabled, autocast, dtype, _, _, _ = modes
        plain = {"recorder": None, "eager": False, "deferred": False, "multi_device": False, "grad_enabled": is_enabled}
        for name, value in plain.items():
            code.emit("IS", code.item(state, name), Constant(value))
        code.emit("IS", code.attribute(code.constant(thread_state), "autocast"), Constant(autocast))
        code.emit("IS", code.item(code.constant(default_dtype), 0), Constant(dtype))
        code.emit("IS", code.item(code.constant(vars(threads)), "_threads"), Constant(threads._threads))
        code.emit("IS", code.item(code.constant(determinism.setting), 0), Constant(determinism.setting[0]))
        code.emit("SIZE", code.item(state, "left"), 0)
        opened = code.item(state, "trace")
        skip = code.emit("SKIP_IS", opened, None, 0)
        if GROUPS:  # collectives that wait to be computed come first
            code.emit("FALSE", code.call(has_pending_collectives))
        else:
            code.emit("SIZE", code.constant(GROUPS), 0)
        if not self._is_locked:
            code.emit("IS_NOT", code.attribute(opened, "closed"), Constant(BUSY))  # else a signal handler or finalizer came in
        code.skip_from(skip)

    def _replay_locked(self, args: Positional, kwargs: Attributes) -> Any:
        """For calls that change tensors or run Python: what comes in meanwhile knows of them."""
        with LOCK:
            return MISSED if has_come_between() else run_critical(self._replay, args, kwargs)

    def _run(self, words: ResultWords, previous: ResultWords) -> None:
        code, single = self._code, self._single
        if single.pool.has_large:
            code.call(words.renew)
        else:
            skip = code.emit("SKIP_ALONE", _at(words.owned), 0, 0)
            code.call(words.renew)
            code.skip_from(skip)
        if self._is_locked:
            code.call(self._calls.begin)
        sets = self._sets(words)
        self._tensors: dict[int, Place] = {}
        self._result = self._build(self._results.tree, words)
        if single.communicates:
            self._tell_backwards(words, previous)
            self._run_collectives(words)
            for tensor, name, value, _ in sets:
                code.emit("SET", tensor, name, value)
            return
        temporary = code.call(single.temporary) if single.arena_bytes else None
        if single.verify is not None:  # it is Python, which may run the same program
            self._fill(words, temporary, None)
            code.call(single.verify)
        code.emit("WORD", threads.team.under_way, 0)  # Python may have let another thread begin a run
        self._tell_backwards(words, previous)
        numbers = None
        if self._slots.compute is not None:  # the last Python: an interrupt in it has all taken back
            numbers = code.call(self._calls.compute, *self._leaves)
            code.emit("IS_NOT", numbers, None)
        self._fill(words, temporary, numbers)
        for tensor, name, value, _ in sets:
            code.emit("SET", tensor, name, value)
        run = code.emit("RUN", single.program.address)
        for tensor, name, _, before in sets:  # an index was out of range, before anything was written over
            code.emit("SET", tensor, name, before)
        if self._is_locked:
            code.call(self._calls.take_back)
        if single.pool.has_large:
            code.call(words.release)
        code.emit("MISS")
        code.skip_from(run)
        if single.pool.has_large:
            code.call(words.release)

    def _run_collectives(self, words: ResultWords) -> None:
        code, slots = self._code, self._slots
        run = CollectiveRun(self._program, self._single, self._changes, slots, self._calls, words.run)
        changing = self._leaves if slots.compute else [self._leaves[source[1]] for source in slots.sources.values()]
        code.emit("IS", code.call(run, *[place for place, _ in self._inputs], *changing), Constant(True))

    def _sets(self, words: ResultWords) -> list[tuple[Place, str, Place, Place]]:
        """What is set: tensor, name, value, and the value before. All that can raise comes before."""
        code, changes = self._code, self._changes
        roots = [code.constant(root) for root, *_ in changes.roots]
        sets = [(root, "_array", self._array(value, words), before)
                for root, (_, value, *_), before in zip(roots, changes.roots, self._before, strict=True)]
        for root, (_, _, versions, *_) in zip(roots, changes.roots, strict=True):
            number = code.attribute(root, "_changes")
            sets.append((root, "_changes", code.call(operator.add, number, code.constant(versions)), number))
        for tensor, value, flags in changes.gradients:
            former = code.attribute(code.constant(tensor), "_grad")  # what is replaced lives on until the end
            gradient = code.constant(None) if value is None else self._tensor(Tensor, value, flags, words)
            sets.append((code.constant(tensor), "_grad", gradient, former))
        return sets

    def _tell_backwards(self, words: ResultWords, previous: ResultWords) -> None:
        """A backward that is still to read what is written over hears of it: as `SingleProgramReplay._note`."""
        code = self._code
        for k, ((_, value, _, times, change), before) in enumerate(zip(self._changes.roots, self._before, strict=True)):
            if not times:
                continue
            is_small = k < len(words.unread)
            other = code.emit("SKIP_OTHER", before, _at((previous if is_small else words).arrays, value), 0)
            if is_small:
                silent = code.emit("SKIP_ALONE", _at(previous.unread[k]), 0, 0)
            else:  # written in place: nobody else has it
                silent = code.emit("SKIP_IS", code.constant(None), None, 0)
            code.skip_from(other)
            code.call(partial(self._calls.note, times, change), before)
            code.skip_from(silent)

    def _fill(self, words: ResultWords, temporary: Place | None, numbers: Place | None) -> None:
        """Fill the program's slots."""
        code, single, filled = self._code, self._single, self._slots
        slots = single.program.slots()
        code.emit("STORE", next(slots)[0], UNOBSERVED.address)
        for k in range(len(self._inputs)) if single.inputs is None else single.inputs:
            place, offset = self._inputs[k]
            memory = code.attribute(place, "memory")
            code.emit("ADDRESS", next(slots)[0], code.attribute(memory, "pointer"), offset)
            code.emit("MOVE", memory, code.constant(None))  # counts of owners tell whether it may be written over
        for k in range(len(words.addresses)):
            code.emit("COPY", next(slots)[0], _at(words.addresses, k))
        arena, _ = next(slots)
        if temporary is None:
            code.emit("STORE", arena, 0)
        else:
            code.emit("ADDRESS", arena, temporary)
        places = {} if filled.compute is not None and numbers is None else {
            k: self._leaves[source[1]] if numbers is None else code.item(numbers, at)
            for at, (k, source) in enumerate(filled.sources.items())}
        for k, (value, (slot, kind)) in enumerate(zip(filled.numbers, slots, strict=True)):
            if k in places:
                code.emit("REAL" if kind == "d" else "INTEGER", slot, places[k])
            else:
                code.emit("STORE", slot, *struct.unpack("q", struct.pack(kind, value)))

    def _build(self, tree: tuple[str, Any], words: ResultWords) -> Place:
        """The register that gets the return value, or a part of it."""
        code, (how, what) = self._code, tree
        if how == "made":
            return self._made(what, words)
        if how == "leaf":
            return self._leaves[what]
        if how == "same":
            return code.constant(what)
        kind, items = what
        built = [self._build(item, words) for item in items]
        return code.call(lambda *parts: kind(parts), *built)

    def _made(self, recipe: Recipe, words: ResultWords) -> Place:
        """The register of the tensor of a recipe, which is built once in a call."""
        known = self._tensors.get(id(recipe))
        if known is not None:
            return known
        root = None if recipe.base is None else self._made(recipe.base, words)
        tensor = self._tensor(recipe.kind, self._single.value_at[recipe.key[1]], recipe.flags, words)
        if root is not None:
            self._code.call(partial(_share, recipe.layout, recipe.lag), tensor, root)
        self._tensors[id(recipe)] = tensor
        return tensor

    def _tensor(self, kind: type[Tensor], value: int, flags: Sequence[tuple[str, object]], words: ResultWords) -> Place:
        code = self._code
        made = code.call(object.__new__, code.constant(kind))
        code.emit("SET", made, "_requires_grad", code.constant(False))
        code.emit("SET", made, "_array", self._array(value, words))
        for name, flag in flags:
            code.emit("SET", made, name, code.constant(flag))
        return made

    def _array(self, value: int, words: ResultWords) -> Place:
        result = self._code.register()
        self._code.emit("OBJECT", result, _at(words.arrays, value))
        return result


def _share(layout: Layout | None, lag: int, view: Tensor, root: Tensor) -> None:
    shares(view, root, layout)
    view._seen -= lag


def _is_computed(recipe: Recipe) -> bool:
    """Whether a result, and the root that it may be a view of, are values of the program that the call makes."""
    base = recipe.base
    return recipe.value is not None and recipe.value[0] == "output" and (
        base is None or (base.__class__ is Recipe and _is_computed(base)))


def is_native(results: Results) -> bool:
    """Whether instructions can build what a call returns."""
    return results.is_new and not results.held and _is_native(results.tree)


def _is_native(tree: tuple[str, Any]) -> bool:
    how, what = tree
    if how == "sequence":
        return all(map(_is_native, what[1]))
    return _is_computed(what) if how == "made" else how in ("leaf", "same")


def _at(words: array[int], index: int = 0) -> int:
    return words.buffer_info()[0] + words.itemsize * index
