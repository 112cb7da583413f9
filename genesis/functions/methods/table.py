"""Functions and methods from the operation table: `genesis.exp(x)`, `x.exp()`, `x + y`, `x.add_(y)`."""

from __future__ import annotations

import sys
import warnings
from functools import cache, reduce
from typing import Any, cast

import numpy as np

from genesis.functions.overrides import FUNCTIONS, NUMPY_NAMES, ROUTED, route, routed
from genesis.ir.annotations import AnyFunction, Arguments, Attributes
from genesis.ir.errors import ArgumentTypeError
from genesis.ops.examples import documented
from genesis.ops.registry import OPERATIONS, Operation
from genesis.ops.signatures import parameter_names, signature_of
from genesis.tensor.call_modes import OVERRIDES, PUBLIC, overriding_kinds
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call, known
from genesis.tensor.handle import Tensor
from genesis.tensor.in_memory import MANY, VARYING, joined_in_memory
from genesis.tensor.in_place import in_place
from genesis.tensor.out import into
from genesis.tensor.views import known_views, view
from genesis.tensor.writes_in_memory import ROUNDED_ALIKE, combined

_UNDERSTOOD = (Tensor, int, float, complex)  # operand types that never override a tensor's operator
_REPEATED = (list, tuple, str, bytes)
_COMPARED = (Tensor, int, float, complex, np.generic, np.ndarray)  # types of what a tensor may equal
_COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}  # -> the reflected comparison


@cache
def function_of(operation: Operation) -> AnyFunction:
    """The public function of an operation: Tensors (or Python scalars) in, Tensors out; NumPy's spellings accepted.

    The result of a view operation shares the input's storage.
    """

    computing = (_viewing if operation.is_view else _joining if operation.variadic and operation.reference
                 else _sharing if operation.shares else _computing)
    public: Any = computing(operation)
    public.__name__ = public.__qualname__ = operation.name
    public.__module__, public.__qualname__ = _home(operation)
    public.__doc__ = documented(operation)
    public.__wrapped__, public.__annotations__ = operation.define, {}  # its signature
    return public  # type: ignore[no-any-return]


def _computing(operation: Operation) -> Any:
    most = _most_in_order(operation)

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) > most:
            args, kwargs = _in_order(operation, args, kwargs)
            if "out" in kwargs:
                return _with_out(operation, args, kwargs)
        elif not OVERRIDES:
            return known.call(operation, args, None, False, None)
        return (route if OVERRIDES else call)(operation, args, kwargs)

    return function


def _joining(operation: Operation) -> Any:
    function, join = _computing(operation), cast(AnyFunction, operation.reference)

    def joining(*args: Any, **kwargs: Any) -> Any:
        is_list = args and args[0].__class__ in (list, tuple) and (len(args[0]) >= MANY or VARYING) and args[0]
        if is_list and not OVERRIDES and kwargs.keys() <= {"dim"}:
            joined = joined_in_memory(join, args[0], *args[1:], *kwargs.values())
            if joined is not None:
                return joined
        return function(*args, **kwargs)

    return joining


def _sharing(operation: Operation) -> Any:
    function, shares = _computing(operation), cast(AnyFunction, operation.shares)

    def sharing(*args: Any, **kwargs: Any) -> Any:
        try:
            found = None if kwargs or OVERRIDES else shares(*args)
        except (AttributeError, TypeError, ValueError):  # the row says what would be right
            found = None
        if found is None or not isinstance(found[0], Tensor) or isinstance(found[0], CompositeTensor):
            return function(*args, **kwargs)
        return reduce(lambda tensor, step: view(tensor, *step), found[1], found[0])

    return sharing


