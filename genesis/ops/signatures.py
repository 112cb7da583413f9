"""The parameters of operations, as the signatures of their definitions say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any, NoReturn

from genesis.ir.annotations import Attributes
from genesis.ir.errors import ArgumentTypeError
from genesis.ops.registry import Operation

_PLAIN = frozenset({type(None), bool, int, float, str})  # types of defaults that may be given by position
_NUMBERS = {
    "None", "bool", "int", "float", "str", "Axes", "PerAxis", "Shape", "Sequence[int]", "Sequence[float]", "tuple[int, ...]",
    "Sequence[Sequence[int]]",
}


@cache
def signature_of(operation: Operation) -> Signature:
    """The signature of a row's definition, computed lazily: most processes use few rows."""
    return signature(operation.define)


@cache
def parameter_names(operation: Operation) -> tuple[str, ...]:
    """The names of the parameters of a row's definition, in order."""
    return (*signature_of(operation).parameters,)


def in_positions(operation: Operation, arguments: Sequence[Any], attributes: Attributes) -> tuple[Sequence[Any], Attributes]:
    """The arguments of a call with those by keyword at their positions, where the parameters between have plain defaults."""
    after = _parameters_after(operation, len(arguments), tuple(attributes))
    if after is None:
        return arguments, attributes
    given = [value if (value := attributes.get(name, default)) is not None or default is None else _refused(operation, name)
             for name, default in after]
    return (*arguments, *given), {}


def _refused(operation: Operation, name: str) -> NoReturn:
    raise ArgumentTypeError(f"{operation.name}: {name} is None; want {signature_of(operation).parameters[name].annotation}")


@cache
def _parameters_after(operation: Operation, count: int, names: tuple[str, ...]) -> tuple[tuple[str, Any], ...] | None:
    """The parameters behind the first `count`, up to the last of `names`, with their defaults; None if some go by keyword."""
    parameters = [*signature_of(operation).parameters.values()][count:]
    found = [parameter.name for parameter in parameters]
    if not {*names} <= {*found}:
        return None
    parameters = parameters[: 1 + max(map(found.index, names))]
    if any(one.kind is not one.POSITIONAL_OR_KEYWORD for one in parameters):
        return None
    defaults = [None if one.name in names and _may_be_none(one) else one.default for one in parameters]
    return tuple(zip(found, defaults, strict=False)) if _PLAIN.issuperset(map(type, defaults)) else None


def _may_be_none(parameter: Parameter) -> bool:
    """Whether None is a value of its own, not the default."""
    return parameter.default is Parameter.empty or not {"None", "Axes"}.isdisjoint(str(parameter.annotation).split(" | "))


@cache
def operand_names(operation: Operation) -> frozenset[str]:
    """The names of the parameters at the positions `operands`."""
    return frozenset(name for at, name in enumerate(parameter_names(operation)) if at in operation.operands)


@cache
def numbers_of(operation: Operation) -> frozenset[str]:
    """The parameters that take numbers, names, or lists of them, but no tensor."""
    parameters, tensors = signature_of(operation).parameters.items(), operand_names(operation)
    return frozenset(name for name, parameter in parameters
                     if name not in tensors and {*str(parameter.annotation).split(" | ")} <= _NUMBERS)
