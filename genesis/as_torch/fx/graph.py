"""A graph: a list of nodes, and its Python code."""

from __future__ import annotations

import builtins
import contextlib
import keyword
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import genesis
from genesis.as_torch.fx.node import Argument, Node, Target, function_path, map_aggregate, map_arg, type_name
from genesis.as_torch.stand_ins.overrides import resolve_name
from genesis.ir.dtypes import DType

OPERATORS = {
    operator.add: "{} + {}", operator.sub: "{} - {}", operator.mul: "{} * {}", operator.truediv: "{} / {}",
    operator.floordiv: "{} // {}", operator.mod: "{} % {}", operator.pow: "{} ** {}", operator.matmul: "{} @ {}",
    operator.lt: "{} < {}", operator.le: "{} <= {}", operator.eq: "{} == {}", operator.ne: "{} != {}", operator.gt: "{} > {}",
    operator.ge: "{} >= {}", operator.and_: "{} & {}", operator.or_: "{} | {}", operator.xor: "{} ^ {}",
    operator.neg: "-{}", operator.invert: "~{}", operator.getitem: "{}[{}]", operator.lshift: "{} << {}",
    operator.rshift: "{} >> {}",
}


_GLOBALS: dict[str, Any] = {"torch": genesis, "inf": float("inf"), "nan": float("nan"), "NoneType": type(None)}


class PythonCode(NamedTuple):
    """The source of a function, and the globals that it reads."""

    src: str
    globals: dict[str, Any]


class Graph:
    """Nodes in execution order, from the arguments to the output.

    >>> from genesis.as_torch.fx import Graph
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> output = graph.output(graph.call_function(genesis.relu, (x,)))
    >>> print(graph.python_code("self").src.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        return relu
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._nodes: list[Node] = []
        self._names: dict[str, int] = dict.fromkeys(_GLOBALS, 0)
        self._insert: Callable[[], int] = lambda: len(self._nodes)
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls

    @property
    def nodes(self) -> _Nodes:
        """The nodes, in order; they may change during an iteration."""
        return _Nodes(self)

    # ---- nodes that are added ----
    def create_node(
        self, op: str, target: Target, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
        name: str | None = None, type_expr: Any = None,
    ) -> Node:
        """A node at the insertion point: the end, unless set by `inserting_before` or `inserting_after`."""
        own = self._unique(name or _suggestion(target))
        node = Node(self, own, op, target, tuple(args or ()), dict(kwargs or {}), type_expr)
        self._nodes.insert(self._insert(), node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An argument."""
        return self.create_node("placeholder", name, () if default_value is ... else (default_value,), type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A tensor of the module, by its path."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None, type_expr: Any = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a layer, by its path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """The return value."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """A copy of a node of another graph, with operands mapped by `arg_transform`."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy all nodes of another graph except its output, and note them in `val_map`; returns the output's value."""
        for node in g._nodes:
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            if node not in val_map:
                val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        numbers = {node: _Number(number) for number, node in enumerate(self.nodes)}
        return _of_rows, ([
            (node.op, node.target, *map_arg((node.args, node.kwargs), numbers.__getitem__), node.name, node.type)
            for node in self.nodes],)

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        made = memo[id(self)] = Graph(tracer_cls=self._tracer_cls)
        nodes: dict[Node, Node] = {}
        returned = made.graph_copy(self, nodes, return_output_node=True)
        if returned is not None:
            nodes[returned[1]] = made.output(returned[0], returned[1].type)
        memo.update({id(node): copy for node, copy in nodes.items()})
        return made

    # ---- where they are added, and removed ----
    @contextlib.contextmanager
    def _inserting(self, position: Callable[[], int]) -> Iterator[None]:
        before, self._insert = self._insert, position
        try:
            yield
        finally:
            self._insert = before

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """A context in which nodes are added before this one; before all, if None."""
        return self._inserting(lambda: 0 if n is None else self._nodes.index(n))

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """A context in which nodes are added after this one; at the end, if None."""
        start = len(self._nodes)
        return self._inserting(
            lambda: len(self._nodes) if n is None else self._nodes.index(n) + 1 + max(0, len(self._nodes) - start))

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node. Raises RuntimeError while others use it."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                               f"{[*to_erase.users]}!")
        to_erase.args, to_erase.kwargs = (), {}
        self._nodes.remove(to_erase)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove unused nodes; returns whether there were any."""
        dead = False
        for node in reversed([*self._nodes]):
            if not node.users and not (is_impure_node or Node.is_impure)(node):
                self.erase_node(node)
                dead = True
        return dead

    def find_nodes(self, *, op: str, target: Target = None, sort: bool = True) -> list[Node]:
        """The nodes with this `op`, and this target if given."""
        return [n for n in self._nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The output."""
        return next(n for n in self._nodes if n.op == "output")

    def lint(self) -> None:
        """Raise RuntimeError if a node is used before it is defined, or names are not unique."""
        seen: set[Node] = set()
        for node in self._nodes:
            for operand in node.all_input_nodes:
                if operand not in seen:
                    raise RuntimeError(f"Argument '{operand}' of Node '{node}' was used before it has been defined!")
            seen.add(node)
        if len({node.name for node in self._nodes}) < len(self._nodes):
            raise RuntimeError("Node redefined name!")

    # ---- names and text ----
    def _unique(self, name: str) -> str:
        base, _, number = name.rpartition("_")
        if not (base and number.isdigit()):
            base, number = name, ""
        if name in self._names or keyword.iskeyword(name) or (name in vars(builtins) and not number):
            count = self._names.get(base, 0)
            while (name := f"{base}_{(count := count + 1)}") in self._names:
                pass
            self._names[base] = count
        self._names.setdefault(name, 0)
        return name

    def python_code(self, root_module: str = "self") -> PythonCode:
        """The graph as a function."""
        names = dict(_GLOBALS)
        last = {operand: node for node in self._nodes for operand in node.all_input_nodes}
        arguments, lines = [root_module], []
        for node in self._nodes:
            if node.op == "placeholder":
                default = f" = {_text(node.args[0], names)}" if node.args else ""
                kind = "" if node.type is None else f" : {_global_type(node.type, names)}"
                arguments.append(f"{node.target}{kind}{default}")
                if str(node.target).lstrip("*") != node.name:
                    lines.append(f"{node.name} = {str(node.target).lstrip('*')}")
                continue
            spent = [operand.name for operand, reader in last.items() if reader is node and node.op != "output"]
            returned = node.op == "output"
            text = _text(node.args[0], names) if returned else _called(node, root_module, names)
            line = f"return {text}" if returned else f"{node.name} = {text}"
            lines.append(f"{line};  {' = '.join(spent)} = None" if spent else line)
        body = "\n    ".join(lines or ["pass"])
        return PythonCode(f"\n\n\ndef forward({', '.join(arguments)}):\n    {body}\n    ", names)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")] + [
            (n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self._nodes]
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        for row in rows:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *[node.format_node() for node in self._nodes]])


