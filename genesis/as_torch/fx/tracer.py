"""The tracer: runs a module's `forward` on proxies, and records the calls with them."""

from __future__ import annotations

import functools
import inspect
import operator
import threading
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from genesis.as_torch.fx.graph import Graph
from genesis.as_torch.fx.graph_module import GraphModule
from genesis.as_torch.fx.node import Argument, Node, map_aggregate
from genesis.as_torch.fx.proxy import Proxy, proxies_in
from genesis.as_torch.stand_ins._utils import _assert
from genesis.functions.public_names import function_named
from genesis.ir.annotations import AnyFunction, Options
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor.call_modes import FunctionMode, add_overriding_class, remove_overriding_class
from genesis.tensor.handle import Tensor

einsum = function_named("einsum")
_lock = threading.RLock()  # `Module.__call__` is that of one tracer at a time
_wrapped: list[tuple[dict[str, Any], str]] = []  # globals of modules, and names in them, of functions that become nodes


def wrap(fn_or_name: str | AnyFunction) -> Any:
    """Record calls with proxies of this function, or of the caller's global of this name, as nodes."""
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    _wrapped.append((frame.f_back.f_globals, name))
    return fn_or_name


class _Calls(FunctionMode):
    """Records calls of tensor functions with proxies as nodes."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def intercept(self, function: AnyFunction, args: Sequence[Any], kwargs: Options) -> Any:
        if _varies((args, kwargs)):
            return self._tracer.create_proxy("call_function", function, tuple(args), dict(kwargs))
        return function(*args, **kwargs)


def _varies(given: Argument) -> bool:
    """Whether there are proxies among arguments, or parameters, whose values are others in later calls of the graph."""
    found: list[object] = []
    map_aggregate(given, lambda leaf: found.append(leaf) if isinstance(leaf, Proxy | Parameter) else None)
    return bool(found)


class Tracer:
    """Traces a module or a function into a graph. The library's layers become calls; the user's modules are traced into.

    >>> from genesis.as_torch.fx import Tracer
    >>> [node.op for node in Tracer().trace(genesis.nn.Sequential(genesis.nn.Linear(2, 2), genesis.nn.ReLU())).nodes]
    ['placeholder', 'call_module', 'call_module', 'output']
    """

    graph: Graph
    root: Module
    traced_func_name = "forward"  # the method that is traced

    def __init__(self, autowrap_modules: Any = (), autowrap_functions: Any = (), param_shapes_constant: bool = False) -> None:
        self._constants: dict[int, str] = {}
        members = [value for module in autowrap_modules for name, value in vars(module).items() if name[0] != "_"]
        self._autowrapped = [each for each in (*members, *autowrap_functions) if callable(each)]

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module becomes one node: those of `nn` except Sequential."""
        return type(m).__module__.startswith(("genesis.nn", "torch.nn")) and type(m).__name__ != "Sequential"

    def path_of_module(self, mod: Module) -> str:
        """The path of a module in the root. Raises NameError for one that is not in it."""
        for path, module in self.root.named_modules():
            if module is mod:
                return path
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call of a module within the traced one."""
        path = self.path_of_module(m)
        return forward(*args, **kwargs) if not self.is_leaf_module(m, path) else (
            self.create_proxy("call_module", path, args, kwargs))

    # ---- nodes ----
    def create_arg(self, a: Any) -> Argument:
        """An argument of a node: nodes for proxies, paths for tensors of the root, constants for other tensors."""
        return map_aggregate(a, self._leaf)

    def _leaf(self, leaf: Any) -> Argument:
        if isinstance(leaf, Proxy):
            return leaf.node
        if isinstance(leaf, Tensor):
            return self.graph.get_attr(self._path_of(leaf))
        return leaf

    def _path_of(self, tensor: Tensor) -> str:
        named = self.root.named_parameters() if isinstance(tensor, Parameter) else self.root.named_buffers()
        for path, member in named:
            if member is tensor:
                return path
        if id(tensor) not in self._constants:
            name = f"_tensor_constant{len(self._constants)}"
            self._constants[id(tensor)] = name
            setattr(self.root, name, tensor)
        return self._constants[id(tensor)]

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """A node of the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def create_proxy(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A new node's proxy."""
        if target is einsum and len(args) == 2 and isinstance(args[1], list | tuple):
            args = (args[0], *args[1])  # what modes and classes see of PyTorch's
        args, kwargs = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        return self.proxy(self.create_node(kind, target, args, kwargs, name, type_expr))

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    # ---- tracing ----
    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's method, or of a function; `concrete_args` are the only values of some arguments."""
        self.root = root if isinstance(root, Module) else Module()
        forward = getattr(type(root), self.traced_func_name).__get__(root) if isinstance(root, Module) else root
        self.graph = Graph(tracer_cls=type(self))
        args, kwargs = self._arguments(forward, concrete_args or {})
        with _lock:
            plain = Module.__call__
            own = getattr(forward, "__globals__", {})
            chosen = [(own, name) for name, value in own.items() if any(value is each for each in self._autowrapped)]
            globals_before = [(names, name, names[name]) for names, name in [*_wrapped, *chosen] if name in names]
            for names, name, function in globals_before:
                names[name] = self._noted(function)
            Module.__call__ = self._module_call(plain)  # type: ignore[method-assign]
            try:
                with _Calls(self):
                    result = _without_stars(forward)(*args, **kwargs)
            finally:
                Module.__call__ = plain  # type: ignore[method-assign]
                for names, name, function in reversed(globals_before):
                    names[name] = function
        self.graph.output(self.create_arg(result))
        return self.graph

    def _arguments(self, forward: Callable[..., Any], concrete: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        is_ours = forward.__module__.startswith("genesis.")  # whose annotations PyTorch's layers have not
        declared = inspect.signature(forward).parameters.items()
        starred_kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        for name, parameter in sorted(declared, key=lambda item: item[1].kind in starred_kinds):
            starred = "*" * {parameter.VAR_POSITIONAL: 1, parameter.VAR_KEYWORD: 2}.get(parameter.kind, 0)  # type: ignore[call-overload]
            default = () if parameter.default is parameter.empty else (parameter.default,)
            told = not (is_ours or starred or parameter.annotation is parameter.empty or name in concrete)
            kind = parameter.annotation if told else None
            target = f"{starred}{name}" + "_1" * (name in concrete)
            value = self.create_proxy("placeholder", target, default, {}, type_expr=kind)
            if name in concrete:
                given, value = value, concrete[name]
                if value is None or isinstance(value, bool | int | float | str):
                    is_given = operator.is_ if value is None else operator.eq
                    assumed = self.create_proxy("call_function", is_given, (given, value), {})
                    self.create_proxy("call_function", _assert, (assumed, f"{name} is not {value}, as it was traced"), {})
            if starred or parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        return args, kwargs

    def _module_call(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            if not proxies_in((args, kwargs)) and all([module is not own for own in self.root.modules()]):
                return plain(module, *args, **kwargs)
            return self.call_module(module, module.forward, args, kwargs)

        return call

    def _noted(self, function: AnyFunction) -> AnyFunction:
        @functools.wraps(function)
        def noted(*args: Any, **kwargs: Any) -> Any:
            if proxies_in((args, kwargs)):
                return self.create_proxy("call_function", function, args, kwargs)
            return function(*args, **kwargs)

        return noted


def _without_stars(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose `*args` and `**kwargs` are arguments like others, so that one proxy can stand for each."""
    starred = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    code = getattr(function, "__code__", None)
    if code is None or not code.co_flags & starred or hasattr(function, "__wrapped__"):  # whose signature is another function's
        return function
    count = code.co_argcount + code.co_kwonlyargcount + (code.co_flags & starred).bit_count()
    plain = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~starred)
    own = getattr(function, "__func__", function)
    made = FunctionType(plain, own.__globals__, own.__name__, None, own.__closure__)
    return made.__get__(function.__self__) if own is not function else made  # type: ignore[attr-defined]


class GraphAppendingTracer(Tracer):
    """Appends all calls with its proxies to a graph; no module is traced."""

    _live = 0  # as long as there are some, each call asks whether it is one with proxies

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph, self.root = graph, Module()
        with _lock:
            GraphAppendingTracer._live += 1
            add_overriding_class(Proxy)
        weakref.finalize(self, self._left)

    @staticmethod
    def _left() -> None:
        with _lock:
            GraphAppendingTracer._live -= 1
            if not GraphAppendingTracer._live:
                remove_overriding_class(Proxy)


Proxy.appending = GraphAppendingTracer


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module with the graph of the calls of `root`.

    Raises TraceError if control flow depends on values of tensors.

    >>> from genesis.as_torch.fx import symbolic_trace
    >>> traced = symbolic_trace(lambda x: genesis.relu(x) + 1)
    >>> traced(genesis.tensor([-1.0, 2.0]))
    tensor([1., 3.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)
