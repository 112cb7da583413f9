"""`torch.overrides` and `torch.library`: genesis asks no argument whether it would rather compute an operation itself."""

from __future__ import annotations

from typing import Any

from genesis.as_torch.stand_ins.compilers import returned
from genesis.as_torch.stand_ins.settings import no, nothing
from genesis.ir.annotations import AnyFunction
from genesis.ir.replayable import replayable_module
from genesis.tensor.handle import Tensor

has_torch_function = has_torch_function_unary = has_torch_function_variadic = is_tensor_method_or_property = no


def is_tensor_like(inp: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(inp, Tensor)


def handle_torch_function(public_api: AnyFunction, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """The function's result."""
    return public_api(*args, **kwargs)


wrap_torch_function = returned


class CustomOperation:
    """A function under a name of its own; what is registered for compilers is not needed here."""

    def __init__(self, function: AnyFunction, name: str) -> None:
        self.function, self.__name__ = function, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def register_fake(self, function: Any = None, /) -> Any:
        """The function: shapes come from running it."""
        return returned(function)

    register_kernel = register_vmap = register_torch_dispatch = register_fake


def custom_op(name: str, fn: Any = None, /, **kwargs: Any) -> Any:
    """A decorator, or the function as an operation."""
    return CustomOperation(fn, name) if fn is not None else lambda function: CustomOperation(function, name)


register_fake = impl_abstract = register_kernel = impl = returned
define = nothing
register_autograd = register_vmap = nothing  # gradients and batches are those of what the function calls
triton_op = custom_op


class Library:
    """A namespace of operations, which is kept nowhere: what is defined in it runs as the function that it is."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind = ns, kind

    define = staticmethod(nothing)
    impl = staticmethod(returned)


replayable_module(__name__)


replayable_module(__name__)
