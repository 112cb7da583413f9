"""A node: one call, one argument or one attribute of a traced module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from genesis.as_torch.stand_ins._utils import _assert
from genesis.tensor.handle import Tensor

Argument = Any  # a node, a number, a string, .. or tuples, lists, dicts and slices of these
KINDS = "placeholder", "get_attr", "call_function", "call_module", "call_method", "output"
Target = Any  # of `call_function` a function, else a name


class Owner(Protocol):
    """The graph of a node, as far as the node needs it."""

    _nodes: list[Node]


def map_arg(argument: Argument, function: Callable[[Node], Argument]) -> Argument:
    """An argument with `function` applied to each node in it."""
    return map_aggregate(argument, lambda leaf: function(leaf) if isinstance(leaf, Node) else leaf)


def map_aggregate(argument: Argument, function: Callable[[Any], Argument]) -> Argument:
    """An argument with `function` applied to each leaf: anything but a tuple, list, dict or slice."""
    if isinstance(argument, tuple):
        made = [map_aggregate(each, function) for each in argument]
        return type(argument)(*made) if hasattr(argument, "_fields") else tuple(made)
    if isinstance(argument, list):
        return [map_aggregate(each, function) for each in argument]
    if isinstance(argument, dict):
        return {key: map_aggregate(each, function) for key, each in argument.items()}
    if isinstance(argument, slice):
        return slice(*[map_aggregate(each, function) for each in (argument.start, argument.stop, argument.step)])
    return function(argument)


class Node:
    """A node of a graph.

    Attributes:
        op: "placeholder", "get_attr", "call_function", "call_module", "call_method" or "output".
        target: the callee, or the name of the attribute or argument.
        args, kwargs: the arguments, with nodes for values; assigning them updates `users`.
        users: the nodes that use this one, in order.
        meta: annotations of passes.
    """

    def __init__(
        self, graph: Owner, name: str, op: str, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in KINDS:
            raise ValueError(f"Node: op is {op!r}; want one of {', '.join(KINDS)}")
        if not (callable(target) if op == "call_function" else isinstance(target, str)):
            wanted = "a function" if op == "call_function" else "a name"
            raise ValueError(f"Node: target of a {op} is {target!r}; want {wanted}")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._set(args, kwargs)

    def _set(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        for node in self.all_input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs = args, kwargs
        for node in self.all_input_nodes:
            node.users[self] = None

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set(tuple(args), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The named arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set(self._args, dict(kwargs))

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments, each once."""
        found: dict[Node, None] = {}
        map_arg((self._args, self._kwargs), lambda node: found.setdefault(node))
        return [*found]

    # ---- order ----
    @property
    def next(self) -> Node:
        """The node after this one."""
        nodes = self.graph._nodes
        return nodes[nodes.index(self) + 1]

    @property
    def prev(self) -> Node:
        """The node before this one."""
        nodes = self.graph._nodes
        return nodes[nodes.index(self) - 1]

    def prepend(self, node: Node, after: int = 0) -> None:
        """Move a node to just before this one. Nothing happens to itself."""
        if node is not self:
            self.graph._nodes.remove(node)
            self.graph._nodes.insert(self.graph._nodes.index(self) + after, node)

    def append(self, node: Node) -> None:
        """Move a node to just after this one."""
        self.prepend(node, 1)

    # ---- changes ----
    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True
    ) -> list[Node]:
        """Replace this node by another in its users; returns those that changed."""
        users = [user for user in self.users if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace `old_input` by `new_input` in the arguments."""
        args, kwargs = map_arg((self._args, self._kwargs), lambda node: new_input if node is old_input else node)
        self._set(args, kwargs)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace a positional argument."""
        self.args = (*self._args[:idx], arg, *self._args[idx + 1 :])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace a named argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def is_impure(self) -> bool:
        """Whether it is kept without users: arguments, assertions and the output are."""
        return self.op in ("placeholder", "output") or self.target is _assert

    def format_node(self) -> str:
        """The node as a line of `print(graph)`."""
        if self.op == "output":
            return f"return {self._args[0]}"
        target = self.target if isinstance(self.target, str) else function_path(self.target)
        annotation = "" if self.type is None else f"{type_name(self.type)} "
        begin = f"%{self.name} : {annotation}[num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "placeholder":
            return begin + (f"(default={self._args[0]})" if self._args else "")
        return begin if self.op == "get_attr" else f"{begin}(args = {_shown(self._args)}, kwargs = {_shown(self._kwargs)})"

    def __repr__(self) -> str:
        return self.name


def _shown(argument: Argument) -> str:
    """An argument as PyTorch prints it: strings without quotes, nodes with `%` except in slices."""
    if isinstance(argument, dict):
        return f"{{{', '.join([f'{key}: {_shown(value)}' for key, value in argument.items()])}}}"
    if isinstance(argument, list | tuple):
        members = ", ".join(map(_shown, argument))
        return f"[{members}]" if isinstance(argument, list) else f"({members}{',' * (len(argument) == 1)})"
    return f"%{argument.name}" if isinstance(argument, Node) else str(argument)


def type_name(kind: Any) -> str:
    """An annotation as text."""
    if isinstance(kind, type) and not hasattr(kind, "__origin__"):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return f"torch.{kind.__name__}" if issubclass(kind, Tensor) else f"{kind.__module__}.{kind.__qualname__}"
    return repr(kind)


def function_path(function: Any) -> str:
    """A function's module and name."""
    module = getattr(function, "__module__", "") or ""
    name = getattr(function, "__qualname__", getattr(function, "__name__", repr(function)))
    return f"{'operator' if module == '_operator' else module}.{name}".lstrip(".").replace("genesis.", "torch.")
