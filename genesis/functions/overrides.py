"""Operations overridden by users: after `register_function("add", f)`, `x + y` is `f(x, y)`.

Users' calls (operators, methods, functions) check for overrides while anything is registered. The library's own calls, such as
those of backward and optimizers, do not. While an override runs, its own name means the built-in operation.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS
from typing import Any, TypeVar

from genesis.ir.annotations import AnyFunction, Options
from genesis.ir.made_methods import name_by_place
from genesis.ops.registry import Operation
from genesis.tensor.call_modes import BEFORE_FIRST_OVERRIDE, OVERRIDES, PUBLIC, overriding_classes, overriding_kinds, running
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, method
from genesis.tensor.out import NUMPY_NAMES, into
from genesis.tracing.recording_hooks import refuse

F = TypeVar("F", bound=AnyFunction)
OVERRIDABLE: set[str] = set()  # names of functions that users may override
FUNCTIONS: dict[str, AnyFunction] = {}  # the public functions that are no rows of the operation table, by all their names
ROUTED: dict[str, AnyFunction] = {}  # of other modules' functions, those that modes and classes can override


def routed(name: str, builtin: AnyFunction, args: Sequence[Any], kwargs: Options) -> Any:
    """Call the override registered under `name`; `builtin` if there is none, or if this thread is inside of it.

    The innermost mode comes first, then the classes of the arguments.
    """
    if modes := running.modes:
        mode = modes.pop()
        try:
            return mode.intercept(PUBLIC[0](name), args, kwargs)
        finally:
            modes.append(mode)
    if overriding_classes and not running.ignores_classes and (kinds := overriding_kinds([*args, *kwargs.values()])):
        return _asked(kinds, name, args, kwargs)
    function = OVERRIDES.get(name)
    if function is None or name in running.names:
        return builtin(*args, **kwargs)
    running.names.add(name)
    try:
        return function(*args, **kwargs)
    finally:
        running.names.discard(name)


def _asked(kinds: Sequence[Any], name: str, args: Sequence[Any], kwargs: Options) -> Any:
    refuse(f"calls with a tensor of {kinds[0].__qualname__} go to its `__torch_function__`")
    for kind in kinds:
        result = kind.__torch_function__(PUBLIC[0](name), tuple(kinds), tuple(args), kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(f"{name}: no class of its arguments implements it; asked {', '.join(kind.__qualname__ for kind in kinds)}")


def route(operation: Operation, args: Sequence[Any], kwargs: Options | None = None) -> Any:
    """`call`, through any override registered under the operation's name."""
    return routed(operation.name, lambda *args, **kwargs: call(operation, args, kwargs), args, kwargs or {})


def keywords(**names: str) -> Callable[[F], F]:
    """Decorator: makes a function overridable and gives its arguments further names."""

    def note(builtin: F) -> F:
        vars(builtin)["keywords"] = names
        return builtin

    return note


