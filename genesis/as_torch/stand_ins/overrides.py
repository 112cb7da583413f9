"""`torch.overrides`: modes and classes of tensors that override calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import genesis
from genesis.as_torch.stand_ins.settings import no_effect
from genesis.functions.overrides import FUNCTIONS
from genesis.functions.public_names import function_named, function_names
from genesis.ir.annotations import AnyFunction, Options
from genesis.nn import functional
from genesis.tensor.call_modes import FunctionMode, ignoring_classes, overriding_kinds
from genesis.tensor.handle import Tensor


# ---- who is asked ----
class TorchFunctionMode(FunctionMode):
    """A context that routes this thread's calls of tensor functions to `__torch_function__`; see `FunctionMode`."""

    sees_methods = True

    def __torch_function__(
        self, func: AnyFunction, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The override of the call: the call itself, here."""
        return func(*args, **(kwargs or {}))

    def intercept(self, function: AnyFunction, args: Sequence[Any], kwargs: Options) -> Any:
        kinds = overriding_kinds([*args, *kwargs.values()])
        return self.__torch_function__(function, tuple(kinds), tuple(args), dict(kwargs))


BaseTorchFunctionMode = TorchFunctionMode


class TorchDispatchMode(FunctionMode):
    """As `TorchFunctionMode`, with the method `__torch_dispatch__`, which gets genesis' functions, not `aten` operators."""

    sees_methods = True

    def __torch_dispatch__(
        self, func: AnyFunction, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The override of the call: the call itself, here."""
        return func(*args, **(kwargs or {}))

    def intercept(self, function: AnyFunction, args: Sequence[Any], kwargs: Options) -> Any:
        return self.__torch_dispatch__(function, (), tuple(args), dict(kwargs))


DisableTorchFunction = DisableTorchFunctionSubclass = ignoring_classes
enable_reentrant_dispatch = no_effect


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of them overrides calls."""
    given = [*relevant_args]
    return bool(overriding_kinds(given)) or any(
        hasattr(type(a), "__torch_function__") for a in given if not isinstance(a, Tensor))


def has_torch_function_unary(argument: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    """`has_torch_function` of several."""
    return has_torch_function(arguments)


def handle_torch_function(public_api: AnyFunction, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the first relevant argument that overrides the call. Raises TypeError if none does."""
    for argument in relevant_args:
        if hasattr(type(argument), "__torch_function__"):
            found = type(argument).__torch_function__(public_api, (type(argument),), args, kwargs)
            if found is not NotImplemented:
                return found
    raise TypeError(f"no implementation found for {public_api!r} on types that implement __torch_function__")


def is_tensor_like(inp: object) -> bool:
    """Whether it is a tensor, or an object that overrides calls."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: AnyFunction) -> bool:
    """Whether Tensor has it."""
    return any(value is func for value in vars(Tensor).values())


def redispatch_function(func: AnyFunction, types: Sequence[type], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """The call, with overrides by classes."""
    return func(*args, **(kwargs or {}))


# ---- what may be overridden ----
def resolve_name(f: AnyFunction) -> str | None:
    """PyTorch's path of a function: "torch.add"; None for other functions."""
    for home, path in ((genesis, "torch"), (functional, "torch.nn.functional"), (Tensor, "torch.Tensor")):
        name = getattr(f, "__name__", "")
        if name and getattr(home, name, None) is f:
            return f"{path}.{name}"
    return None


def get_overridable_functions() -> dict[Any, list[AnyFunction]]:
    """The functions that modes and classes can override, by module."""
    found = {genesis: [function_named(name) for name in sorted(function_names())], functional: [
        value for value in vars(functional).values() if callable(value) and getattr(value, "__name__", None) in FUNCTIONS]}
    methods = [value for name, value in vars(Tensor).items() if callable(value) and value in found[genesis]]
    return {**found, Tensor: methods}  # type: ignore[dict-item]


def get_testing_overrides() -> dict[AnyFunction, AnyFunction]:
    """For each of them, a function of the same arguments that returns -1."""
    made: dict[AnyFunction, AnyFunction] = {}
    for function in (f for functions in get_overridable_functions().values() for f in functions):
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # one of C without a signature
            continue
        made[function] = _answering(signature)
    return made


def _answering(signature: inspect.Signature) -> Callable[..., int]:
    def answer(*args: Any, **kwargs: Any) -> int:
        return -1

    answer.__signature__ = signature  # type: ignore[attr-defined]
    return answer


def get_ignored_functions() -> set[AnyFunction]:
    """Functions that modes and classes cannot override: they take no tensors."""
    names = ("tensor", "zeros", "ones", "empty", "full", "eye", "arange", "linspace", "logspace", "rand", "randn", "randint",
             "randperm", "load", "save", "compile", "manual_seed", "is_tensor", "finfo", "iinfo")
    return {getattr(genesis, name) for name in names}


def get_default_nowrap_functions() -> set[AnyFunction]:
    """Functions whose results stay plain tensors: none."""
    return set()


def wrap_torch_function(dispatcher: AnyFunction) -> AnyFunction:
    """A decorator: calls are overridden by the arguments that `dispatcher(*args, **kwargs)` gives."""

    def decorated(func: AnyFunction) -> AnyFunction:
        @functools.wraps(func)
        def asking(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            return handle_torch_function(asking, relevant, *args, **kwargs) if has_torch_function(relevant) else (
                func(*args, **kwargs))

        return asking

    return decorated


def _disabled_torch_function_impl(
    func: AnyFunction, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The call without overrides by classes, with plain tensors as results. Classes may use it as `__torch_function__`."""
    with ignoring_classes():
        return func(*args, **(kwargs or {}))
