"""The check of an entry: guards, then what the tensors that are read and written have to be like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from genesis.capture.arguments import Arguments
from genesis.capture.recorder import Recorder
from genesis.capture.records import Given, State, hooks_of
from genesis.dispatch import array_of
from genesis.execute import realize
from genesis.ir.graph import Node
from genesis.tensor import Tensor

__all__ = ["check_of", "leaves_check"]


def leaves_check(recorder: Recorder, arguments: Arguments) -> Callable[..., Any]:
    """The function of (args, kwargs) that returns the leaves, or the number of the line that does not hold."""
    leaves = "".join(f"a{j}, " for j in range(len(arguments.leaves)))
    return recorder.guards.function("def check(args, kwargs):", arguments.lines, [f"return ({leaves})"])


def check_of(recorder: Recorder, arguments: Arguments, given: Mapping[Given, int]) -> Callable[..., Any]:
    """The function of (args, kwargs) that returns (arrays of `given`, leaves), or the number of the guard that failed."""
    return _Check(recorder, arguments).function(given)


class _Check:
    def __init__(self, recorder: Recorder, arguments: Arguments) -> None:
        self.recorder = recorder
        self.guards = recorder.guards
        self.arguments = arguments
        self.lines: list[str] = []
        self._names: dict[Any, str] = {}
        self._arrays: dict[str, str] = {}
        self._states: dict[Any, State] = {}

    def function(self, given: Mapping[Given, int]) -> Callable[..., Any]:
        for j, value in enumerate(self.arguments.leaves):
            if not isinstance(value, Tensor):
                self._number(j, value)
        self._distinct()
        for tensor, state in self.recorder.states.items():
            source = self.recorder.source_of(tensor)
            if source is not None:
                self._state(source, tensor, state)
        for one in given:
            self._memory(one.source)
        arrays = ", ".join(self._arrays[self._tensor(g.source)] for g in given)
        leaves = "".join(f"a{j}, " for j in range(len(self.arguments.leaves)))
        self.lines.append(f"return [{arrays}], ({leaves})")
        helpers = {"array_of": array_of, "realize": realize, "unlike": _unlike, "hooks_of": hooks_of}
        lines = [*self.arguments.lines, *self.guards.lines]
        return self.guards.function("def check(args, kwargs):", lines, self.lines, helpers)

    def _fail_if(self, condition: str, label: str) -> None:
        self.lines.append(f"if {condition}: return {len(self.guards.labels)}")
        self.guards.labels.append(label)

    def _number(self, j: int, value: Any) -> None:
        if j not in self.arguments.numbers or ("leaf", j) in self.recorder.fixed:
            name = self.guards.constant(value)
            self._fail_if(f"a{j} is not {name} and differs(a{j}, {name})", f"the number that is leaf {j}")
        elif type(value) is int:
            self._fail_if(f"not {-(1 << 63)} <= a{j} < {1 << 63}", f"the number that is leaf {j}")

    def _distinct(self) -> None:
        """Which arguments are one tensor, and that none is a tensor which the function has from elsewhere."""
        places = {j: t for j, t in enumerate(self.arguments.leaves) if isinstance(t, Tensor)}
        first: dict[int, int] = {}
        for j, tensor in places.items():
            i = first.setdefault(id(tensor), j)
            if i != j:
                self._fail_if(f"a{j} is not a{i}", f"that leaf {j} is leaf {i}")
            elif j in self.recorder.pinned:
                self._fail_if(f"a{j} is not {self.guards.constant(tensor)}", f"the tensor that is leaf {j}")
        apart = [*first.values()]
        if len(apart) > 1:
            self._fail_if(f"len({{{', '.join(f'id(a{j})' for j in apart)}}}) != {len(apart)}", "which arguments are one tensor")
        held = [t for t, s in self.recorder.states.items() if s.source is not None and s.source[0] == "held"]
        roots = {id(t if t._base is None else t._base) for t in held}
        if roots:
            name = self.guards.constant(frozenset(roots))
            for j in apart:
                if j not in self.recorder.pinned:
                    self._fail_if(f"id(a{j} if a{j}._base is None else a{j}._base) in {name}", f"where leaf {j} is stored")
        if any(p.writes for p in self.recorder.programs) and len(apart) > 1:
            stored = ", ".join(f"id(a{j} if a{j}._base is None else a{j}._base)" for j in apart)
            self._fail_if(f"len({{{stored}}}) != {len(apart)}", "which arguments share storage")

    def _tensor(self, source: Any) -> str:
        """The name of the tensor that `source` finds."""
        if source in self._names:
            return self._names[source]
        kind, value = source
        if kind == "leaf":
            name = f"a{value}"
        elif kind == "held":
            name = self.guards.constant(value.tensor)
        else:
            name = f"s{len(self._names)}"
            self.lines.append(f"{name} = {self._tensor(value)}._{'grad' if kind == 'gradient' else 'base'}")
            self._fail_if(f"{name} is None", f"whether there is a {kind}")
        self._names[source] = name
        return name

    def _state(self, source: Any, tensor: Tensor, state: State) -> None:
        name, label = self._tensor(source), state.label
        self._states[source] = state
        array = f"b{len(self._arrays)}"
        self._arrays[name] = array
        self.lines.append(f"{array} = {name}._array if {name}._base is None else array_of({name})")
        after = tensor._array.node  # what it will hold from now on, if the call writes it
        node = self.guards.constant(state.array.node if _unlike(after, state.array.node) else after)
        self._fail_if(f"{array}.node is not {node} and unlike({array}.node, {node})", f"the shape or dtype of {label}")
        self._fail_if(f"{name}._requires_grad is not {state.requires_grad}", f"requires_grad of {label}")
        self._fail_if(f"({name}._base is None) is not {state.base is None}", f"whether {label} is a view")
        if state.base is not None:
            whole = self.recorder.source_of(state.base) in self.recorder.wholes
            part, layout = ("", tensor.layout) if whole else (".strides", tensor.layout.strides)
            self._fail_if(f"{name}.layout{part} != {self.guards.constant(layout)}", f"the layout of {label}")
        if state.requires_grad and not state.array.node.differentiable:
            hooks = self.guards.constant(state.hooks)
            bare = not any(state.hooks)
            self._fail_if(
                f"{name}._hooks or {name}._post_hooks or {name}._node_hooks is not None" if bare
                else f"hooks_of({name}) != {hooks}", f"the hooks of {label}")
        if state.reads_gradient:
            self._fail_if(f"({name}._grad is None) is not {state.gradient is None}", f"whether {label} has a gradient")

    def _memory(self, source: Any) -> None:
        name, state = self._tensor(source), self._states[source]
        memory = state.array.memory
        assert memory is not None
        found = f"m{len(self.lines)}"
        self.lines.append(f"{found} = {self._arrays[name]}.memory or realize({self._arrays[name]})")
        self._fail_if(f"{found}.strides != {self.guards.constant(memory.strides)}", f"the strides of {state.label}")
        if any(root is state.tensor for p in self.recorder.programs for root, _ in p.writes):
            self._fail_if(f"{found}.buffer.shared", f"whether NumPy sees the memory of {state.label}")


def _unlike(now: Node, then: Node) -> bool:
    return now.shape != then.shape or now.dtype is not then.dtype or now.differentiable != then.differentiable