def overridable(builtin: F) -> F:
    """Decorator: users may override this public function, which is not a row."""
    name, names = builtin.__name__, {**NUMPY_NAMES, **vars(builtin).get("keywords", {})}
    code = builtin.__code__
    if "axis" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        names = {}

    @functools.wraps(builtin)
    def public(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {names.get(name, name): value for name, value in kwargs.items()}
            if "out" in kwargs and (out := kwargs.pop("out")) is not None:
                return into(out, name, public, args, kwargs)
        elif not OVERRIDES:
            return builtin(*args)
        return routed(name, builtin, args, kwargs) if OVERRIDES else builtin(*args, **kwargs)

    OVERRIDABLE.add(name)
    return function()(public)  # type: ignore[return-value]


def overridable_method(builtin: F) -> F:
    """Decorator: an overridable function that is also a method of Tensor."""
    return method(overridable(builtin))


def routed_function(builtin: F, name: str = "") -> F:
    """Decorator: a public function that modes and classes can override, under its name or another one."""
    public = _checking(builtin, lambda: True, name)
    public.__name__ = public.__qualname__ = name or builtin.__name__
    ROUTED[public.__name__] = public
    return public


def inspection(builtin: F) -> F:
    """Decorator: a method of Tensor that tells about it, and a public function that modes and classes can override."""
    return function()(routed_function(method(builtin)))


def routed_method(builtin: F) -> F:
    """Decorator: a method of Tensor, not a public function, that modes and classes can override."""
    return method(_checking(builtin, lambda: True))


def routed_access(builtin: F) -> F:
    """Decorator: a function that reads or writes a part of its first argument; users' modes and classes can override it."""
    return _checking(builtin, lambda: running.modes[-1].sees_methods if running.modes else overriding_classes)


def _checking(builtin: F, is_asked: Callable[[], object], name: str = "") -> F:
    """`builtin`, by way of `routed` where there are overrides and it `is_asked`."""
    name, code = name or builtin.__name__, builtin.__code__
    has_more = code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    if code.co_varnames[: code.co_argcount] in (("self",), ("input",)) and not has_more:  # Measured: 130 ns less
        def public(input: Any) -> Any:
            return routed(name, builtin, (input,), {}) if OVERRIDES and is_asked() else builtin(input)
    else:  # not `x[i]`: CPython moves the user's instruction on once it calls `__getitem__` of two arguments often
        def public(*args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
            if OVERRIDES and is_asked():
                return routed(name, builtin, args, kwargs)
            return builtin(*args, **kwargs) if kwargs else builtin(*args)
    return functools.wraps(builtin)(public)  # type: ignore[return-value]


def routed_access_method(builtin: F) -> F:
    """Decorator: what is `routed_access`, as a method of Tensor."""
    return method(routed_access(builtin))


CONVERSIONS = (
    "bfloat16", "bool", "byte", "cdouble", "cfloat", "chalf", "char", "contiguous", "cpu", "cuda", "double", "expand_as",
    "float", "half", "int", "long", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "repeat", "reshape_as",
    "short", "squeeze_", "swapaxes_", "swapdims_", "t_", "to", "transpose_", "type", "type_as", "unsqueeze_", "view_as",
)  # methods that check for overrides only once a mode or class exists: the check would cost as much as the conversion


INSPECTIONS = (
    "dim", "element_size", "is_complex", "is_conj", "is_contiguous", "is_floating_point", "is_same_size", "is_signed",
    "nelement", "ndimension", "numel", "stride",
)  # these too, from then on; `storage_offset` does not, as no guard compares what it returns
CREATIONS = (
    "arange", "as_tensor", "asarray", "empty", "empty_permuted", "empty_strided", "eye", "full", "linspace",
    "logspace", "ones", "rand", "randint", "randn", "randperm", "scalar_tensor", "sparse_coo_tensor", "tensor", "tril_indices",
    "triu_indices", "zeros",
)  # and these, as the user calls them


def _route_conversions() -> None:
    for name in CONVERSIONS:
        routed_method(vars(Tensor)[name])
    for name in INSPECTIONS:
        method(routed_access(vars(Tensor)[name]), name)
    name_by_place(vars(Tensor), Tensor.__module__, "Tensor.")
    library = vars(sys.modules["genesis"])
    library |= {name: routed_function(library[name], name) for name in CREATIONS}
    name_by_place({name: library[name] for name in CREATIONS}, "genesis")


BEFORE_FIRST_OVERRIDE.append(_route_conversions)


def function(*aliases: str) -> Callable[[F], F]:
    """Decorator: a method of Tensor, or an overridable function, is a function of `genesis` too. Both get the `aliases`."""

    def show(public: F) -> F:
        FUNCTIONS.update(dict.fromkeys((public.__name__, *aliases), public))
        for alias in aliases if hasattr(Tensor, public.__name__) else ():
            setattr(Tensor, alias, public)
        return public

    return show
