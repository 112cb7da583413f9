"""Functions that write an elementwise row: each makes a primitive, and the operation that builds it.

They have an in-place form unless `in_place=False` or the result has another dtype.

The kernel body is `emit(k, *values)`; without one it is the method of `k` with the row's name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Unpack

import numpy as np

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType, bool_, int64
from genesis.ir.errors import ArgumentError, DivisorError, UnsupportedTypeError
from genesis.ir.graph import Node, Value
from genesis.ops.registry import (
    Emitter, Gradient, Names, Operation, Policy, Reference, as_values, broadcast, cast, composite, floating_dtype, primitive,
    promoted, rounded_once,
)
from genesis.runtime.deferred import import_whole


def from_scipy(name: str) -> AnyFunction:
    """A reference in scipy.special, imported at the first call."""
    return lambda *arrays: getattr(import_whole("scipy.special"), name)(*arrays)


def _refuse_bools(name: str, dtype: DType, instead: str) -> None:
    if instead and dtype is bool_:
        raise TypeError(f"{name}: wants numbers, got bool; {instead}")


def _refused(node: Node, value: int, extent: int) -> DivisorError | ArgumentError:
    if "name" not in node.attrs:
        return ArgumentError(node.attrs["refusal"])
    return DivisorError(f"{node.attrs['name']}: ZeroDivisionError: an integer is divided by 0; want other divisors, or floats")


def _divisor_reference(node: Node, divisor: np.ndarray) -> np.ndarray:
    if not np.all(divisor):
        raise _refused(node, 0, 0)
    return divisor


primitive("check_divisor", "elementwise", reference=_divisor_reference, fault=_refused, exact=True)


def nonzero_divisor(name: str, y: Value) -> Value:
    """`y`; if it is an integer that may be 0, the program raises DivisorError (a RuntimeError) when it is."""
    if y.dtype.category != 1:
        return y
    source = y.node
    while source.op == "view":
        source = y.graph.nodes[source.inputs[0]]
    # A replay may put 0 into a scalar slot: checked once, before the loop.
    if source.op == "check_divisor" or (source.op == "constant" and source.attrs["value"] != 0):
        return y
    return y.graph.add("check_divisor", (y,), y.shape, y.dtype, {"name": name})


def checked(condition: Value, refusal: str) -> Value:
    """A condition; the program raises ArgumentError where it does not hold."""
    number = cast(condition, int64)
    return cast(number.graph.add("check_divisor", (number,), number.shape, number.dtype, {"refusal": refusal}), bool_)


def _with_whole_numbers(given: list[Value], *operands: Value) -> tuple[Value, ...]:
    """The 16-bit operands; widened if one of them is a number that 16 bits would round."""
    wide = operands[0].dtype.compute
    if not any(was.shape == () and _is_rounded(was, wide, now.dtype) for was, now in zip(given, operands, strict=True)):
        return operands
    return tuple([cast(was if was.shape == () else now, wide) for was, now in zip(given, operands, strict=True)])


def _is_rounded(number: Value, wide: DType, narrow: DType) -> bool:
    """Whether a number, or a 0-d tensor, has digits in `wide` that `narrow` lacks."""
    if number.node.op != "constant":
        return number.node.op == "scalar" or (number.dtype.category == 2 and number.dtype.itemsize > narrow.itemsize)
    value = np.asarray(number.node.attrs["value"]).astype(wide.numpy)
    return bool(value.astype(narrow.numpy).astype(wide.numpy) != value)


def _elementwise(
    operands: int, name: str, *, grad: Gradient | None = None, ref: Reference, emit: Emitter | None = None,
    result: DType | None = None, floating: bool = False, cost: int = 1, exact: bool = False, vector: str | None = None,
    cuda: str | None = None, doc: str | None = None, autocast: Policy | None = None, bools: str = "", divides: bool = False,
    whole_numbers: bool = False, **names: Unpack[Names],
) -> Operation:
    """A row of one input or of two, promoted to one dtype and broadcast.

    `floating`: integers become the default float first. `result`: the dtype, if not the input's. `bools`: what to use instead
    for bools, if they are not supported. `divides`: the second operand is a divisor, which must not be the integer 0.
    `whole_numbers`: a number combined with 16-bit operands keeps the digits of float32. A `vector` function is the `math`
    function of that name on a GPU, unless `cuda` is given.
    """
    cuda = cuda or (f"math.{name}({', '.join(['{0}', '{1}'][:operands])})" if vector else None)
    primitive(name, "elementwise", grad=grad, reference=lambda node, *arrays: ref(*arrays), emit=emit, cost=cost, exact=exact,
              vector=vector, cuda=cuda)

    def one(input: Value) -> Value:
        (x,) = as_values(input)
        if floating:
            x = cast(x, floating_dtype(x.dtype))
        _refuse_bools(name, x.dtype, bools)
        return x.graph.add(name, (x,), x.shape, result or (x.dtype.real if name == "abs" else x.dtype))

    def two(input: Value, other: Value) -> Value:
        x, y = promoted(input, other, floating=floating)
        dtype = x.dtype
        if whole_numbers and dtype.compute is not dtype and dtype.category == 2:
            x, y = _with_whole_numbers(as_values(input, other), x, y)
        x, y = broadcast(name, x, y)
        _refuse_bools(name, x.dtype, bools)
        made = x.graph.add(name, (x, nonzero_divisor(name, y) if divides else y), x.shape, result or x.dtype)
        return made if result else cast(made, dtype)

    names = names if operands == 1 and result else Names(in_place=True) | names
    return composite(name, operands, ref=ref, doc=doc, autocast=autocast, **names)(one if operands == 1 else two)


unary = partial(_elementwise, 1, floating=True)
binary = partial(_elementwise, 2)


def formula(
    name: str, expression: AnyFunction, doc: str | None = None, operands: int = 1, *, wide: bool = False,
    ref: Reference | None = None, static_scalars: bool = False, autocast: Policy | None = None, **names: Unpack[Names],
) -> Operation:
    """A composite that is one expression, a lambda. With `wide` it runs in the compute dtype and rounds at the end.

    Parameters without a default are operands; those with one are settings of its type.
    """
    code = expression.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = (*(expression.__defaults__ or ()), *(expression.__kwdefaults__ or {}).values())
    for position, default in enumerate(defaults, len(parameters) - len(defaults)):
        expression.__annotations__[parameters[position]] = "Value | float" if position < operands else type(default).__name__
    row = composite(name, operands, ref=ref, static_scalars=static_scalars, doc=doc, autocast=autocast, **names)
    return row(rounded_once(expression) if wide else expression)


def compare(name: str, ref: Reference, **names: Unpack[Names]) -> Operation:
    """A row of two inputs with a bool result and no gradient."""
    return binary(name, ref=ref, result=bool_, **Names(operator=name) | names)


def logical(name: str, ref: Reference, emit: Emitter, **names: Unpack[Names]) -> Operation:
    """A row of two inputs read as truth values."""
    primitive(name, "elementwise", reference=lambda node, x, y: ref(x, y), emit=emit)

    @composite(name, 2, ref=ref, **Names(in_place=True) | names)
    def define(input: Value, other: Value) -> Value:
        x, y = broadcast(name, *(cast(v, bool_) for v in as_values(input, other)))
        return x.graph.add(name, (x, y), x.shape, bool_)

    return define


def integral(
    name: str, ref: Reference, doc: str | None = None, *, bools: str = "", kind: str = "elementwise", cost: int = 1,
    formula: Callable[..., Value] | None = None, **names: Unpack[Names],
) -> Operation:
    """A row of two integers (or bools, unless there is an alternative for them)."""
    primitive(name, kind, reference=lambda node, x, y: ref(x, y), cost=cost, formula=formula)

    @composite(name, 2, ref=ref, doc=doc, **Names(in_place=True) | names)
    def define(input: Value, other: Value) -> Value:
        x, y = promoted(input, other)
        if x.dtype.is_floating_point:
            raise UnsupportedTypeError(f"{name}: wants integer{'' if bools else ' or bool'} tensors, got {x.dtype.name}")
        _refuse_bools(name, x.dtype, bools)
        x, y = broadcast(name, x, y)
        return x.graph.add(name, (x, y), x.shape, x.dtype)

    return define
