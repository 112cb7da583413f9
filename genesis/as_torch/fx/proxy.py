"""Proxies: placeholders for values while a function is traced. Operations on them become nodes."""

from __future__ import annotations

import dis
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from genesis.as_torch.fx.node import Argument, Node, map_aggregate


class Recorder(Protocol):
    """A tracer, as far as its proxies need it."""

    def create_proxy(self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy: ...


class TraceError(ValueError):
    """A traced function depends on a proxy's value."""


class Proxy:
    """Stands for the value of a node. Without a tracer, operations are appended to the node's graph."""

    appending: Callable[[Any], Recorder]

    def __init__(self, node: Node, tracer: Recorder | None = None) -> None:
        self.node, self.tracer = node, tracer or Proxy.appending(node.graph)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Proxy:
        """The node of a call outside of a trace."""
        return proxies_in((args, kwargs))[0].tracer.create_proxy("call_function", func, tuple(args), kwargs or {})

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        if caller is not None:
            for instruction in dis.get_instructions(caller.f_code):
                if instruction.offset == caller.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                    return iter([self[index] for index in range(int(instruction.argval))])
        raise TraceError("Proxy object cannot be iterated: it stands for a value of unknown length; want x[0], x[1], ..")

    def __bool__(self) -> NoReturn:
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def __len__(self) -> NoReturn:
        raise RuntimeError("'len' is not supported in symbolic tracing; torch.fx.wrap('len') has it be a node")

    __index__ = __int__ = __float__ = __bool__

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    if TYPE_CHECKING:

        def __getitem__(self, index: Any) -> Proxy: ...


class Attribute(Proxy):
    """An attribute of a proxy: a method if called; otherwise a node, created when it is used."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the attribute's value."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def proxies_in(given: Argument) -> list[Proxy]:
    """The proxies among arguments."""
    found: list[Proxy] = []
    map_aggregate(given, lambda leaf: found.append(leaf) if isinstance(leaf, Proxy) else None)
    return found


def _operator(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Proxy]:
    def method(self: Proxy, *others: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (*others, self) if reflected else (self, *others), {})

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"):
    _function = getattr(operator, _name + "_" if _name in ("and", "or") else _name)
    setattr(Proxy, f"__{_name}__", _operator(_function))
    setattr(Proxy, f"__r{_name}__", _operator(_function, reflected=True))
for _name in ("lt", "le", "eq", "ne", "gt", "ge", "neg", "pos", "invert", "getitem", "abs"):
    setattr(Proxy, f"__{_name}__", _operator(abs if _name == "abs" else getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
