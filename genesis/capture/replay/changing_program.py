"""The last program of a call that changes tensors: which tensors they are, and what their new values may overwrite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

from genesis.capture.guards.tensor_guards import unlike
from genesis.capture.record.records import Source, Write
from genesis.capture.record.results import Recipe, Results, find
from genesis.capture.replay.host_program import HostProgram
from genesis.capture.replay.program import Program
from genesis.execution.result_pool import reusable
from genesis.ir.dtypes import float32
from genesis.ops.layout import contiguous_layout
from genesis.runtime.memory import Buffer
from genesis.tensor.bare_root import update_bare_root
from genesis.tensor.handle import Tensor, hold_gradient
from genesis.tracing.trace import Array

_NOTHING = Array.realized(Buffer(0), contiguous_layout((0,)), float32)  # no result has its size


class TensorChanges(NamedTuple):
    """The changes of every call, if the tensors are the same in all calls.

    Attributes:
        roots: the tensors that are overwritten, and how.
        gradients: the tensors with a new gradient, and that; None for no gradient.
    """

    roots: list[tuple[Tensor, Write]]
    gradients: list[tuple[Tensor, Recipe | None]]


def assign(
    roots: Sequence[Tensor], arrays: Sequence[Array], rises: Sequence[int], graded: Sequence[tuple[Tensor, Tensor | None]],
    *commits: object,
) -> None:
    """Give roots their new arrays and raise their versions, give others new gradients, or none, and mark what is committed:
    all or nothing, as no interrupt splits one C call."""
    count, tensors = len(roots), [tensor for tensor, _ in graded]
    names = [*["_array"] * count, *["_changes"] * count, *["_grad"] * len(graded), *["done"] * len(commits)]
    versions = [root._changes + rise for root, rise in zip(roots, rises, strict=True)]
    news = [*arrays, *versions, *[gradient for _, gradient in graded], *[True] * len(commits)]
    any(map(setattr, [*roots, *roots, *tensors, *commits], names, news))
    for root in roots:
        update_bare_root(root)
    for tensor, gradient in graded:
        if not tensor._is_holder:
            hold_gradient(tensor, gradient)


class ChangingProgram(HostProgram):
    """The last program of a call, the tensors that it overwrites, and its new gradients.

    `earlier` programs, which change nothing, may compute some of its inputs and gradients.
    """

    def __init__(
        self, program: Program, cleared: Sequence[Source], results: Results, earlier: Sequence[HostProgram]
    ) -> None:
        super().__init__(program)
        self.pool = program.pool
        self._programs = [*earlier, self]
        self._writes = sorted(program.writes, key=self._is_large)  # those of small results first
        self.pool.selected = [write.output for write in self._writes if not self._is_large(write)]
        graded, replaced = self._gradients(results, cleared)
        freed = self._choose_reused(program, replaced)
        bare = [source for source in cleared if source not in graded]
        self._recipes += [None] * len(bare)
        sources = [write.source for write in self._writes], [*graded, *bare], freed
        self._changes: TensorChanges | None = None
        if all(source[0] == "tensor" for part in sources for source in part):
            roots, tensors, self._replaced = [[find(source, ()) for source in part] for part in sources]
            self._changes = TensorChanges([*zip(roots, self._writes, strict=True)], [*zip(tensors, self._recipes, strict=True)])

    def _value(self, key: tuple[int, int]) -> int:
        """The number of the value at (program, position)."""
        program, position = key
        return self._programs[program].value_at[position]

    def same_changes(self) -> TensorChanges | None:
        """The changes of every call, known after a replay; None if the tensors vary."""
        changes = self._changes
        is_same = changes is not None and all(
            recipe is None or (recipe.is_root and tensor._is_holder) for tensor, recipe in changes.gradients
        ) and not any(root._array.node.differentiable for root, _ in changes.roots)
        return changes if is_same else None

    def reused(self) -> Mapping[int, Array]:
        """The arrays that results overwrite, by the number of the result's buffer: of inputs, and of replaced gradients, which
        are lost. The caller must hold one reference to the array of each overwritten tensor."""
        if not self._reused or self._changes is None:
            return {}
        found = [find(source, ())._array for source in self._donor_sources]
        found += self._lose_gradients(self._replaced)
        # The backward of an earlier trace refers to a buffer that has an origin.
        return {number: array for number, array, may_be in zip(
            self._reused, found, reusable(found, self._owners, self._sizes), strict=True)
            if may_be and array.memory.buffer.origin is None}  # type: ignore[union-attr]

    def _is_large(self, write: Write) -> bool:
        plan = self.recorded.plan
        return plan.sizes[plan.outputs[write.output].number] > self.pool.kept_bytes

    def _gradients(self, results: Results, cleared: Sequence[Source]) -> tuple[list[Source], dict[int, Source]]:
        """The sources of tensors with new gradients; and value -> source of the tensor whose gradient it replaces."""
        self._recipes: list[Recipe | None] = [recipe for _, recipe in results.gradients]
        graded = [source for source, _ in results.gradients]
        plain = [self._value(recipe.key) for recipe in self._recipes if recipe is not None and recipe.is_plain]
        if len(plain) < len(graded) or len(self._programs) > 1:  # a missed call must leave gradients as they were
            return graded, {}
        return graded, {value: source for value, source in zip(plain, graded, strict=True) if source in cleared}

    def _choose_reused(self, program: Program, replaced: Mapping[int, Source]) -> list[Source]:
        """Choose the large results that overwrite what they replace: the input in the array of the overwritten tensor, if
        donation allows it, or the old gradient. Returns the sources of the tensors with such gradients.
        """
        plan, inputs, donors = program.plan, program.inputs, {number: k for k, number in self.pool.donations}
        writers: dict[int, list[Source]] = {}
        for write in self._writes:
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
        self._donor_sources = [inputs[k].source for _, k in over]
        self._nodes = [program.nodes[program.outputs[value]] for _, value in freed]
        self._reused = [number for number, _ in (*over, *freed)]
        self._owners = [*[2] * len(over), *[0] * len(freed)]  # of inputs: the tensor and a register
        self._sizes = [plan.sizes[number] for number in self._reused]
        return [replaced[value] for _, value in freed]

    def _lose_gradients(self, replaced: Sequence[Tensor]) -> list[Array]:
        """Take the arrays of the gradients of these tensors; an empty array where the new one cannot overwrite it."""
        gradients = [tensor._grad for tensor in replaced]
        any(map(setattr, replaced, repeat("_grad"), repeat(None)))
        return [
            _NOTHING if gradient is None or (array := gradient._array).memory is None
            or (array.node is not node and unlike(array.node, node)) else array
            for gradient, node in zip(gradients, self._nodes, strict=True)]
