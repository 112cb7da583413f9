"""Turns a call into one graph: records the call as `genesis.compile` does, and joins its programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from genesis.capture.record.records import InputSource, Source, SplitError
from genesis.capture.record.results import dict_of, find
from genesis.capture.record.traced_call import RecordedCall, record
from genesis.capture.replay.program import Program
from genesis.ir.annotations import AnyFunction, Options
from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape
from genesis.nn.module import Module
from genesis.ops.layout import Layout
from genesis.ops.registry import Operation
from genesis.pytree import leaves_of, map_tree
from genesis.runtime.notebook import cell_name
from genesis.shipping.trees import Spec, described
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tracing.source_line import line_name
from genesis.tracing.state import grad_mode, thread_state
from genesis.tracing.token import argument_of, arguments_in
from genesis.tracing.trace import Array, CallLine, line_of

Line = tuple[str, int] | None


class ExportError(RuntimeError):
    """A function does something that an exported program cannot repeat."""


class Input(NamedTuple):
    """An input of a graph: a tensor of the arguments ("argument"), a parameter or buffer of a module, or another tensor
    that the function reads ("constant")."""

    kind: str
    name: str
    node: int


class Call(NamedTuple):
    """A call of an operation: its name, the nodes that it added, its positional and named arguments.

    A `Position` among these is a value of the graph.
    """

    operation: str
    nodes: range
    arguments: tuple[Any, ...]
    options: Options


class Position(int):
    """A value of the graph, by its node."""


class CallGraph(NamedTuple):
    """A call's computation: nodes with the user's lines, inputs, and the nodes of results and of updated state.

    `numbers` are those of the graph's scalars; `arguments` and `result` are described as in `trees.py`; `leaves` are shape and
    dtype of the arguments' tensors, `computed` is what the call returned, `names` the names of positional arguments.
    """

    nodes: list[Node]
    lines: list[Line]
    calls: list[Call]
    inputs: list[Input]
    numbers: list[float]
    outputs: list[int]
    written: dict[str, int]
    state: dict[str, Tensor]
    arguments: Spec
    result: Spec
    leaves: list[tuple[Shape, DType]]
    computed: list[Tensor]
    names: list[str]


def graph_of_call(function: AnyFunction, args: tuple[Any, ...], kwargs: Options) -> CallGraph:
    """The graph of `function(*args, **kwargs)`; for a module, without gradients.

    The call runs once, and its side effects on tensors are undone. Raises ExportError, with the user's line, for a call that
    does more than compute: it reads a value, draws random numbers, writes to its arguments or leaves gradients.
    """
    module = function if isinstance(function, Module) else None
    leaves: list[Tensor] = []

    def take(leaf: Any) -> int | None:
        if not isinstance(leaf, Tensor):
            return None
        leaves.append(leaf)
        return len(leaves) - 1

    spec = described([list(args), kwargs], take, "export: the arguments")
    copies = [tensor_of(array_of(leaf.detach().clone()), leaf.requires_grad) for leaf in leaves]  # one input per argument
    remaining = iter(copies)
    args, kwargs = map_tree(lambda leaf: next(remaining) if isinstance(leaf, Tensor) else leaf, (tuple(args), kwargs))
    called, called_with = (function, ()) if module is None else (type(module).__call__, (module,))
    grad = thread_state.grad_enabled and module is None
    with grad_mode(grad):
        try:
            recorded = record(called, (*called_with, *args), kwargs, fullgraph=True, undoable=True)
        except SplitError as problem:
            raise ExportError(str(problem).replace("compile: with fullgraph=True,", "export:")) from problem
    try:
        return _Joined(recorded, module, copies).graph(spec)
    finally:
        recorded.recorder.take_back()
        recorded.recorder.release()


class _Joined:
    """The programs of a recorded call as one graph."""

    def __init__(self, recording: RecordedCall, module: Module | None, leaves: Sequence[Tensor]) -> None:
        self._recorder = recorder = recording.recorder
        lasting = [str(refusal) for refusal in recorder.refusals if not refusal.passes]
        if lasting:
            raise ExportError(f"export: {'; '.join(lasting)}")
        self._results = recording.made.results
        if self._results.gradients:
            raise ExportError("export: the call leaves gradients in `.grad`; want a function that returns what it computes")
        self._arguments = {id(leaf): k for k, leaf in enumerate(leaves)}
        self._leaves = [(leaf.shape, leaf.dtype) for leaf in leaves]
        self._computed = [leaf.detach() for leaf in leaves_of(recording.result) if isinstance(leaf, Tensor)]
        self._names = _names_of(module)
        self._inputs: dict[int, Input] = {}  # by the id of the tensor
        self._constants: dict[int, Input] = {}
        self._arrays: list[Array] = []  # kept alive because their ids are in use
        self.nodes: list[Node] = []
        self.lines: list[Line] = []
        self.calls: list[Call] = []
        self.numbers: list[float] = []
        self.state: dict[str, Tensor] = {}
        self._positions: list[dict[int, int]] = []  # per program: position there -> position here
        self._written: dict[str, int] = {}
        for program in recorder.programs:
            self._join(program)

    def graph(self, arguments: Spec) -> CallGraph:
        """The joined graph, with every argument among the inputs."""
        outputs: list[int] = []
        result = self._result(self._results.tree, outputs)
        inputs = sorted([*self._inputs.values(), *self._constants.values()], key=lambda one: one.node)
        return CallGraph(self.nodes, self.lines, self.calls, inputs, self.numbers, outputs, self._written, self.state,
                         arguments, result, self._leaves, self._computed, [])

    def _add(self, node: Node, line: Line = None) -> int:
        self.nodes.append(node)
        self.lines.append((cell_name(line[0]) or line[0], line[1]) if line else None)  # or a notebook cell
        return len(self.nodes) - 1

    # ---- programs ----
    def _join(self, program: Program) -> None:
        lines = program.lines
        at: dict[int, int] = {}
        self._positions.append(at)
        inputs, slots = iter(program.inputs), dict(program.slots)
        for index, node in enumerate(program.nodes):
            line = line_of(lines, index)
            if node.op == "input":
                at[index] = self._input(next(inputs), line)
            elif node.op == "variable":
                at[index] = at[node.inputs[0]]
            elif node.op == "scalar":
                slot = node.attrs["slot"]
                if slot in slots:
                    reason = _CHANGING.get(slots[slot][0], "a number changes from call to call")
                    raise ExportError(f"export: {reason}{_at(line)}")
                self.numbers.append(program.numbers[slot])
                at[index] = self._add(Node("scalar", (), {**node.attrs, "slot": len(self.numbers) - 1}, (), node.dtype), line)
            else:
                inputs_here = tuple([at[i] for i in node.inputs])
                at[index] = self._add(Node(node.op, inputs_here, node.attrs, node.shape, node.dtype), line)
        self._note_calls(lines, at, len(program.nodes), [node.op for node in program.nodes])
        for write in program.writes:
            tensor, index = find(write.source, self._recorder.arguments.leaves), program.plan.values[write.output]
            if id(tensor) in self._arguments:
                raise ExportError(f"export: an argument is written to{_at(line_of(lines, index))}; want a function that "
                                  "returns what it computes")
            self._written[self._name(tensor, write.source)] = at[index]

    def _note_calls(self, lines: Sequence[CallLine], at: dict[int, int], count: int, ops: Sequence[str]) -> None:
        """Records the calls of operations, from their trace keys."""
        ends = [line[0] for line in lines[1:]] + [count]
        for (start, *_, key), end in zip(lines, ends, strict=True):
            own = [index for index in range(start, end) if ops[index] not in ("input", "variable", "scalar")]
            if not own or not isinstance(key[0], Operation):
                continue
            self.calls.append(_call(key, range(at[own[0]], at[own[-1]] + 1), at))

    def _input(self, found: InputSource, line: Line) -> int:
        kind, *what = found.source
        if kind == "output":
            program, index = what
            whole = self._positions[program][index]
        elif kind == "constant":
            whole = self._constant(what[0])
        else:
            whole = self._tensor(find(found.source, self._recorder.arguments.leaves), found.source)
        return whole if found.within is None else self._view(whole, found.within, line)

    def _view(self, whole: int, layout: Layout, line: Line) -> int:
        attrs = {"label": "view", "shape": layout.shape, "strides": layout.strides, "offset": layout.offset}
        return self._add(Node("view", (whole,), attrs, layout.shape, self.nodes[whole].dtype), line)

    def _tensor(self, tensor: Tensor, source: Source) -> int:
        """The position of a tensor that existed before the call."""
        known = self._inputs.get(id(tensor))
        if known is None:
            argument = self._arguments.get(id(tensor))
            state = self._recorder.states[tensor]
            node = self._add(Node("input", (), {"strides": None}, state.array.node.shape, state.array.node.dtype))
            if argument is not None:
                known = Input("argument", str(argument), node)
            else:
                name = self._name(tensor, source)
                kind = self._names[id(tensor)][0] if id(tensor) in self._names else "constant"
                known = Input(kind, name, node)
                self.state[name] = tensor_of(state.array)
            self._inputs[id(tensor)] = known
        return known.node

    def _name(self, tensor: Tensor, source: Source) -> str:
        if id(tensor) in self._names:
            return self._names[id(tensor)][1]
        label = self._recorder.states[tensor].label.rpartition(" ")[2] or "constant"
        name, number = label, 0
        while name in self.state and id(tensor) not in self._inputs:
            name, number = f"{label}_{number + 1}", number + 1
        return self._inputs[id(tensor)].name if id(tensor) in self._inputs else name

    def _constant(self, array: Array) -> int:
        known = self._constants.get(id(array))
        if known is None:
            self._arrays.append(array)
            node = self._add(Node("input", (), {"strides": None}, array.node.shape, array.node.dtype))
            known = self._constants[id(array)] = Input("constant", f"constant_{len(self._constants)}", node)
            self.state[known.name] = tensor_of(array)
        return known.node

    # ---- results ----
    def _result(self, description: tuple[str, Any], outputs: list[int]) -> Spec:
        how, what = description
        if how in ("made", "found"):
            node = self._made(what) if how == "made" else self._tensor(find(what, self._recorder.arguments.leaves), what)
            outputs.append(node)
            return ["tensor", len(outputs) - 1]
        if how == "same":
            return described(what, lambda leaf: None, "export: the result")
        if how == "leaf":
            return described(self._recorder.arguments.leaves[what], lambda leaf: None, "export: the result")
        if how == "made of":
            make, parts = what
            if make in (list, tuple):
                return [make.__name__, [self._result(part, outputs) for part in parts]]
            if make.func == tuple.__new__:
                return ["tuple", [self._result(part, outputs) for part in parts]]
            if make.func is dict_of:
                return ["dict", [[key, self._result(part, outputs)] for key, part in zip(make.args[0], parts, strict=True)]]
        name = make.args[0].__name__ if how == "made of" else how
        raise ExportError(f"export: a {name} is returned; want tensors, numbers, None, and lists, tuples and dicts of them")

    def _made(self, recipe: Any) -> int:
        if recipe.value is None or recipe.value[0] == "constant":
            if recipe.base is None:
                return self._constant(recipe.value[1])
            root = self._made(recipe.base) if not isinstance(recipe.base, tuple) else self._tensor(
                find(recipe.base, self._recorder.arguments.leaves), recipe.base)
            return self._view(root, recipe.layout, None)
        _, program, index = recipe.value
        return self._positions[program][index]


_CHANGING = {kind: "random numbers are drawn; call eval() on a module with dropout" for kind in ("seed", "draw")} | {
    "setting": "an optimizer takes a step; want a function that returns what it computes"}


def _at(line: Line) -> str:
    return f" (at {line[0]}:{line[1]})" if line else ""


def short(line: Line) -> str:
    """File and line, as in listings."""
    return line_name(line, short=True) if line else ""


def _names_of(module: Module | None) -> dict[int, tuple[str, str]]:
    """id -> (kind, name) of a module's tensors."""
    if module is None:
        return {}
    named = {id(buffer): ("buffer", name) for name, buffer in module.named_buffers()}
    return named | {id(parameter): ("parameter", name) for name, parameter in module.named_parameters()}


def _call(key: tuple[Any, ...], nodes: range, at: dict[int, int]) -> Call:
    """The call of a trace key."""
    tokens, named = arguments_in(key)

    def argument(token: Any) -> Any:
        return argument_of(token, lambda index: Position(at[index]))

    return Call(key[0].name, nodes, tuple(map(argument, tokens)), {name: argument(token) for name, token in named.items()})
