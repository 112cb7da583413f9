"""Interpreters: run graphs node by node, or transform them."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from genesis.as_torch.fx.graph import Graph
from genesis.as_torch.fx.graph_module import GraphModule
from genesis.as_torch.fx.node import Node, map_arg
from genesis.as_torch.fx.proxy import Proxy
from genesis.as_torch.fx.tracer import GraphAppendingTracer
from genesis.nn.module import Module


class Interpreter:
    """Runs a graph module's nodes one by one, each by the method named like its `op`; subclasses override these.

    >>> from genesis.as_torch.fx import Interpreter, symbolic_trace
    >>> Interpreter(symbolic_trace(lambda x: x * 2)).run(genesis.ones(1))
    tensor([2.])
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph: Graph = graph or module.graph  # type: ignore[assignment, attr-defined]
        self.env: dict[Node, Any] = {}
        self.garbage_collect_values = garbage_collect_values
        self.args_iter: Iterator[Any] = iter(())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The output for these arguments."""
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        last = {operand: node for node in self.graph.nodes for operand in node.all_input_nodes}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for operand in node.all_input_nodes:
                    if last[operand] is node:
                        del self.env[operand]
        return None

    def run_node(self, n: Node) -> Any:
        """The value of a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A node's arguments, with values for nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with values for nodes."""
        return map_arg(args, lambda node: self.env[node])

    def fetch_attr(self, target: str) -> Any:
        """The module's attribute at a path."""
        return attrgetter(target)(self.module)

    # ---- kinds of nodes ----
    def placeholder(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument or its default. Raises RuntimeError without either."""
        if target.startswith("*"):
            return [*self.args_iter]
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from None

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function's result."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A method's result."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A layer's result."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The return value."""
        return args[0]


def _recorded(kind: str) -> Any:
    def method(self: Transformer, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call in the new graph."""
        return self.tracer.create_proxy(kind, target, args, kwargs)

    return method


class Transformer(Interpreter):
    """Runs a graph on proxies, and records the calls of its methods in a new graph module."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = GraphAppendingTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An argument of the new graph."""
        return self.tracer.proxy(self.new_graph.placeholder(target, default_value=next(iter(args), ...)))

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """A tensor of the module."""
        return self.tracer.proxy(self.new_graph.get_attr(target))

    call_function, call_method, call_module = map(_recorded, ("call_function", "call_method", "call_module"))

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        result = super().run()
        if result is not None:
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph)
