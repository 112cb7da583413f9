"""Fast replay of a call that is a single program on the host.

Nothing is pending in between, so no trace is recreated or flushed: results come from the program's pool as arrays, and one
native call assigns them and runs the program. If anything fails before that call, no state has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple

from genesis.capture.guards.tensor_guards import unlike
from genesis.capture.record.records import InputSource, Leaves, Source, Write
from genesis.capture.record.results import Results, find, tensor_builder
from genesis.capture.replay.host_program import HostProgram
from genesis.capture.replay.program import ReplayProgram
from genesis.execution.failure import take_back_notes
from genesis.execution.result_pool import Run, reusable
from genesis.ir.annotations import Scalar
from genesis.ir.dtypes import float32
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.counters import counts
from genesis.runtime.memory import Buffer
from genesis.runtime.references import IN_LIST, reference_count
from genesis.runtime.scratch import scratch
from genesis.tensor.handle import Tensor, hold_gradient
from genesis.tensor.in_place import note
from genesis.tracing.trace import Array, Change

FAULT = object()  # an index was out of range; nothing has happened

_new = object.__new__
_memory, _pointer = attrgetter("memory"), attrgetter("memory.pointer")
_NONE: dict[int, Array] = {}
_NO_BYTES = Buffer(0)
_NOTHING = Array.realized(Buffer(0), contiguous_layout((0,)), float32)  # no result has its size


class Commit:
    """Whether a call's changes are committed; before that they can be undone."""

    done = False


class _Tensors(NamedTuple):
    """The changes of a call, in order: arrays, versions, gradients, and that it is done."""

    roots: list[Tensor]  # that are overwritten
    graded: list[Tensor]  # with a new or a lost gradient
    replaced: list[Tensor]  # whose new gradient may take the memory of the old one
    changing: tuple[object, ...]
    names: tuple[str, ...]
    restored: tuple[object, ...]  # after a fault
    restored_names: tuple[str, ...]


class TensorChanges(NamedTuple):
    """The changes of every call, if the tensors are the same in all calls.

    Attributes:
        roots: for each tensor that is overwritten: the value of the program that it gets, by how much its version rises, how
            often and of which change backwards are notified.
        gradients: for each tensor with a new gradient: (program, value), or None for no gradient; and its flags.
    """

    roots: list[tuple[Tensor, int, int, int, Change | None]]
    gradients: list[tuple[Tensor, tuple[int, int] | None, Sequence[tuple[str, object]]]]


class _Change(NamedTuple):
    """The changes of a run: the former arrays of roots, those notified, and iterators that apply and undo the changes."""

    before: tuple[Array, ...]
    noted: Sequence[int]
    done: Iterable[None]
    undone: Iterable[None]


