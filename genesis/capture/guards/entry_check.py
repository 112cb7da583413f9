"""The check of an entry: arguments, Python's state, then the tensors that are read and written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from genesis.capture.guards.lines import check_function
from genesis.capture.guards.tensor_guards import LABELS, TensorGuard, guarded_arrays, unlike
from genesis.capture.record.arguments import Arguments
from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import InputSource, Source, State, hooks_of
from genesis.execution.realize import realize
from genesis.ir.annotations import AnyFunction
from genesis.ir.graph import Node
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor


def leaves_check(recorder: Recorder, arguments: Arguments) -> AnyFunction:
    """The function of (args, kwargs) that returns the leaves, or the number of the line that fails."""
    leaves = "".join(f"a{j}, " for j in range(len(arguments.leaves)))
    return check_function("def check(args, kwargs):", arguments.lines, [f"return ({leaves})"], {**recorder.guards.constants})


class EntryCheck(NamedTuple):
    """The check of an entry.

    Attributes:
        make: compiles the function of (args, kwargs) that returns (arrays of `given`, leaves), or the number of the guard that
            failed. A recorded call that cannot be replayed needs none.
        parts: its lines, including those for Python's state, in order, and the constants of each part.
        inputs: expressions for the arrays.
        leaves: the number of leaves `a0`, `a1`, ..
    """

    make: Callable[[], AnyFunction]
    parts: Sequence[tuple[Sequence[str], Mapping[str, object]]]
    inputs: list[str]
    leaves: int


class Check:
    """Makes the check of a recorded call."""

    def __init__(self, recorder: Recorder, arguments: Arguments) -> None:
        self.recorder = recorder
        self.guards = recorder.guards
        self.arguments = arguments
        self.lines: list[str] = []
        self._fail_if = partial(self.guards.fail_if, lines=self.lines)
        self._names: dict[Source, str] = {}
        self._arrays: dict[str, str] = {}
        self._states: dict[Source, State] = {}
        self._roots: set[str] = set()  # names of tensors that are guarded not to be views
        self._written = {write.source for program in recorder.programs for write in program.writes}
        self._keeps = any(program.plan.keeps for program in recorder.programs)

    def made(self, given: Mapping[InputSource, int]) -> EntryCheck:
        # The order matters: lines use names bound by earlier ones, and memory comes last, as it may flush a trace.
        self._leaves()
        self._containers()
        found = [(self.recorder.sources.source_of(tensor), state) for tensor, state in self.recorder.states.items()]
        self._states = {source: state for source, state in found if source is not None}
        self._same()
        self._sharing()
        self._one_input()
        sources = [one.source for one in given]
        # Tensors whose memory matters: those read, written, or viewed by a result.
        read = dict.fromkeys([*sources, *filter(self.recorder.wholes.__contains__, self._states)])
        slots = {source: k for k, source in enumerate(filter(self._is_plain, dict.fromkeys([*read, *self._states])))}
        for source in self._states:
            if source not in slots:
                self._state(source)
        for source in read:
            if source not in slots:
                self._memory(source)
        if slots:
            rows = self.guards.constant([self._guard(source, source in read) for source in slots])
            self.lines.append(f"if (h := guarded_arrays({rows})).__class__ is int: return h")
        inputs = [f"h[{slots[source]}]" if source in slots else self._arrays[self._tensor(source)] for source in sources]
        lines = [*self.lines]
        leaves = "".join(f"a{j}, " for j in range(len(self.arguments.leaves)))
        self.lines.append(f"return [{', '.join(inputs)}], ({leaves})")
        helpers: dict[str, object] = {
            "array_of": array_of, "realize": realize, "unlike": unlike, "hooks_of": hooks_of,
            "failing": self.guards.failing, "guarded_arrays": guarded_arrays,
        }
        guarded = "if (v := failing()) is not None: return v"
        constants = self.guards.constants
        names = {**constants, **helpers}
        make = partial(check_function, "def check(args, kwargs):", [*self.arguments.lines, guarded], self.lines, names)
        parts = [(self.arguments.lines, constants), (self.guards.state_lines, constants), (lines, names)]
        return EntryCheck(make, parts, inputs, len(self.arguments.leaves))

    def _leaves(self) -> None:
        """Guard the numbers among the arguments, and which of their tensors are views."""
        for j, value in enumerate(self.arguments.leaves):
            if not isinstance(value, Tensor):
                self._number(j, value)
        for j, value in enumerate(self.arguments.leaves):
            if isinstance(value, Tensor) and value._base is None:
                self._roots.add(f"a{j}")
                self._fail_if(f"a{j}._base is not None", f"whether {self.arguments.labels[j]} is a view")

    def _containers(self) -> None:
        """Guard which containers are objects that names lead to, and that others are distinct, if the call could tell."""
        free: dict[type, list[str]] = {}
        compares = self.guards.seen.compares
        for name, value in self.arguments.containers.values():
            kind = type(value)
            if issubclass(kind, tuple) and not compares:
                continue
            if self.guards.has_entered(value):
                self._fail_if(f"{name} is not {self.guards.constant(value)}", f"the {kind.__name__} that is given")
            elif compares or kind not in (list, dict):
                free.setdefault(kind, []).append(name)
        for kind, names in free.items():
            held = [one for one in self.guards.constants.values() if type(one) is kind and self.guards.has_entered(one)]
            self._distinct(names, f"which {kind.__name__} is given", held)

    def _is_plain(self, source: Source) -> bool:
        state = self._states[source]
        return source[0] == "tensor" and state.base is None and not any(state.hooks) and not state.reads_gradient

    def _guard(self, source: Source, is_read: bool) -> TensorGuard:
        tensor, state = self._states[source].tensor, self._states[source]
        number = len(self.guards.labels)
        self.guards.labels += [label.format(state.label) for label in LABELS]
        return TensorGuard(
            tensor, self._node(state), state.requires_grad, _asks_hooks(state), is_read,
            state.array.memory.strides, self._is_private(state), number)  # type: ignore[union-attr]

    def _is_private(self, state: State) -> bool:
        """Whether NumPy must not see the memory: it is overwritten, or saved for a later backward without a copy."""
        return state.source in self._written or (
            self._keeps and not state.array.memory.buffer.shared)  # type: ignore[union-attr]

    def _number(self, j: int, value: object) -> None:
        if j not in self.arguments.numbers or ("leaf", j) in self.recorder.fixed:
            name = self.guards.constant(value)
            self._fail_if(f"a{j} is not {name} and differs(a{j}, {name})", self.arguments.labels[j])
        elif type(value) is int:
            self._fail_if(f"not {-(1 << 63)} <= a{j} < {1 << 63}", self.arguments.labels[j])

    def _same(self) -> None:
        """Guard which arguments, and tensors reached by name, are the same tensor."""
        first: dict[int, int] = {}
        labels = self.arguments.labels
        for j, tensor in enumerate(self.arguments.leaves):
            if isinstance(tensor, Tensor):
                i = first.setdefault(id(tensor), j)
                if i != j:
                    self._fail_if(f"a{j} is not a{i}", f"whether {labels[j]} is {labels[i]}")
                elif j in self.recorder.pinned:
                    self._fail_if(f"a{j} is not {self.guards.constant(tensor)}", f"which tensor {labels[j]} is")

    def _sharing(self) -> None:
        """Guard which tensors share storage, that is, a root: a write to one would be seen through the others.

        Roots held by the entry are the same in every call. Other tensors are arguments, gradients and views, whose root may be
        one of these.
        """
        held = {state.tensor for source, state in self._states.items() if source[0] == "tensor" and state.base is None}
        roots: dict[Tensor, list[str]] = {}  # root -> the names that lead to it
        views: dict[Tensor, list[str]] = {}
        for source in [source for source in self._states if not self._is_plain(source)]:
            state, root = self._states[source], self._tensor(source)
            if state.base is not None:
                views.setdefault(state.base, []).append(root)
                root = self._tensor(("base", source))
            if root not in self._roots:
                self._fail_if(f"{root}._base is not None", f"whether {state.label} is a view")
                self._roots.add(root)
            if state.base is not None or source[0] != "tensor":
                roots.setdefault(state.tensor if state.base is None else state.base, []).append(root)
        for base, names in roots.items():
            first = self.guards.constant(base) if base in held else names[0]
            for name in dict.fromkeys(names):
                if name != first:
                    self._fail_if(f"{name} is not {first}", "which tensors share storage")
            self._distinct(views.get(base, []), "which views are one tensor")
        self._distinct([names[0] for base, names in roots.items() if base not in held], "which tensors share storage", held)

    def _distinct(self, names: Sequence[str], label: str, held: Collection[object] = ()) -> None:
        """Guard that names refer to distinct objects, none of which is held."""
        ids = f"{{{', '.join(f'id({name})' for name in names)}}}"
        if len(names) > 1:
            self._fail_if(f"len(v := {ids}) != {len(names)}", label)
        if names and held:
            others = self.guards.constant(frozenset(map(id, held)))
            self._fail_if(f"id({names[0]}) in {others}" if len(names) == 1 else f"not v.isdisjoint({others})", label)

    def _one_input(self) -> None:
        """Guard that roots which shared one array share one again, if it was read: the program has one input for all of them.

        Examples are the gradients of the two terms of a sum. A write outside the call separates them.
        """
        read = {id(array) for _, array in self.recorder.inputs.values()}
        holders: dict[int, list[Source]] = {}
        for source, state in self._states.items():
            if state.base is None and id(state.array) in read:
                holders.setdefault(id(state.array), []).append(source)
        for first, *others in holders.values():
            for source in others:
                self._fail_if(
                    f"{self._tensor(source)}._array is not {self._tensor(first)}._array",
                    f"whether {self._states[first].label} and {self._states[source].label} are one value")

    def _tensor(self, source: Source) -> str:
        """The name, in the check, of the tensor that `source` finds."""
        if source in self._names:
            return self._names[source]
        kind, value = source
        if kind == "leaf":
            name = f"a{value}"
        elif kind == "tensor":
            name = self.guards.constant(value.tensor)
        else:
            owner = self._tensor(value)
            name = f"s{len(self._names)}"
            self.lines.append(f"{name} = {owner}._{'grad' if kind == 'gradient' else 'base'}")
            self._fail_if(f"{name} is None", f"whether there is a {kind}")
        self._names[source] = name
        return name

    def _node(self, state: State) -> Node:
        # An overwritten tensor has the program's own node from now on: guarding that one lets the identity test succeed.
        after = state.tensor._array.node
        return state.array.node if unlike(after, state.array.node) else after

    def _state(self, source: Source) -> None:
        name, state = self._tensor(source), self._states[source]
        label, tensor = state.label, state.tensor
        array = f"b{len(self._arrays)}"
        self._arrays[name] = array
        self.lines.append(f"{array} = {name}._array" if name in self._roots else f"{array} = array_of({name})")
        node = self.guards.constant(self._node(state))
        self._fail_if(f"{array}.node is not {node} and unlike({array}.node, {node})", f"the shape or dtype of {label}")
        self._fail_if(f"{name}._requires_grad is not {state.requires_grad}", f"requires_grad of {label}")
        if state.base is not None:
            whole = self.recorder.sources.source_of(state.base) in self.recorder.wholes
            part, layout = ("", tensor.storage_layout) if whole else (".strides", tensor.storage_layout.strides)
            self._fail_if(f"{name}.storage_layout{part} != {self.guards.constant(layout)}", f"the layout of {label}")
            self._fail_if(f"{name}._element_map != {tensor._element_map!r}", f"whether {label} is lazily conjugated")
        if _asks_hooks(state):
            hooks = self.guards.constant(state.hooks)
            bare = not any(state.hooks)
            self._fail_if(
                f"{name}._hooks or {name}._post_hooks or {name}._node_hooks is not None" if bare
                else f"hooks_of({name}) != {hooks}", f"the hooks of {label}")
        if state.reads_gradient:
            known = None if state.gradient is None else self.recorder.sources.source_of(state.gradient)
            self._fail_if(
                f"({name}._grad is None) is not {state.gradient is None}" if known in (None, ("gradient", source))
                else f"{name}._grad is not {self._tensor(known)}", f"the gradient of {label}")

    def _memory(self, source: Source) -> None:
        name, state = self._tensor(source), self._states[source]
        memory = state.array.memory
        assert memory is not None
        found, array = f"m{len(self.lines)}", self._arrays[name]
        if state.base is not None:  # computed together with its root, it may have separate memory
            self.lines += [f"if {array}.memory is None:", f"    realize({array})", f"    {array} = array_of({name})"]
        self.lines.append(f"{found} = {array}.memory or realize({array})")
        self._fail_if(f"{found}.strides != {self.guards.constant(memory.strides)}", f"the strides of {state.label}")
        if self._is_private(state):
            self._fail_if(f"{found}.buffer.shared", f"whether NumPy sees the memory of {state.label}")


def _asks_hooks(state: State) -> bool:
    return state.requires_grad and not state.array.node.differentiable
