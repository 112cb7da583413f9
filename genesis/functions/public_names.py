"""The functions of Tensors by name: what `genesis.add` and `genesis.ops.add` are, and what users add to them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from genesis import ops
from genesis.functions.methods import ALIASES, function_of, view_function_of
from genesis.functions.overrides import OVERRIDABLE, OVERRIDES
from genesis.ops.layout import LAYOUT_RULES
from genesis.ops.registry import OPERATIONS
from genesis.tensor.handle import Tensor

__all__ = [
    "function_named", "function_names", "register_function", "register_operation", "show_in", "unregister_function",
    "unregister_operation",
]

# Rows that serve other rows, or library functions of the same name, and have no public function of their own.
_INTERNAL = {
    "adadelta_update", "adagrad_update", "adam_update", "adamax_update", "arange", "asgd_update", "batch_statistics",
    "clip_to_norm", "clip_to_value", "dropout", "full", "im2col", "index", "linalg_lu", "linalg_lu_solve",
    "linalg_qr", "linalg_svd", "nadam_update", "normal", "optimization_barrier", "put", "radam_update", "randint",
    "recurrent", "rmsprop_update", "rprop_update", "sgd_update", "stop_gradient", "subscript", "to_dtype", "uniform",
    "unscale", "view_at", "where", "with_value",
}
# Methods that are functions as well.
_METHODS = {
    "adjoint", "broadcast_to", "clone", "conj", "conj_physical", "detach", "is_complex", "is_conj", "is_floating_point",
    "is_neg", "is_same_size", "is_signed", "masked_fill", "matrix_power", "movedim", "narrow_copy", "numel", "ravel",
    "resolve_conj", "resolve_neg", "t",
}
_ALIASES = {
    **ALIASES, "concat": "cat", "concatenate": "cat", "ger": "outer", "inverse": "inv", "moveaxis": "movedim",
    "pinverse": "pinv", "real": "conj", "row_stack": "vstack", "swapaxes": "transpose", "swapdims": "transpose",
    "trapz": "trapezoid", "unsafe_chunk": "chunk", "unsafe_split": "split", "unsafe_split_with_sizes": "split_with_sizes",
}
_registered: set[str] = set()  # operations of the user's
_namespaces = [ops]  # modules that show every operation


def show_in(module: ModuleType) -> None:
    """Have `module` show what users register as operations."""
    _namespaces.append(module)


def function_named(name: str) -> Callable[..., Any] | None:
    """The public function of that name, made of its row if it has one; or None."""
    name = _ALIASES.get(name, name)
    if name in _METHODS or name in OVERRIDABLE:
        return OVERRIDABLE.get(name) or getattr(Tensor, name)
    if name.endswith("_") and not name.startswith("_"):  # relu_, fill_: what writes into its first argument
        return getattr(Tensor, name, None)
    if name not in OPERATIONS or name in _INTERNAL:
        return None
    return view_function_of(name) if name in LAYOUT_RULES else function_of(OPERATIONS[name])


def function_names() -> set[str]:
    """The names of all public functions of Tensors."""
    return {*OPERATIONS} - _INTERNAL | {*OVERRIDABLE, *_METHODS, *_ALIASES}


def register_function(name: str, function: Callable[..., Any]) -> None:
    """Have `function` compute the operation `name` wherever it is called: as an operator, a method or a function.

    While it runs, its thread finds the library's own operation under that name; so do backward and the optimizers
    always. Raises ValueError for a name that is no operation, TypeError for what cannot be called.

    >>> import genesis
    >>> genesis.ops.register_function("add", lambda a, b: genesis.ops.add(a, b) * 10)
    >>> genesis.tensor(1.0) + genesis.tensor(2.0)
    tensor(30.)
    >>> genesis.ops.unregister_function("add")
    >>> genesis.tensor(1.0) + genesis.tensor(2.0)
    tensor(3.)
    """
    if name in _METHODS or name in _ALIASES or name not in function_names():
        raise ValueError(f"register_function: {name!r} is no operation of genesis; register_operation adds a new one")
    OVERRIDES[name] = _callable("register_function", name, function)


def unregister_function(name: str) -> None:
    """Undo `register_function`. Raises ValueError if nothing is registered under `name`."""
    if OVERRIDES.pop(name, None) is None:
        raise ValueError(f"unregister_function: nothing is registered under {name!r}")


def register_operation(name: str, function: Callable[..., Any]) -> None:
    """Make `function` an operation of its own: `genesis.NAME` and `genesis.ops.NAME`. Again, it replaces the last one.

    Raises ValueError for a name that is taken or no identifier, TypeError for what cannot be called.

    >>> import genesis
    >>> genesis.ops.register_operation("twice", lambda x: x + x)
    >>> genesis.twice(genesis.tensor(2.0))
    tensor(4.)
    """
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        raise ValueError(f"register_operation: {name!r} is no public name; want an identifier such as 'my_op'")
    if name not in _registered and any(hasattr(module, name) for module in _namespaces):
        raise ValueError(f"register_operation: genesis has a {name!r} already; take another name, or register_function")
    for module in _namespaces:
        setattr(module, name, _callable("register_operation", name, function))
    _registered.add(name)


def unregister_operation(name: str) -> None:
    """Undo `register_operation`. Raises ValueError if there is no such operation."""
    if name not in _registered:
        raise ValueError(f"unregister_operation: nothing is registered under {name!r}")
    _registered.remove(name)
    for module in _namespaces:
        delattr(module, name)


def _callable(registrar: str, name: str, function: Any) -> Callable[..., Any]:
    if not callable(function):
        raise TypeError(f"{registrar}: {name!r} wants a function, got {type(function).__name__} {function!r:.40}")
    return function


def _in_ops(name: str) -> Any:
    function = function_named(name)
    if function is None:
        raise AttributeError(f"module 'genesis.ops' has no operation {name!r}")
    setattr(ops, name, function)
    return function


vars(ops).update(
    __getattr__=_in_ops, __dir__=lambda: sorted({*vars(ops), *function_names()}), register_function=register_function,
    unregister_function=unregister_function, register_operation=register_operation,
    unregister_operation=unregister_operation,
)
