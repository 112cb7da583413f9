"""`torch.library` and `torch.ops`: users' operations, by name. Registrations for compilers have no effect."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Sequence
from types import UnionType
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

import genesis
from genesis.as_torch.missing import Missing, missing
from genesis.as_torch.stand_ins import aten, torchvision
from genesis.as_torch.stand_ins.compiler import returned
from genesis.as_torch.stand_ins.settings import nothing
from genesis.autograd.function import Function
from genesis.ir.annotations import AnyFunction
from genesis.ir.described import Described
from genesis.ir.dtypes import DType
from genesis.pytree import map_tree
from genesis.tensor.handle import Tensor
from genesis.tracing.recording_hooks import depends_on
from genesis.tracing.state import thread_state

_COMPUTES = ("", "default", "cpu", "compositeimplicitautograd", "compositeexplicitautograd")  # keys of what runs on the host
_OWN = {"aten": aten, "torchvision": torchvision}  # modules of operations that genesis has, by the namespace
_PYTORCHS = ("aten", "prim", "prims", "quantized")  # namespaces whose operations are written in C++


class _Registered(Described):
    """What is registered under a name, in any order: rules may come before the function.

    Attributes:
        operation: computes it.
        low: the dtype of its floating operands within `autocast`.
        derived: what runs it, where a rule of its gradient is registered.
    """

    operation: CustomOperation | None = None
    low: DType | None = None
    derived: type[Function] | None = None


_registered: defaultdict[str, _Registered] = defaultdict(_Registered)  # by "namespace::name"


class CustomOperation(Described):
    """A user's operation: a function with a name."""

    def __init__(self, function: AnyFunction, name: str) -> None:
        self.function, self.__name__ = function, name
        self._rules = _registered[name]
        self._rules.operation = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        depends_on(self)
        low, derived = self._rules.low, self._rules.derived
        if low is not None and thread_state.autocast is not None:
            args, kwargs = map_tree(
                lambda x: x.to(low) if isinstance(x, Tensor) and x.is_floating_point() else x, (args, kwargs))
        if derived is None:
            return self.function(*args, **kwargs)
        given = inspect.signature(self.function).bind(*args, **kwargs)
        given.apply_defaults()
        return derived.apply(*given.args, operation=self.function, **given.kwargs)

    def register_autograd(self, backward: AnyFunction, /, *, setup_context: AnyFunction | None = None) -> None:
        """Make `backward(ctx, *gradients)` its gradient rule; see `register_autograd`."""
        register_autograd(self.__name__, backward, setup_context=setup_context)

    @property
    def default(self) -> CustomOperation:
        """The only overload."""
        return self

    def register_fake(self, function: Any = None, /) -> Any:
        """Returns the function unchanged: shapes are found by running the operation."""
        return returned(function)

    register_vmap = register_torch_dispatch = register_fake

    def register_kernel(self, device_types: Any, fn: AnyFunction | None = None, /) -> Any:
        """Compute by `fn`, if that is for the host; without `fn`, a decorator."""
        return register_kernel(self, device_types, fn)

    def register_autocast(self, device_type: str, cast_inputs: DType) -> None:
        """Convert floating operands within `autocast`; see `register_autocast`."""
        register_autocast(self, device_type, cast_inputs)


def custom_op(
    name: str, fn: Any = None, /, *, mutates_args: Any = (), device_types: Any = None, schema: str | None = None,
    tags: object = None,
) -> Any:
    """A decorator, or the function as an operation.

    It runs on all devices until a kernel is registered; writes to arguments are seen without being announced, and arguments
    are the function's own, whatever a schema says.
    """
    return CustomOperation(fn, name) if fn is not None else lambda function: CustomOperation(function, name)


def impl(qualname: str, types: Any, func: AnyFunction | None = None, *, lib: Any = None) -> Any:
    """Implement the operation by `func`, if it is for the host; without `func`, a decorator."""
    if func is None:
        return lambda function: impl(qualname, types, function) or function
    if any(str(key).lower() in _COMPUTES for key in ([types] if isinstance(types, str) else types)):
        CustomOperation(func, qualname)
    return None


def _name_of(op: Any) -> str:
    return (op if isinstance(op, str) else op.__name__).removesuffix(".default")


def register_kernel(op: Any, device_types: Any, func: AnyFunction | None = None, /, *, lib: Any = None) -> Any:
    """Have the operation computed by `func`, if that is for the host; without `func`, a decorator."""
    if func is None:
        return lambda function: register_kernel(op, device_types, function) or function
    name = _name_of(op)
    if device_types is None or "cpu" in ([device_types] if isinstance(device_types, str) else device_types):
        if (operation := _registered[name].operation) is None:
            CustomOperation(func, name)
        else:
            operation.function = func
    return None


def register_autocast(op: Any, device_type: str, cast_inputs: DType, /, *, lib: Any = None) -> None:
    """Convert the operation's floating operands to a dtype within `autocast` of the host."""
    if device_type == "cpu":
        _registered[_name_of(op)].low = cast_inputs


def fallthrough_kernel() -> NoReturn:
    """As in PyTorch, for `Library.impl` alone."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def register_fake(op: Any, func: AnyFunction | None = None, /, **others: Any) -> Any:
    """Returns `func`, or a decorator that does: shapes are found by running the operation."""
    return returned(func)


impl_abstract = register_fake


def define(qualname: str, schema: str, *, lib: Any = None, tags: object = ()) -> None:
    """Nothing: an operation's arguments are those of the function that implements it."""


