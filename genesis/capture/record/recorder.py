"""The recorder: what the programs of a traced call read and write, and where a replay finds it.

Dispatch, storage, autograd and optimizers report through hooks what a trace does not show: which tensor an input was read from,
which tensors are overwritten, where numbers come from.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from genesis.capture.guards.python_state import Guards
from genesis.capture.record.reads import UNREACHED, Looks
from genesis.capture.record.records import InputSource, Refusal, Settings, Source, State, signed
from genesis.capture.record.steps import ScheduleStep, UpdateStep, is_literal, steps_not_taken
from genesis.capture.replay.program import Program
from genesis.execution.flush import FLUSH_HOOKS, flush_all
from genesis.execution.plan import Plan
from genesis.execution.realize import realize
from genesis.ir.annotations import Attributes, Options, Tree
from genesis.optim.lr_scheduler import LRScheduler
from genesis.optim.optimizer import Optimizer
from genesis.pytree import leaves_of
from genesis.runtime import rng
from genesis.runtime.devices import META
from genesis.tensor.composite import differentiated
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.traced_number import Number, plain
from genesis.tensor.view_memory import array_in_root
from genesis.tracing.memory import Memory
from genesis.tracing.recording_hooks import unwatched
from genesis.tracing.source_line import resolve_line, user_line
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Array, Trace


class Recorder(Looks):
    """The record of one call in this thread; a context manager."""

    def __init__(
        self, fullgraph: bool = False, returns_items: bool = False, undoable: bool = False, compares: bool = True
    ) -> None:
        super().__init__(fullgraph, returns_items, compares)
        self._undoable = undoable  # keep what the call overwrites, so that `take_back` can restore it
        # ---- what happened ----
        self.steps: list[UpdateStep | ScheduleStep] = []  # of optimizers and schedulers
        self.states, self.gradients = self.sources.states, self.sources.gradients
        self.inputs, self.outputs = self.sources.inputs, self.sources.outputs
        self.made_from_python = self.sources.made_from_python
        self._handles: list[Array] = []  # on the programs' results: `outputs` has them by their ids, so they must stay alive
        # ---- what a check compares ----
        self.guards = Guards(self.refuse, self._reach, self._add_argument)
        self.guards.enter(Tensor, "Tensor")
        self.arguments: Any = None
        self.pinned: set[int] = set()  # leaves that are also reached by name: replays hold for that very tensor
        self.fixed: set[Source] = set()  # numbers that Python looked at: replays hold for this value
        self.wholes: set[Source] = set()  # tensors that are read, written or viewed: the layouts of views matter
        self.fills = False  # the call filled a dict, perhaps a cache that the next call finds filled
        # ---- numbers ----
        self._scalar_sources: dict[tuple[Trace, int], Source] = {}  # by the position in `trace.scalars`
        self._random = rng.get_state()  # before the call
        self._draws = False

    def __enter__(self) -> Recorder:
        if thread_state.recorder is not self:  # modes are entered twice
            flush_all()
            self._random = rng.get_state()
            hooks = FLUSH_HOOKS
            hooks += [self._on_flush]  # no call from here on, and so no interrupt
            thread_state.recorder = self
        return self

    def __exit__(self, *problem: object) -> None:
        thread_state.recorder = None  # first, as an interrupt may cut the rest short; a second exit follows
        FLUSH_HOOKS[:] = [hook for hook in FLUSH_HOOKS if hook != self._on_flush]
        if problem[0] is not None:
            self.release()

    def take_back(self) -> None:
        """Undo the call's effect on tensors, optimizers, schedulers and random numbers."""
        for step in reversed(self.steps):
            step.take_back()
        for tensor, state in self.states.items():
            tensor._array, tensor._requires_grad, tensor._grad = state.array, state.requires_grad, state.gradient
            tensor._changes += 1  # so that views re-read
        rng.set_state(self._random)

    def take_back_steps(self) -> None:
        """After a failure undo the steps whose writes are undone. If that is all of them, parameters have again the gradients
        that they had accumulated before the call, which it would not have cleared."""
        undone = steps_not_taken(self.steps, UpdateStep.is_undone)
        for index in undone:
            self.steps[index].take_back()
        if undone and len(undone) == len(self.steps):
            for tensor, state in self.states.items():
                if tensor._grad is None and state.reads_gradient:
                    tensor._grad = state.gradient

    def release(self) -> None:
        """Drop all data: the recorder is part of reference cycles, which are collected late."""
        for state in self.states.values():
            state.release()
        if self.arguments is not None:
            self.arguments.put_back()  # again, as an interrupt may have cut the first time short
        self.arguments = None
        self.sources.release()
        for table in (self._handles, self.numbers, self._found):
            table.clear()  # type: ignore[attr-defined]

    # ---- hooks (see tracing/recording_hooks.py) ----

    def input_entered(self, trace: Trace, tensor: Tensor, array: Array) -> None:
        """`array`, the present or a former array of `tensor`, becomes an input of `trace`."""
        self.inputs[trace, trace.entered[array]] = tensor, array
        self._register(tensor)

    def storage_written(self, root: Tensor) -> None:
        """`root` is about to be overwritten."""
        self._register(root)
        memory = root._array.memory
        if memory is not None and memory.buffer.shared:
            self.refuse("memory that NumPy sees is written to")

    def touched_gradient(self, tensor: Tensor, reads: bool) -> None:
        """`.grad` is read, or replaced unread."""
        state = self._register(tensor)
        if state is not None and state.reads_gradient is None:
            state.reads_gradient = reads
            if reads and state.gradient is not None and state.gradient._base is not None:
                self._register(state.gradient, True)  # guards compare whose memory it views
            # Nothing will read the old gradient. Dropped here, its memory can serve the new one, as in an uncompiled call.
            if not (reads or self._undoable or state.gradient is None):
                if self.gradients.get(state.gradient) is tensor:  # several tensors may share a gradient
                    del self.gradients[state.gradient]
                state.gradient = None

    def same_value(self, made: Array, array: Array) -> None:
        """`made` is the computed value of `array` without its derivation."""
        if id(array) in self.outputs:
            self.outputs[id(made)] = self.outputs[id(array)]
            self._handles.append(made)

    def python_data(self, data: Tree) -> Tree:
        """The data of a new tensor, as plain numbers."""
        if any(isinstance(leaf, np.ndarray) for leaf in leaves_of(data)):
            self.refuse("the values of a NumPy array are read")
        return plain(data)

    def scalar(self, trace: Trace, number: Number) -> int:
        """The position in `trace` of a number that each replay sets."""
        index = trace.enter_scalar(number.value)
        self._scalar_sources[trace, len(trace.scalars) - 1] = number.source
        return index

    def fix(self, source: Source) -> None:
        """Python reads a number: replays hold for this value only."""
        if source[0] == "result":
            for operand in source[2:]:
                self.fix(operand)
        elif source[0] == "leaf":
            self.fixed.add(source)
        elif source[0] != "given":
            self.refuse("a number that changes from call to call is looked at")

    def numbers_drawn(self, start: int) -> tuple[Number, Number]:
        """The seed and the start of random numbers just reserved, as numbers that each replay sets."""
        self._draws = True
        seed = Number(signed(rng.initial_seed()), ("seed",), self)
        return seed, Number(signed(start), ("draw", start - self._random[1]), self)

    def depends_on(self, thing: object) -> None:
        """The call depends on the attributes of an object of the library, to which names of its code may not lead."""
        self.guards.enter(thing, type(thing).__name__)

    @unwatched
    def optimizer_used(self, optimizer: Optimizer) -> None:
        """An optimizer is about to check which of its parameters have gradients."""
        self.guards.enter(optimizer, type(optimizer).__name__)
        for group in optimizer.param_groups:
            self.guards.enter(group["params"], f"the parameters of {type(optimizer).__name__}")

    @unwatched
    def optimizer_updates(
        self, optimizer: Optimizer, group: Attributes, parameters: list[Tensor], settings: Settings
    ) -> Settings:
        """The settings of an update of `parameters`; those that may change are numbers that each replay sets."""
        number, step = len(self.steps), UpdateStep(optimizer, group, parameters, settings)
        self.steps.append(step)
        step.guard(self.guards, parameters)
        name = type(optimizer).__name__
        for tensor in map(differentiated, (*parameters, *step.kept)):
            self._reach(tensor, f"a tensor of {name}")
            if tensor not in self.states:
                self.refuse("an optimizer makes its state")
        return tuple([
            value if is_literal(value) else Number(value, ("setting", number, k), self) for k, value in enumerate(settings)
        ])

    def scheduled(self, scheduler: LRScheduler, arguments: Options) -> None:
        """A scheduler takes a step."""
        if any(isinstance(value, Tensor) for value in arguments.values()):
            self.refuse("a scheduler looks at a value")
        self.steps.append(ScheduleStep(scheduler, {k: plain(v) for k, v in arguments.items()}))

    # ---- tensors ----

    def _reach(self, tensor: Tensor, label: str) -> None:
        state = self._register(tensor, True)
        if state is None:
            return
        if state.source is None:
            state.label, state.source = label, ("tensor", state)
            for name in state.extras:
                self.guards.visit(f"{self.guards.constant(tensor)}.{name}", vars(tensor)[name], f"{label}.{name}")
        elif state.source[0] == "leaf":
            self.pinned.add(state.source[1])

    def _add_argument(self, expression: str, tensor: Tensor, label: str) -> None:
        """A name refers to `tensor`, which becomes another argument unless the call made it."""
        if self._register(tensor, True) is not None:
            self.argument(tensor, self.arguments.leaf(expression, tensor, label), label)

    def argument(self, tensor: Tensor, leaf: int, label: str = "") -> None:
        """`tensor` is a leaf of the arguments."""
        state = self._register(tensor, True)
        assert state is not None, "it is from before the call"
        if state.source is None:
            state.label, state.source = label or f"argument {leaf}", ("leaf", leaf)
            if state.extras:
                self.refuse(f"{state.label} has attributes of its own: {', '.join(state.extras)}")
        elif state.source != ("leaf", leaf):
            self.pinned.add(leaf)

    def _register(self, tensor: Tensor, reached: bool = False) -> State | None:
        """The state of a tensor from before the call; None for one that the call made.

        A view that no known name reaches is assumed to be made by the call; its root is not.
        """
        state = self.states.get(tensor)
        if state is not None:
            return state
        base = None if tensor._base is None else root_of(tensor)
        array = tensor._array if base is None or base._changes != tensor._seen else array_in_root(tensor, base)
        # This thread's traces were flushed before the call, so pending tensors and results of its programs are its own.
        if array.memory is None and array.trace not in thread_state.traces.values():
            realize(array)
        if array.memory is None or id(array) in self.outputs or self.sources.constant_of(array) is not None:
            return None
        if base is not None:
            self._register(base)
            if not reached:
                return None
        state = self.states[tensor] = State.of(tensor)
        if state.gradient is not None:
            self.gradients[state.gradient] = tensor
        return state

    def _input_source_of(self, trace: Trace, position: int, array: Array) -> InputSource:
        source = self.sources.input_source_of(trace, position, array)
        if source is None:
            reason = f"a tensor of shape {array.node.shape} is read {UNREACHED}"
            self.refusals.append(Refusal(reason, trace.line_of(position + 1)))
            return InputSource(("constant", array))
        return source

    # ---- programs ----

    def references(self) -> Counter[int]:
        """The recorder's own references to each array, which must not prevent its memory from being reused."""
        if self._undoable:
            return Counter()
        arrays = [state.array for state in self.states.values()] + [array for _, array in self.inputs.values()]
        return Counter(map(id, arrays + self._handles))

    def gave_away(self, array: Array) -> None:
        """The memory of `array`, which has no other owner, is about to be overwritten: keep only a description of it."""
        if not self._undoable:
            assert array.memory is not None
            array.memory = Memory(array.memory.buffer.former(), array.memory.layout, array.node.dtype)

    def _on_flush(self, trace: Trace, plan: Plan | None) -> None:
        # Flushes of other threads, and repeated flushes of a trace that backward reads, are no programs of this call.
        if thread_state.recorder is not self or thread_state.traces.get(trace.device.name) is not trace or plan is None:
            return
        if trace.device is META:  # there is no program; the recording is refused already
            return
        number, handles = len(self.programs), trace.run.handles
        for array in handles:
            self.outputs[id(array)] = number, array.index
            if array.node.differentiable:
                self.sources.values[trace, array.index] = number, array.index
            self._handles.append(array)
        if plan.keeps:
            self._check_backward(trace)
        self.programs.append(Program(
            trace, plan, list(dict.fromkeys([array.index for array in handles])), resolve_line(*user_line()),
            [self._input_source_of(trace, position, array) for position, array in trace.input_at.items()],
            [(k, self._scalar_sources[trace, k]) for k in range(len(trace.scalars)) if (trace, k) in self._scalar_sources],
            [(i, source) for i, leaf in trace.variables.items() if plan.keeps and (source := self.sources.source_of(leaf))],
            [(root, root._array.index) for root in self.states if root._array.trace is trace],
        ))

    def _check_backward(self, trace: Trace) -> None:
        """Refuse a call after which a backward would need what replays do not make."""
        state = trace.backward
        if state.hooks or state.custom_calls or state.node_hooks or state.retained:
            self.refuse("backward, after the call, is to ask Python (a hook or a custom Function)")
        if any(self.sources.source_of(leaf) is None for leaf in trace.variables.values()):
            self.refuse("backward, after the call, is to reach a leaf that the call made")

    def draws(self) -> int | None:
        """At the end of the call: how far it has moved the random numbers' counter; None if it has drawn none."""
        (seed, start), (seed_now, end) = self._random, rng.get_state()
        if seed_now != seed or end < start:
            self.refuse("it sets the state of random numbers")
        return end - start if self._draws else None

    def note_late_writes(self) -> None:
        """At the end of the call: attribute writes of values that were computed already to the programs that computed them."""
        for root, state in self.states.items():
            if root._base is not None or root._array is state.array or id(root._array) not in self.outputs:
                continue
            number, index = self.outputs[id(root._array)]
            if any(root is written for program in self.programs[number + 1 :] for written, _ in program.written):
                self.refuse("a tensor is written over with what was computed before it was last written")
            written = self.programs[number].written
            written[:] = [*[write for write in written if write[0] is not root], (root, index)]
