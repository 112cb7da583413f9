"""`torch.library` and `torch.ops`: users' operations, by name. Registrations for compilers have no effect."""

from __future__ import annotations

import inspect
from typing import Any, NoReturn

from genesis.as_torch.missing import Missing, missing
from genesis.as_torch.stand_ins import aten
from genesis.as_torch.stand_ins.compilers import returned
from genesis.as_torch.stand_ins.settings import nothing
from genesis.autograd.function import Function
from genesis.ir.annotations import AnyFunction
from genesis.ir.replayable import replayable_module
from genesis.tensor.handle import Tensor

_COMPUTES = ("", "default", "cpu", "compositeimplicitautograd", "compositeexplicitautograd")  # keys of what runs on the host
_PYTORCHS = ("aten", "prim", "prims", "quantized")  # namespaces whose operations are written in C++
_known: dict[str, CustomOperation] = {}  # "namespace::name" ->
_derived: dict[str, type[Function]] = {}  # "namespace::name" -> what runs it, where a rule of its gradient is registered


class CustomOperation:
    """A user's operation: a function with a name."""

    def __init__(self, function: AnyFunction, name: str) -> None:
        self.function, self.__name__ = function, name
        _known[name] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        derived = _derived.get(self.__name__)
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

    register_kernel = register_vmap = register_torch_dispatch = register_fake


def custom_op(name: str, fn: Any = None, /, **kwargs: Any) -> Any:
    """A decorator, or the function as an operation."""
    return CustomOperation(fn, name) if fn is not None else lambda function: CustomOperation(function, name)


def impl(qualname: str, types: Any, func: AnyFunction | None = None, *, lib: Any = None) -> Any:
    """Implement the operation by `func`, if it is for the host; without `func`, a decorator."""
    if func is None:
        return lambda function: impl(qualname, types, function) or function
    if any(str(key).lower() in _COMPUTES for key in ([types] if isinstance(types, str) else types)):
        CustomOperation(func, qualname)
    return None


register_fake = impl_abstract = register_kernel = returned
define = nothing
register_vmap = nothing  # batches are those of what the function calls, and so are gradients that nobody registers


def register_autograd(
    op: Any, backward: AnyFunction, /, *, setup_context: AnyFunction | None = None, lib: Any = None
) -> None:
    """Make `backward(ctx, *gradients)`, which returns a gradient for each argument, the operation's gradient rule.

    `setup_context(ctx, inputs, output)` is called first, and with `keyword_only_inputs` too if there are any. Tensors in lists
    have no gradients: NotImplementedError, where one wants it.
    """
    name = (op if isinstance(op, str) else op.__name__).removesuffix(".default")

    def forward(ctx: Any, *inputs: Any, operation: AnyFunction, **keywords: Any) -> Any:
        members = [member for given in inputs if isinstance(given, list | tuple) for member in given]
        if any([isinstance(member, Tensor) and member.requires_grad for member in members]):
            raise NotImplementedError(f"{name}: gradients of tensors in a list; want them as arguments of their own")
        output = operation(*inputs, **keywords)
        if setup_context is not None:
            setup_context(ctx, inputs, **({"keyword_only_inputs": keywords} if keywords else {}), output=output)
        return output

    kind = f"GeneratedBackwardFor_{name.replace('::', '_')}_default"
    _derived[name] = type(kind, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


triton_op = custom_op


class Library:
    """A namespace of operations."""

    define = staticmethod(nothing)

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def impl(self, op_name: Any, fn: AnyFunction, dispatch_key: str = "", **kwargs: Any) -> None:
        """Implement the operation by `fn`, if it is for the host."""
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
        """Raise OSError, as PyTorch does for an incompatible library; callers catch it and continue."""
        raise OSError(f"load_library: {path} is compiled for PyTorch, and cannot be loaded without it")


class DispatchKeySet:
    """PyTorch's sets of dispatch keys; without effect."""

    def __init__(self, *keys: object) -> None:
        self.keys = keys

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)


replayable_module(__name__)