def infer_schema(
    prototype_function: AnyFunction, /, *, mutates_args: Any, op_name: str | None = None, tags: object = ()
) -> str:
    """PyTorch's text of a function's parameters and results, by their annotations.

    Raises ValueError for annotations that are lacking or unknown.
    """
    taken, star = [], False
    hints = get_type_hints(prototype_function)
    for count, (name, parameter) in enumerate(inspect.signature(prototype_function).parameters.items()):
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        kind = _kind(hints[name], f"Parameter {name}")
        if kind.startswith("Tensor") and (mutates_args == "unknown" or name in mutates_args):
            kind = f"Tensor(a{count}!){kind.removeprefix('Tensor')}"
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            taken.append("*")
        value = parameter.default
        shown = "" if value is parameter.empty else f"={_written(value)}"
        taken.append(f"{kind} {name}{shown}")
    given = hints.get("return")
    if given in (None, type(None)):
        results = "()"
    elif get_origin(given) is tuple:
        results = f"({', '.join(_kind(each, 'Return') for each in get_args(given))})"
    else:
        results = _kind(given, "Return")
    return f"{op_name or ''}({', '.join(taken)}) -> {results}"


def _kind(annotation: Any, where: str) -> str:
    """PyTorch's name of a type."""
    origin, arguments = get_origin(annotation), [a for a in get_args(annotation) if a is not type(None)]
    if origin in (Union, UnionType):
        if {*arguments} <= {int, float, bool} and len(arguments) > 1:
            return "Scalar" + "?" * (len(arguments) < len(get_args(annotation)))
        if len(arguments) == 1 < len(get_args(annotation)):
            return f"{_kind(arguments[0], where)}?"
    if origin in (list, Sequence) and len(arguments) == 1:
        return f"{_kind(arguments[0], where)}[]"
    if origin is None and isinstance(annotation, type):
        for kind, name in _KINDS.items():
            if annotation is kind:
                return name
    raise ValueError(f"infer_schema(func): {where} has unsupported type {annotation}.")


def _written(value: Any) -> str:
    """A default value in a schema."""
    if isinstance(value, str | genesis.device):
        return f'"{value}"'
    if isinstance(value, DType):
        return value.name
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list | tuple) else str(value)


_KINDS = {Tensor: "Tensor", bool: "bool", int: "SymInt", float: "float", str: "str", DType: "ScalarType", complex: "complex",
          genesis.device: "Device"}
register_vmap = nothing  # batches are those of what the function calls, and so are gradients that nobody registers


def register_autograd(
    op: Any, backward: AnyFunction, /, *, setup_context: AnyFunction | None = None, lib: Any = None
) -> None:
    """Make `backward(ctx, *gradients)`, which returns a gradient for each argument, the operation's gradient rule.

    `setup_context(ctx, inputs, output)` is called first, and with `keyword_only_inputs` too if there are any. Tensors in lists
    have no gradients: NotImplementedError, where one wants it.
    """
    name = _name_of(op)

    def forward(ctx: Any, *inputs: Any, operation: AnyFunction, **keywords: Any) -> Any:
        members = [member for given in inputs if isinstance(given, list | tuple) for member in given]
        if any([isinstance(member, Tensor) and member.requires_grad for member in members]):
            raise NotImplementedError(f"{name}: gradients of tensors in a list; want them as arguments of their own")
        output = operation(*inputs, **keywords)
        if setup_context is not None:
            setup_context(ctx, inputs, **({"keyword_only_inputs": keywords} if keywords else {}), output=output)
        return output

    kind = f"GeneratedBackwardFor_{name.replace('::', '_')}_default"
    _registered[name].derived = type(kind, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


triton_op = custom_op


class Library:
    """A namespace of operations."""

    _register_fake = staticmethod(nothing)

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: object = ()) -> str:
        """The name of the operation that a schema describes."""
        return schema.partition("(")[0].strip()

    def impl(
        self, op_name: Any, fn: AnyFunction, dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = True
    ) -> None:
        """Implement the operation by `fn`, if it is for the host. Raises NotImplementedError for `with_keyset`."""
        if with_keyset:
            raise NotImplementedError("Library.impl: with_keyset=True; want a function without a set of dispatch keys")
        if fn is fallthrough_kernel:
            return
        name = getattr(op_name, "__name__", op_name)
        impl(name if "::" in name else f"{self.ns}::{name}", dispatch_key or self.dispatch_key, fn)


class _Namespace:
    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> CustomOperation | Missing:
        own = _OWN.get(self.name)
        if own is not None and name in own.__all__:
            return CustomOperation(getattr(own, name), f"{self.name}::{name}")
        if self.name in _PYTORCHS and not name.startswith("__"):
            return missing(f"torch.ops.{self.name}.{name}")
        found = _registered.get(f"{self.name}::{name}")
        if found is None or found.operation is None:
            raise AttributeError(f"'_OpNamespace' {self.name!r} object has no attribute {name!r}")
        return found.operation


class Operators:
    """`torch.ops`: namespaces of operations."""

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(f"torch.ops has no attribute {name!r}")
        return _Namespace(name)

    def load_library(self, path: str) -> NoReturn:
        """Raise OSError, as PyTorch does for an incompatible library; callers catch it and continue."""
        raise OSError(f"load_library: {path} is compiled for PyTorch, and cannot be loaded without it")


class DispatchKeySet:
    """PyTorch's sets of dispatch keys; without effect."""

    def __init__(self, *keys: object) -> None:
        self.keys = keys

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)