def _viewing(operation: Operation) -> Any:
    name = operation.name

    def builtin(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return view(input, name, *args, **kwargs)

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args, kwargs = _in_order(operation, args, kwargs)
        elif not OVERRIDES:
            return known_views.call(args[0], name, args[1:])
        return routed(name, builtin, args, kwargs) if OVERRIDES else builtin(*args, **kwargs)

    return function


def _home(operation: Operation) -> tuple[str, str]:
    """The module and the name by which pickles find a row's function."""
    if operation.public:
        return "genesis", operation.name
    paths = [*(f"{space}.{operation.name}" for space in operation.namespaces), *operation.aliases, operation.name]
    module, _, name = f"genesis.{paths[0]}".rpartition(".")
    return module, name


def _most_in_order(operation: Operation) -> int:
    """How many positional arguments there are at most unless there are numbers between tensors."""
    names = operation.numbers_between
    return len(parameter_names(operation)) - len(names) if names else sys.maxsize


def _without_numbers_between(operation: Operation, args: Arguments, kwargs: Attributes) -> tuple[Arguments, Attributes]:
    """The arguments with numbers between tensors, as old PyTorch took them, by name: x.add(2, y), x.addcmul_(2, y, z)."""
    names = operation.numbers_between
    most = _most_in_order(operation)
    tensors = parameter_names(operation)[:most]
    if len(args) <= most and kwargs.keys().isdisjoint(tensors):
        return args, kwargs
    count = len(args) + len([name for name in kwargs if name in tensors]) - most
    if count <= 0:
        return args, kwargs
    first = 0 if len(names) > 1 and not _is_number(args[1]) else 1  # functions take beta first
    numbers = {first: names[0]} if count == 1 else {first: names[0], 2: names[-1]}
    if count > len(names) or not kwargs.keys().isdisjoint(names) or not all(_is_number(args[at]) for at in numbers):
        raise ArgumentTypeError(
            f"{operation.name}: {len(args)} positional arguments; want {', '.join(tensors)}; {', '.join(names)} by keyword")
    _warn_of_numbers_between(operation.name, names)
    given = {name: args[at] for at, name in numbers.items()}
    return tuple([argument for at, argument in enumerate(args) if at not in numbers]), {**kwargs, **given}


def _is_number(argument: Any) -> bool:
    """Whether it is a number, or a tensor of one that requires no gradient."""
    is_scalar = hasattr(argument, "__truediv__") and getattr(argument, "ndim", 0) == 0
    return is_scalar and not getattr(argument, "requires_grad", False)


@cache  # once in a process, as in PyTorch
def _warn_of_numbers_between(name: str, names: tuple[str, ...]) -> None:
    warnings.warn(f"{name}: numbers before tensors are deprecated; want {', '.join(names)} by keyword", stacklevel=5)


def _in_order(operation: Operation, args: Any, kwargs: Attributes) -> tuple[Arguments, Attributes]:
    """Arguments in the row's order and by its names: by NumPy's and older names, `input`, `*dims` by name, numbers between
    tensors."""
    if _are_in_order(operation, len(args), tuple(kwargs)):
        return args, kwargs
    if not kwargs.keys().isdisjoint(_other_names(operation)):
        args, kwargs = _by_the_rows_names(operation, args, kwargs)
    return _without_numbers_between(operation, args, kwargs) if operation.numbers_between else (args, kwargs)


@cache
def _are_in_order(operation: Operation, count: int, names: tuple[str, ...]) -> bool:
    """Whether so many arguments, and others of these names, need no other order or name."""
    most = _most_in_order(operation)
    tensors = parameter_names(operation)[:most] if operation.numbers_between else ()
    return count <= most and {*names}.isdisjoint({*_other_names(operation), *tensors})


def _by_the_rows_names(operation: Operation, args: Arguments, kwargs: Attributes) -> tuple[Arguments, Attributes]:
    names = _argument_names(operation)
    given, kwargs = kwargs, {names.get(name, name): value for name, value in kwargs.items()}
    if len(kwargs) < len(given):
        raise ArgumentTypeError(f"{operation.name}() got one argument by two names: {', '.join(given)}")
    if "input" in kwargs:
        args = (kwargs.pop("input"), *args)
    if (spread := _spread(operation)) in kwargs:
        args = (*args, kwargs.pop(spread))
    return args, kwargs


@cache
def _other_names(operation: Operation) -> frozenset[str | None]:
    return frozenset({*_argument_names(operation), "input", _spread(operation)})


@cache
def _argument_names(operation: Operation) -> dict[str, str]:
    return {**NUMPY_NAMES, **dict(operation.keywords)}


@cache
def _spread(operation: Operation) -> str | None:
    """The name of a row's variadic parameter: "dims" for `*dims`."""
    return next((name for name, one in signature_of(operation).parameters.items() if one.kind is one.VAR_POSITIONAL), None)


def _with_out(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a row with `out=`, which may be None."""
    out, function = kwargs.pop("out"), function_of(operation)
    return function(*args, **kwargs) if out is None else into(out, operation.name, function, args, kwargs)


def functions_of(*names: str) -> tuple[AnyFunction, ...]:
    """The public functions of several rows."""
    return tuple([function_of(OPERATIONS[name]) for name in names])


def public_function(name: str) -> AnyFunction:
    """The public function of this name; for an in-place name, the method."""
    if (found := FUNCTIONS.get(name) or ROUTED.get(name)) is not None:
        return found
    return function_of(OPERATIONS[name]) if name in OPERATIONS else getattr(Tensor, name)


PUBLIC.append(public_function)


def _unary_operator(operation: Operation) -> AnyFunction:
    def method(self: Tensor) -> Any:
        return route(operation, (self,)) if OVERRIDES else known.call(operation, (self,), None, False, None)

    return method


def _binary_operator(operation: Operation) -> AnyFunction:
    assert operation.operator is not None
    reflected = f"__{_COMPARISONS.get(operation.operator, 'r' + operation.operator)}__"
    inherited = getattr(object, reflected, None)

    def method(self: Tensor, other: Any) -> Any:
        try:
            return route(operation, (self, other)) if OVERRIDES else known.call(operation, (self, other), None, False, None)
        except TypeError:
            if isinstance(other, _UNDERSTOOD) or getattr(type(other), reflected, None) is inherited:
                raise
            return NotImplemented  # the other operand's class may handle it

    return method


def _equality_operator(operation: Operation) -> AnyFunction:
    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, _COMPARED) and not (OVERRIDES and overriding_kinds((other,))):
            return NotImplemented  # so that `tensor == None` and `tensor == "text"` are False
        return route(operation, (self, other)) if OVERRIDES else known.call(operation, (self, other), None, False, None)

    return method


def _reflected_operator(operation: Operation) -> AnyFunction:
    def method(self: Tensor, other: Any) -> Any:
        if isinstance(other, _REPEATED):
            return NotImplemented  # `[0] * tensor` repeats the list
        return route(operation, (other, self)) if OVERRIDES else known.call(operation, (other, self), None, False, None)

    return method


def _in_place_method(operation: Operation) -> AnyFunction:
    written, most = operation.name + "_", _most_in_order(operation)
    is_rounded_alike = operation.reference in ROUNDED_ALIKE

    def builtin(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if is_rounded_alike and len(args) == 1 and not kwargs and self._base is not None:
            return combined.call(self, ..., args[0], operation)  # type: ignore[no-any-return]
        return in_place(self, operation, args, kwargs)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if kwargs or len(args) >= most:
            (self, *args), kwargs = _in_order(operation, (self, *args), kwargs)  # type: ignore[assignment]
        return routed(written, builtin, (self, *args), kwargs) if OVERRIDES else builtin(self, *args, **kwargs)

    method.__name__ = written
    method.__doc__ = f"`{operation.name}`, in place."
    return method


def install_row(operation: Operation) -> None:
    """Give Tensor the methods and operators of a row."""
    if operation.method:
        for name in (operation.name, *[alias for alias in operation.aliases if "." not in alias]):
            setattr(Tensor, name, function_of(operation))
            if operation.in_place:
                setattr(Tensor, name + "_", _in_place_method(operation))
    if operation.operator:
        _install_operator(operation, operation.operator)


def _install_operator(operation: Operation, operator: str) -> None:
    equality, unary = operator in ("eq", "ne"), len(operation.operands) == 1
    kind = _equality_operator if equality else _unary_operator if unary else _binary_operator
    setattr(Tensor, f"__{operator}__", kind(operation))
    if unary or operator in _COMPARISONS:
        return
    setattr(Tensor, f"__r{operator}__", _reflected_operator(operation))
    if operation.in_place:
        setattr(Tensor, f"__i{operator}__", _in_place_method(operation))


def install() -> None:
    """Give Tensor the methods and operators of all rows."""
    for operation in OPERATIONS.values():
        install_row(operation)
    Tensor.__rdiv__ = Tensor.__rtruediv__  # type: ignore[method-assign]
    Tensor.__pos__ = lambda self: self  # type: ignore[method-assign, assignment, return-value, misc]
    Tensor.__hash__ = object.__hash__  # type: ignore[method-assign]
