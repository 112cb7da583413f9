"""The sources of a recorded call's tensors, and of its programs' inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from genesis.capture.record.records import InputSource, Source, State, Write
from genesis.capture.replay.program import Program
from genesis.tensor.handle import Tensor, root_of
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Array, Trace


class SourceTable:
    """The tensors and arrays that a recorder knows, and their sources.

    Attributes:
        states: the tensors from before the call.
        gradients: a gradient -> the tensor that had it.
        inputs: the tensor that an input of a trace was read from, and its array then.
        outputs: the id of an array -> the program that computed it, and its position there.
        values: those of `outputs` that backward may continue from, by trace; another array may be a copy of one.
        constants: the id of a buffer -> the array in it that was made from Python data.
    """

    def __init__(self) -> None:
        self.states: dict[Tensor, State] = {}
        self.gradients: dict[Tensor, Tensor] = {}
        self.inputs: dict[tuple[Trace, int], tuple[Tensor, Array]] = {}
        self.outputs: dict[int, tuple[int, int]] = {}
        self.values: dict[tuple[Trace, int], tuple[int, int]] = {}
        self.constants: dict[int, Array] = {}
        self._kept: dict[int, Array] = {}  # copies of them, by the id of the array

    def made_from_python(self, array: Array) -> None:
        """`array`, which owns its memory, was made from Python data."""
        assert array.memory is not None
        self.constants[id(array.memory.buffer)] = array

    def constant_of(self, array: Array) -> Array | None:
        """The constant that `array` is, or is a view of."""
        memory = array.memory
        made = None if memory is None else self.constants.get(id(memory.buffer))
        same = made is not None and memory is not None and made.memory is not None and made.memory.buffer is memory.buffer
        return made if same else None

    def kept(self, array: Array) -> Array | None:
        """A copy of a constant, or of a view of one, that the record owns, as the user may write to the tensor. None for
        another array."""
        made = self.constant_of(array)
        if made is None or array.memory is None:
            return None
        whole = self._kept.get(id(made))
        if whole is None:
            whole = self._kept[id(made)] = copied(made)
        assert whole.memory is not None
        if array is made:
            return whole
        return Array(None, -1, array.node, Memory(whole.memory.buffer, array.memory.layout, array.node.dtype))

    def release(self) -> None:
        """Drop all data."""
        for table in (self.states, self.inputs, self.gradients, self.constants, self.outputs, self.values, self._kept):
            table.clear()  # type: ignore[attr-defined]

    def source_of(self, tensor: Tensor) -> Source | None:
        """The source of a tensor that existed before the call."""
        state = self.states.get(tensor)
        if state is None or state.source is not None:
            return None if state is None else state.source
        owner = self.gradients.get(tensor)
        if owner is not None and (source := self.source_of(owner)) is not None:
            self.states[owner].reads_gradient = True
            state.label, state.source = f"the gradient of {self.states[owner].label}", ("gradient", source)
        else:
            for view, other in self.states.items():
                if other.base is tensor and view is not tensor and other.source is not None:
                    state.label, state.source = f"the storage of {other.label}", ("base", other.source)
                    break
        return state.source

    def source_of_array(self, array: Array) -> Source | None:
        """The source of a program's result, or of what a tensor had before the call."""
        if id(array) in self.outputs:
            return "output", *self.outputs[id(array)]
        found = (self.source_of(tensor) for tensor, state in self.states.items() if state.array is array)
        return next(filter(None, found), None)

    def seal(self, program: Program, later: Sequence[Program], refuse: Callable[[str], None]) -> None:
        """At the end of the call: find the sources of what a program writes; versions rise with the last write."""
        following = {root for one in later for root, _ in one.written}
        writes = []
        for root, index in program.written:
            state, source = self.states[root], self.source_of(root)
            if source is None:
                refuse(f"a tensor of shape {root.shape} is written that no argument, name or attribute leads to")
                continue
            assert state.array.memory is not None
            final, change = root not in following, state.array.memory.buffer.change
            rise, notes = (root._changes - state.version, state.notes) if final else (0, 0)
            writes.append(Write(source, program.plan.number_of[index], rise, notes, change and change.again()))
        program.seal(writes)

    def input_source_of(self, trace: Trace, position: int, array: Array) -> InputSource | None:
        """The source of an input, with what backward continues from; None if there is none."""
        if id(array) in self.outputs:
            return InputSource(("output", *self.outputs[id(array)]))
        if (constant := self.kept(array)) is not None:
            return InputSource(("constant", constant))
        tensor, original = self.inputs.get((trace, position), (None, array))
        if id(original) in self.outputs:
            return InputSource(("output", *self.outputs[id(original)]))
        # An input that NumPy may write to was copied as it entered the trace; a replay must copy it, too.
        memory = original.memory
        assert memory is not None
        is_copied = array.memory is not memory
        state = None if tensor is None else self.states.get(tensor)
        if tensor is not None and state is not None and state.array is original:
            source = self.source_of(tensor)
            if source is not None:
                return InputSource(source, None, is_copied)
        source = self.source_of_array(original)  # of another tensor for it
        if source is not None:
            return InputSource(source, None, is_copied)
        return None if tensor is None else self._view_source_of(tensor, array, memory, is_copied)

    def _view_source_of(self, tensor: Tensor, array: Array, memory: Memory, is_copied: bool) -> InputSource | None:
        """The source of a view that the call made: a part of a program's result, or of its root's memory."""
        root, derived = root_of(tensor), None
        if array.node.differentiable and array.trace is not None:  # values saved by an earlier program have no trace
            derived = self.values.get((array.trace, array.index))
            if derived is None:  # from before the call, re-read from its root's memory, as a replay will do
                source = None if root is tensor else self.source_of(tensor)
                return None if source is None else InputSource(source, None, is_copied)
        for whole, source in self._wholes_of(root) if root.dtype is array.node.dtype else ():
            if source is not None and whole.buffer is memory.buffer:
                at = memory.layout._replace(offset=memory.layout.offset - whole.layout.offset)
                return InputSource(source, at, is_copied, derived)
        return None

    def _wholes_of(self, root: Tensor) -> Iterator[tuple[Memory, Source | None]]:
        """A root's present memory, if a program computed it, and its memory from before the call, each with its source."""
        computed, state = self.outputs.get(id(root._array)), self.states.get(root)
        if computed is not None and root._array.memory is not None:
            yield root._array.memory, ("output", *computed)
        if state is not None and state.array.memory is not None:
            yield state.array.memory, self.source_of(root)


def copied(array: Array) -> Array:
    """A copy of `array` in memory of its own, with the same derivation."""
    node, memory = array.node, array.memory
    assert memory is not None
    return Array(array.trace, array.index, node, memory.copied(node.dtype, memory.buffer.device))
