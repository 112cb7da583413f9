"""Public functions by name: `genesis.add`, `genesis.ops.add`, those of modules, and operations that users register."""

from __future__ import annotations

import sys
from collections.abc import Callable

from genesis import ops
from genesis.functions.methods.table import function_of
from genesis.functions.overrides import FUNCTIONS, OVERRIDABLE
from genesis.ir.annotations import AnyFunction
from genesis.ir.errors import ArgumentError
from genesis.ir.made_methods import name_by_place
from genesis.ops.registry import OPERATIONS, Operation, names_in, row_at
from genesis.tensor.call_modes import remove_override, set_override
from genesis.tensor.handle import Tensor

_registered: set[str] = set()  # names of users' operations
_namespaces = [ops]  # modules that export every operation
_later: list[Callable[[], object]] = []  # imports of modules that define further public functions
defined_later = _later.append  # it is called before an unknown name is reported
show_in = _namespaces.append  # the module exports the operations that users register


def _load() -> None:
    while _later:
        _later.pop()()


def function_named(name: str) -> AnyFunction | None:
    """The public function of that name, made from its row if it has one; or None."""
    if name in FUNCTIONS:
        name_by_place({name: FUNCTIONS[name]}, "genesis")
        return FUNCTIONS[name]
    if name.endswith("_") and not name.startswith("_") and hasattr(Tensor, name):  # relu_: writes to its first argument
        return getattr(Tensor, name)  # type: ignore[no-any-return]
    if (row := row_at(name)) is not None:
        return function_of(row)
    if name.startswith("__") or not _later:  # dunder names are Python's own lookups on a module
        return None
    _load()
    return FUNCTIONS.get(name)


def function_names() -> set[str]:
    """The names of all public functions of Tensors."""
    _load()
    return names_in("") | {*FUNCTIONS}


def rows_shown(
    module: str, own: list[str], made: Callable[[Operation], AnyFunction] = function_of  # type: ignore[has-type]
) -> tuple[Callable[[str], AnyFunction], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module below `genesis`, which exports its rows beside its `own` names.

    The rows' names are added to `own`, its `__all__`. `made` makes a function from its row at its first use.
    """
    path = f"genesis.{module}"
    own += sorted(names_in(module) - {*own})

    def find(name: str) -> AnyFunction:
        row = row_at(f"{module}.{name}")
        if row is None:
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        function = made(row)
        if function is not function_of(row):
            function.__module__ = path
        setattr(sys.modules[path], name, function)
        return function

    return find, lambda: own


def register_function(name: str, function: AnyFunction) -> None:
    """Replace the operation `name` by `function` wherever it is called: as an operator, method or function.

    While it runs, the name means the built-in operation in its thread; backward and optimizers always use the built-in one.
    Raises ValueError for a name that is not an operation, TypeError for a `function` that is not callable.

    >>> genesis.ops.register_function("add", lambda a, b: genesis.ops.add(a, b) * 10)
    >>> genesis.tensor(1.0) + genesis.tensor(2.0)
    tensor(30.)
    >>> genesis.ops.unregister_function("add")
    >>> genesis.tensor(1.0) + genesis.tensor(2.0)
    tensor(3.)
    """
    if name not in OPERATIONS:
        _load()
    if name not in OVERRIDABLE and (name not in OPERATIONS or not OPERATIONS[name].public):
        raise ArgumentError(f"register_function: {name!r} is no operation of genesis; register_operation adds a new one")
    set_override(name, _callable("register_function", name, function))


def unregister_function(name: str) -> None:
    """Undo `register_function`. Raises ValueError if nothing is registered under `name`."""
    if not remove_override(name):
        raise ArgumentError(f"unregister_function: nothing is registered under {name!r}")


def register_operation(name: str, function: AnyFunction) -> None:
    """Make `function` a new operation: `genesis.NAME` and `genesis.ops.NAME`. Registering it again replaces it.

    Raises ValueError for a name that is taken or not an identifier, TypeError for a `function` that is not callable.

    >>> genesis.ops.register_operation("twice", lambda x: x + x)
    >>> genesis.twice(genesis.tensor(2.0))
    tensor(4.)
    """
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        raise ArgumentError(f"register_operation: {name!r} is no public name; want an identifier such as 'my_op'")
    if name not in _registered and any(hasattr(module, name) for module in _namespaces):
        raise ArgumentError(f"register_operation: genesis has a {name!r} already; take another name, or register_function")
    for module in _namespaces:
        setattr(module, name, _callable("register_operation", name, function))
    _registered.add(name)


def unregister_operation(name: str) -> None:
    """Undo `register_operation`. Raises ValueError if there is no such operation."""
    if name not in _registered:
        raise ArgumentError(f"unregister_operation: nothing is registered under {name!r}")
    _registered.remove(name)
    for module in _namespaces:
        delattr(module, name)


def _callable(registrar: str, name: str, function: object) -> AnyFunction:
    if not callable(function):
        raise TypeError(f"{registrar}: {name!r} wants a function, got {type(function).__name__} {function!r:.40}")
    return function


def _in_ops(name: str) -> AnyFunction:
    function = function_named(name)
    if function is None:
        raise AttributeError(f"module 'genesis.ops' has no operation {name!r}")
    setattr(ops, name, function)
    return function


_own = {f.__name__: f for f in (register_function, unregister_function, register_operation, unregister_operation)}
vars(ops)["__all__"] += _own
def _listed() -> list[str]:
    return sorted({*vars(ops)["__all__"], *function_names(), *_registered})


vars(ops).update(_own, __getattr__=_in_ops, __dir__=_listed)


NOT_REPLAYABLE = ("register_function", "unregister_function", "register_operation", "unregister_operation", "_listed")