class _Nodes:
    """The nodes of a graph; iteration goes over a snapshot."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __iter__(self) -> Iterator[Node]:
        return iter([*self._graph._nodes])

    def __reversed__(self) -> Iterator[Node]:
        return iter(self._graph._nodes[::-1])

    def __len__(self) -> int:
        return len(self._graph._nodes)


@dataclass(frozen=True, slots=True)
class _Number:
    """A node in a pickle, by its place in the graph."""

    place: int


def _of_rows(rows: Sequence[tuple[Any, ...]]) -> Graph:
    graph = Graph()
    made: list[Node] = []
    for op, target, args, kwargs, name, kind in rows:
        args, kwargs = map_aggregate((args, kwargs), lambda leaf: made[leaf.place] if isinstance(leaf, _Number) else leaf)
        made.append(graph.create_node(op, target, args, kwargs, name, kind))
    return graph


def _suggestion(target: Target) -> str:
    """A name for a node, after its target, in PyTorch's spelling."""
    text = target if isinstance(target, str) else getattr(target, "__name__", "call").strip("_")
    text = re.sub(r"[^0-9a-zA-Z_]+", "_", text) or "_"
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", text).lower()
    return f"_{snake}" if snake[0].isdigit() else snake


def _called(node: Node, root: str, names: dict[str, Any]) -> str:
    """The expression of a node."""
    args = [_text(a, names) for a in node.args]
    named = [f"{key} = {_text(a, names)}" for key, a in node.kwargs.items()]
    if node.op == "get_attr":
        return _attribute(root, node.target)
    if node.op == "call_module":
        return f"{_attribute(root, node.target)}({', '.join(args + named)})"
    if node.op == "call_method":
        return f"{args[0]}.{node.target}({', '.join(args[1:] + named)})"
    if node.target in OPERATORS and not named and len(args) == OPERATORS[node.target].count("{}"):
        return OPERATORS[node.target].format(*args)
    if node.target is getattr and len(node.args) == 2 and str(node.args[1]).isidentifier():
        return f"{args[0]}.{node.args[1]}"
    return f"{_global(node.target, names)}({', '.join(args + named)})"


def _attribute(root: str, path: str) -> str:
    for part in path.split("."):
        root = f"{root}.{part}" if part.isidentifier() and not keyword.iskeyword(part) else f'getattr({root}, "{part}")'
    return root


def _global(function: Any, names: dict[str, Any]) -> str:
    """The name of a function in the code, noted in `names`."""
    path = resolve_name(function)
    if path is not None and not path.startswith("torch.Tensor."):
        return path
    plain = getattr(function, "__name__", "")
    if getattr(builtins, plain, None) is function:
        return str(plain)
    return _noted(function_path(function), function, names)


def _global_type(kind: Any, names: dict[str, Any]) -> str:
    """The annotation of an argument in the code, noted in `names`."""
    text = type_name(kind)
    return text if getattr(builtins, text, None) is kind or text.startswith("torch.") else _noted(text, kind, names)


def _noted(text: str, value: Any, names: dict[str, Any]) -> str:
    """A name like a text for a value, noted in `names`."""
    name = re.sub(r"\W", "_", text)
    while names.setdefault(name, value) is not value:
        name += "_1"
    return name


def _text(argument: Argument, names: dict[str, Any]) -> str:
    """An argument as Python."""
    if isinstance(argument, dict):
        return f"{{{', '.join([f'{key!r}: {_text(each, names)}' for key, each in argument.items()])}}}"
    if isinstance(argument, slice):
        return f"slice({', '.join([_text(each, names) for each in (argument.start, argument.stop, argument.step)])})"
    if isinstance(argument, list | tuple):
        members = ", ".join([_text(each, names) for each in argument])
        if hasattr(argument, "_fields"):
            return f"{_global(type(argument), names)}({members})"
        return f"[{members}]" if isinstance(argument, list) else f"({members}{',' * (len(argument) == 1)})"
    if isinstance(argument, Node):
        return argument.name
    if argument is None or argument is ... or isinstance(argument, bool | int | float | str | bytes | complex):
        return repr(argument)
    if isinstance(argument, DType):
        return f"torch.{argument.name}"
    if callable(argument):
        return _global(argument, names)
    return _noted(f"_{type(argument).__name__}_{argument}", argument, names)