class SingleProgramReplay(HostProgram, Commit):
    """The single program of a call, the tensors that it overwrites, and its new gradients.

    `earlier` programs, which change nothing, may compute some of its inputs and gradients; then `replay` must not be used.

    Attributes:
        changes: whether tensors are changed.
        communicates: whether it has collectives; then `replay` must not be used, as an interrupt cannot wait for them.
    """

    def __init__(
        self, program: ReplayProgram, inputs: Sequence[InputSource], writes: Sequence[Write], cleared: Sequence[Source],
        results: Results, earlier: Sequence[HostProgram] = (),
    ) -> None:
        super().__init__(program, inputs, overwrites=bool(writes or cleared or results.gradients))
        self._programs = [*earlier, self]
        self.communicates = bool(program.plan.collectives)
        # Only indices and divisors can fail on the host. The proof of `donations` puts every overwrite of an input after the
        # last check, so after a fault the former arrays of roots still have their values.
        self._can_fail = any(PRIMITIVES[node.op].fault is not None for node in program.plan.lowered.nodes)
        self._looks_first = results.is_new
        self._build = results.builder(self._value)
        writes = self._sort_writes(program, writes)
        graded, replaced = self._gradients(results, cleared)
        freed = self._choose_reused(program, inputs, writes, replaced)
        bare = [source for source in cleared if source not in graded]
        self._nothing = [None] * len(bare)
        self._gone = [source in cleared for source in (*graded, *bare)]
        self._sources = [write.source for write in writes], graded, bare, freed
        self.changes = any(self._sources)
        self._fixed = self._tensors(()) if all(
            source[0] == "tensor" for sources in self._sources for source in sources) else None
        self._are_holders = False  # whether `graded` tensors are marked as holders of gradients, permanently

    def _value(self, key: tuple[int, int]) -> int:
        """The number of the value at (program, position)."""
        program, position = key
        return self._programs[program].value_at[position]

    def same_changes(self) -> TensorChanges | None:
        """The changes of every call, known after a replay; None if the tensors vary."""
        if not self.changes:
            return TensorChanges([], [])
        fixed, recipes = self._fixed, self._recipes
        if fixed is None or not all(recipe is None or recipe.is_root for recipe in recipes):
            return None
        values = [*self.pool.selected, *self._large_moved]
        roots = [(root, value, versions, *notes) for root, value, versions, notes in zip(
            fixed.roots, values, self._versions, self._notes, strict=True)]
        made: list[tuple[tuple[int, int] | None, Sequence[tuple[str, object]]]] = [
            (None, ()) if recipe is None else ((recipe.key[0], self._value(recipe.key)), recipe.flags) for recipe in recipes]
        made += [(None, ())] * len(self._nothing)
        gradients = [(tensor, *which) for tensor, which in zip(fixed.graded, made, strict=True)]
        if not all(value is None or tensor._is_holder for tensor, value, _ in gradients):
            return None
        return TensorChanges(roots, gradients)

    def reused(self) -> Mapping[int, Array]:
        """The arrays to reuse, if the tensors are the same in all calls. The caller must hold one reference to the array of
        each overwritten tensor."""
        if not self._reused or self._fixed is None:
            return _NONE
        return self._find_reused([find(source, ())._array for source in self._donor_sources], self._fixed.replaced)

    def _sort_writes(self, program: ReplayProgram, writes: Sequence[Write]) -> list[Write]:
        """The writes, those of small results first."""
        plan = program.plan
        is_large = [plan.sizes[output.number] > self.pool.kept_bytes for output in plan.outputs]
        ordered = sorted(writes, key=lambda write: is_large[write.output])
        self._small = sum(not is_large[write.output] for write in writes)
        self.pool.selected = [write.output for write in ordered[: self._small]]
        self._large_moved = [write.output for write in ordered[self._small :]]
        self._versions = [write.versions for write in ordered]
        self._notes = [(write.notes, write.change) for write in ordered]
        return ordered

    def _gradients(self, results: Results, cleared: Sequence[Source]) -> tuple[list[Source], dict[int, Source]]:
        """The sources of tensors with new gradients; and value -> source of the tensor whose gradient it replaces."""
        recipes = self._recipes = [recipe for _, recipe in results.gradients]
        self._builders = [None if recipe is None else tensor_builder(recipe, self._value) for recipe in recipes]
        graded = [source for source, _ in results.gradients]
        plain = [self._value(recipe.key) for recipe in recipes if recipe is not None and recipe.is_plain]
        self._plain = plain if len(plain) == len(graded) else None
        if self._plain is None or len(self._programs) > 1:  # a missed call must leave gradients as they were
            return graded, {}
        return graded, {value: source for value, source in zip(plain, graded, strict=True) if source in cleared}

    def _choose_reused(
        self, program: ReplayProgram, inputs: Sequence[InputSource], writes: Sequence[Write], replaced: Mapping[int, Source]
    ) -> list[Source]:
        """Choose the large results that overwrite what they replace: the input in the array of the overwritten tensor, if
        donation allows it, or the old gradient. Returns the sources of the tensors with such gradients.
        """
        plan, donors = program.plan, {number: k for k, number in self.pool.donations}
        writers: dict[int, list[Source]] = {}
        for write in writes:
            writers.setdefault(write.output, []).append(write.source)
        # One writer, the input's own tensor: then it alone owns the array, and the result may take its memory.
        over: list[tuple[int, int]] = []
        freed: list[tuple[int, int]] = []
        for value, (_, number, layout, *_) in enumerate(plan.outputs):
            if not layout.is_contiguous or layout.offset or program.nodes[program.outputs[value]].differentiable:
                continue
            if number in donors and writers.get(value) == [inputs[donors[number]].source]:
                over.append((number, donors[number]))
            elif value in replaced and value not in writers and plan.sizes[number] > self.pool.kept_bytes:
                freed.append((number, value))
        self._donors = [k for _, k in over]
        self._donor_sources = [inputs[k].source for k in self._donors]
        self._nodes = [program.nodes[program.outputs[value]] for _, value in freed]
        self._reused = [number for number, _ in (*over, *freed)]
        self._owners = [*[2] * len(over), *[0] * len(freed)]  # of inputs: the tensor, and the list of inputs or a register
        self._sizes = [plan.sizes[number] for number in self._reused]
        return [replaced[value] for _, value in freed]

    def _tensors(self, leaves: Leaves) -> _Tensors:
        """The tensors that a call with these leaves changes."""
        roots, graded, bare, replaced = [[find(source, leaves) for source in sources] for sources in self._sources]
        graded += bare
        arrays, versions, gradients = ["_array"] * len(roots), ["_changes"] * len(roots), ["_grad"] * len(graded)
        return _Tensors(
            roots, graded, replaced, (*roots, *roots, *graded, self), (*arrays, *versions, *gradients, "done"),
            (*roots, *graded, self), (*arrays, *gradients, "done"))

    def replay(self, arrays: list[Array], numbers: Sequence[Scalar], leaves: Leaves) -> Any:
        """Run on these inputs and numbers; returns what the call returns, or FAULT."""
        # Until the native call there is no visible change except replaced gradients, which are lost either way.
        pool, tensors = self.pool, None
        if self.changes:
            tensors = self._fixed or self._tensors(leaves)
        run = pool.take(self._device, self._find_reused(
            [*map(arrays.__getitem__, self._donors)], tensors.replaced) if self._reused and tensors else _NONE)
        results = run.arrays
        temporary = scratch.buffer(self.arena_bytes) if self.arena_bytes else _NO_BYTES
        inputs = arrays if self.inputs is None else map(arrays.__getitem__, self.inputs)
        slots = (*map(_pointer, inputs), *run.addresses, temporary.ptr, *numbers)
        arrays.clear()  # the caller's list must not count as an owner in `_note`
        made: dict[int, Tensor] = {}
        if tensors is None:
            result = self._build(results, leaves, made) if self._looks_first else None
            fault = self.program.run(slots, before=())
        else:
            change = self._change(tensors, run, leaves, made)
            result = self._build(results, leaves, made) if self._looks_first else None
            try:
                fault = self.program.run(slots, before=change.done, undo=change.undone)
            finally:
                if not self.done:
                    self._take_back_notes(change.before, change.noted)
        if fault is not None:
            pool.give_back(run)
            return FAULT
        if tensors is not None and not self._are_holders:
            for tensor in tensors.graded:
                hold_gradient(tensor, tensor._grad)
            self._are_holders = self._fixed is not None  # once is enough if the tensors are the same in every call
        counts["flushes"] += 1
        counts["plan_hits"] += 1
        if not self._looks_first:
            result = self._build(results, leaves, made)
        pool.give_back(run)
        return result

    def _change(self, tensors: _Tensors, run: Run, leaves: Leaves, made: dict[int, Tensor]) -> _Change:
        """Prepare the changes of the run."""
        roots, graded, _, changing, names, restored, restored_names = tensors
        results, pool = run.arrays, self.pool
        before = tuple([root._array for root in roots])
        moved = run.selected
        if self._large_moved:
            moved = (*moved, *[results[k] for k in self._large_moved])
        noted = self._note(before, moved, pool.idle[-1] if pool.idle else None) if before else ()
        versions = [root._changes + times for root, times in zip(roots, self._versions, strict=True)]
        # Applied in one C call: an interrupt comes before all of it, or after the program.
        news = *moved, *versions, *self._made(results, leaves, made), *self._nothing, True
        undo = map(setattr, restored, restored_names, (*before, *self._lost(graded), False)) if self._can_fail else ()
        return _Change(before, noted, map(setattr, changing, names, news), undo)

    def _find_reused(self, found: list[Array], replaced: Sequence[Tensor]) -> dict[int, Array]:
        """The arrays that results overwrite, by the number of the result's buffer: of the inputs `found`, and of replaced
        gradients, which are lost."""
        found += self._lose_gradients(replaced)
        # The backward of an earlier trace refers to a buffer that has an origin.
        return {number: array for number, array, may_be in zip(
            self._reused, found, reusable(found, self._owners, self._sizes), strict=True)
            if may_be and array.memory.buffer.origin is None}  # type: ignore[union-attr]

    def _lose_gradients(self, replaced: Sequence[Tensor]) -> list[Array]:
        """Take the arrays of the gradients of these tensors; an empty array where the new one cannot overwrite it."""
        gradients = [tensor._grad for tensor in replaced]
        any(map(setattr, replaced, repeat("_grad"), repeat(None)))
        return [
            _NOTHING if gradient is None or (array := gradient._array).memory is None
            or (array.node is not node and unlike(array.node, node)) else array
            for gradient, node in zip(gradients, self._nodes, strict=True)]

    def _made(self, results: Sequence[Array], leaves: Leaves, made: dict[int, Tensor]) -> list[Tensor | None]:
        """The new gradients."""
        if self._plain is None:
            return [None if build is None else build(results, leaves, made) for build in self._builders]
        gradients: list[Tensor | None] = []
        for k in self._plain:
            gradient = _new(Tensor)
            gradient._array, gradient._requires_grad, gradient._keeps_derivation = results[k], False, True
            gradients.append(gradient)
        return gradients

    def _lost(self, graded: Sequence[Tensor]) -> list[Tensor | None]:
        """The gradients to restore if the program fails: some are lost already."""
        return [None if gone else tensor._grad for tensor, gone in zip(graded, self._gone, strict=True)]

    def _note(self, before: Sequence[Array], moved: Sequence[Array], previous: Run | None) -> Sequence[int]:
        """Notify backwards that still have to read overwritten arrays. Returns the indices of those notified.

        Small results of the previous run with no owner but their tensor are skipped, as nothing else can read them. Then the
        owners of the array are that run (three times), the tensor and `before`; those of its memory are that run (twice) and
        the array.
        """
        passed, few = 0, self._small
        if previous is not None and (ours := previous.selected) == before[:few] and (
            sum(map(reference_count, ours)) == few * (IN_LIST + 4)
            and sum(map(reference_count, [*map(_memory, ours)])) == few * (IN_LIST + 3)
        ):
            if few == len(before):
                return ()
            passed = few
        noted = [k for k in range(passed, len(before)) if before[k] is not moved[k]]
        for k in noted:
            times, change = self._notes[k]
            for _ in range(times):
                note(before[k], change)
        return noted

    def _take_back_notes(self, before: Sequence[Array], noted: Sequence[int]) -> None:
        """Undo `_note`: nothing was overwritten."""
        for k in noted:
            times, change = self._notes[k]
            take_back_notes(before[k], None, times, change)
