"""`torch.library` and `torch.ops`: operations of one's own, by their names. What is registered for compilers is not needed."""

from __future__ import annotations

from typing import Any, NoReturn

from genesis.as_torch.missing import Missing, missing
from genesis.as_torch.stand_ins import aten
from genesis.as_torch.stand_ins.compilers import returned
from genesis.as_torch.stand_ins.settings import nothing
from genesis.ir.annotations import AnyFunction
from genesis.ir.replayable import replayable_module

_COMPUTES = ("", "default", "cpu", "compositeimplicitautograd", "compositeexplicitautograd")  # keys of what runs on the host
_PYTORCHS = ("aten", "prim", "prims", "quantized")  # namespaces whose operations are written in C++
_known: dict[str, CustomOperation] = {}  # "namespace::name" ->


class CustomOperation:
    """A function under a name of its own."""

    def __init__(self, function: AnyFunction, name: str) -> None:
        self.function, self.__name__ = function, name
        _known[name] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def default(self) -> CustomOperation:
        """The only overload."""
        return self

    def register_fake(self, function: Any = None, /) -> Any:
        """The function: shapes come from running it."""
        return returned(function)

    register_kernel = register_vmap = register_torch_dispatch = register_fake


def custom_op(name: str, fn: Any = None, /, **kwargs: Any) -> Any:
    """A decorator, or the function as an operation."""
    return CustomOperation(fn, name) if fn is not None else lambda function: CustomOperation(function, name)


def impl(qualname: str, types: Any, func: AnyFunction | None = None, *, lib: Any = None) -> Any:
    """Have the operation be `func` if it is for the host; a decorator without one."""
    if func is None:
        return lambda function: impl(qualname, types, function) or function
    if any(str(key).lower() in _COMPUTES for key in ([types] if isinstance(types, str) else types)):
        CustomOperation(func, qualname)
    return None


register_fake = impl_abstract = register_kernel = returned
define = nothing
register_autograd = register_vmap = nothing  # gradients and batches are those of what the function calls
triton_op = custom_op


class Library:
    """A namespace of operations."""

    define = staticmethod(nothing)

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def impl(self, op_name: Any, fn: AnyFunction, dispatch_key: str = "", **kwargs: Any) -> None:
        """Have the operation be `fn` if it is for the host."""
        name = getattr(op_name, "__name__", op_name)
        impl(name if "::" in name else f"{self.ns}::{name}", dispatch_key or self.dispatch_key, fn)


class _Namespace:
    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> CustomOperation | Missing:
        if self.name == "aten" and name in aten.__all__:
            return CustomOperation(getattr(aten, name), f"aten::{name}")
        if self.name in _PYTORCHS and not name.startswith("__"):
            return missing(f"torch.ops.{self.name}.{name}")
        if (found := _known.get(f"{self.name}::{name}")) is None:
            raise AttributeError(f"'_OpNamespace' {self.name!r} object has no attribute {name!r}")
        return found


class Operators:
    """`torch.ops`: namespaces of operations."""

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(f"torch.ops has no attribute {name!r}")
        return _Namespace(name)

    def load_library(self, path: str) -> NoReturn:
        """Raise OSError, as PyTorch does where a library does not fit: libraries try, and go on without."""
        raise OSError(f"load_library: {path} is compiled for PyTorch, and cannot be loaded without it")


class DispatchKeySet:
    """Kinds of kernels, of which genesis has no choice."""

    def __init__(self, *keys: object) -> None:
        self.keys = keys

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)


replayable_module(__name__)
