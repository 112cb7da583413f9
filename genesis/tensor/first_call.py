"""The first call at a step of the trie: an operation's definition runs on Values. Later calls find the step by its key."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, as_dtype, dtype_of_scalar, refuse_number, refuse_stored
from genesis.ir.errors import PLAIN, ArgumentTypeError, NoTensorError, UnsupportedTypeError, also_runtime_error
from genesis.ir.graph import Graph, Value
from genesis.ops.autocast import recast
from genesis.ops.complex_operations import refuse_complex
from genesis.ops.layout import LAYOUT_RULES
from genesis.ops.registry import Operation
from genesis.ops.signatures import numbers_of, parameter_names
from genesis.tensor.handle import CallArguments, Tensor, tensors_in
from genesis.tensor.return_types import named
from genesis.tracing.families import form_of_call
from genesis.tracing.recording_hooks import unwatched
from genesis.tracing.token import argument_of
from genesis.tracing.trace import Trace
from genesis.tracing.trie import BYTE_LIMIT, Key, TrieNode

_MOVES = frozenset({*LAYOUT_RULES, "view_at", "clone"})  # operations on every dtype, including storage-only ones


@unwatched
def defined(trace: Trace, operation: Operation, arguments: CallArguments, attributes: Attributes | None, key: Key) -> TrieNode:
    """The step of a call that is new at this point of the trie, and whose line is noted already."""
    given = [*arguments, *(attributes or {}).values()]
    _refuse_others(operation, given)
    operands = operation.operands
    grad, low = key[1] if key[1].__class__ is tuple else (key[1], None)

    def build(graph: Graph, key: Key) -> Any:
        values = [argument_of(token, graph.value) for token in key[2 : 2 + len(arguments)]]
        chosen = {name: argument_of(token, graph.value) for name, token in key[-1]} if attributes else {}
        values, chosen = _with_named_dtype(operation, values, chosen)
        if not any([isinstance(v, Value) for v in values]):
            values = [graph.constant(v, dtype_of_scalar(v), weak=True)
                      if i in operands and isinstance(v, int | float | complex) else v
                      for i, v in enumerate(values)]
        if low is not None:
            values, chosen = recast(operation, low, values, chosen)
        start = len(graph)
        result = operation.define(*values, **chosen)
        refuse_complex(operation.name, graph.nodes, start)
        if operation.is_view or operation.name in _MOVES:
            return result
        return named(operation.name, _without_operands(result, values))

    try:
        step = trace.advance(key, build, grad=grad, form=form_of_call(key))
    except BaseException as problem:
        trace.lines.pop()
        if (met := _met_no_tensor(problem, arguments, given)) is not None:
            raise ArgumentTypeError(f"{operation.name}: wants a tensor, got {met}") from None
        if type(problem) in PLAIN:
            raise also_runtime_error(problem) from None  # not bound to a name, as its traceback refers to this frame
        raise
    results = (step.result,) if isinstance(step.result, int) else step.result
    # As much as in later calls, so that a long program is split at the same calls. Larger values may never be materialized.
    nbytes = min(sum([trace.nodes[i].nbytes for i in results]), BYTE_LIMIT // 16)
    step.weight += nbytes
    trace.weight += nbytes
    step.elements = _elements(operation, trace.nodes[results[0]].dtype)
    if step.elements:
        refuse_elements(trace, operation, arguments, attributes)
        tokens = dict(zip(parameter_names(operation), key[2 : 2 + len(arguments)], strict=False))
        step.elements = tuple([name for name in step.elements if tokens.get(name).__class__ is not tuple])  # as of 0 and 1
    return step


def _elements(operation: Operation, dtype: DType) -> tuple[str, ...]:
    """The arguments whose numbers must be in range of the result's dtype.

    The operands and factors of a floating result are rounded after the arithmetic alone.
    """
    if dtype.category == 1:
        return operation.elements
    rounded = ("input", "other", "alpha", *operation.numbers_between)
    return tuple([name for name in operation.elements if name not in rounded]) if dtype.itemsize == 2 else ()


def _with_named_dtype(operation: Operation, arguments: list[Any], attributes: Attributes) -> tuple[list[Any], Attributes]:
    """The arguments with a named dtype as a DType."""
    if "dtype" not in parameter_names(operation):
        return arguments, attributes
    asked = {**dict(zip(parameter_names(operation), arguments, strict=False)), **attributes}.get("dtype")
    if asked is None:
        return arguments, attributes
    dtype = as_dtype(operation.name, asked)
    refuse_stored(operation.name, dtype)
    if dtype is not asked:
        arguments = [dtype if argument is asked else argument for argument in arguments]
        attributes = {name: dtype if value is asked else value for name, value in attributes.items()}
    return arguments, attributes


def _refuse_others(operation: Operation, arguments: CallArguments) -> None:
    """Raise TypeError for unsupported arguments: storage-only dtypes, complex numbers, Values of a graph."""
    tensors = tensors_in(arguments)
    if operation.name not in _MOVES:
        for tensor in tensors:
            refuse_stored(operation.name, tensor.dtype)
    if not operation.takes_complex and (
        any([tensor.dtype.is_complex for tensor in tensors]) or any([isinstance(a, complex) for a in arguments])
    ):
        raise UnsupportedTypeError(
            f"{operation.name}: takes real numbers, got complex ones; take their real or imag, abs() or angle()")
    if any([isinstance(argument, Value) for argument in arguments]):
        raise ArgumentTypeError(f"{operation.name}: takes tensors, got a Value of a graph; in the definition of an operation "
                                f'want the row, genesis.ops.OPERATIONS["{operation.name}"]')


def _met_no_tensor(problem: BaseException, arguments: CallArguments, given: CallArguments) -> str | None:
    """The types that a definition got instead of a tensor, if that is why it failed."""
    if isinstance(problem, AttributeError | AssertionError | NoTensorError) and not tensors_in(given):
        return ", ".join([type(argument).__name__ for argument in arguments]) or "nothing"
    if isinstance(problem, AttributeError) and isinstance(problem.obj, str | float | int | tuple | list):
        return type(problem.obj).__name__
    return None


def _without_operands(result: Any, values: list[Any]) -> Any:
    """A definition's result, copied if it is a 0-d operand itself, as a sort or a sum along an axis returns it."""
    if isinstance(result, Value):
        given = not result.shape and any(isinstance(value, Value) and value.index == result.index for value in values)
        return result.graph.add("clone", (result,), (), result.dtype) if given else result
    if isinstance(result, tuple) and not any(value is result for value in values):
        parts = [_without_operands(part, values) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result


def reads_numbers(operation: Operation, arguments: CallArguments, attributes: Attributes | None) -> bool:
    """Whether a tensor is among the arguments where the operation takes a number."""
    if not (numbers := numbers_of(operation)):
        return False
    positional = zip(parameter_names(operation), arguments, strict=False)
    return any([name in numbers and holds_tensor(argument) for name, argument in [*positional, *(attributes or {}).items()]])


def with_numbers_read(
    operation: Operation, arguments: CallArguments, attributes: Attributes | None
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call with tensors of one element read where the operation takes a number.

    Raises TypeError for a tensor of several elements there.
    """
    numbers = numbers_of(operation)
    positional = list(zip(parameter_names(operation), arguments, strict=False))

    def read(name: str, argument: Any) -> Any:
        return number_in(operation.name, name, argument) if name in numbers else argument

    extra = arguments[len(positional) :]
    named = (attributes or {}).items()
    return [*[read(*given) for given in positional], *extra], {name: read(name, argument) for name, argument in named}


def refuse_elements(trace: Trace, operation: Operation, arguments: CallArguments, attributes: Attributes | None) -> None:
    """ValueError for an argument of a trace's last call that became elements of the result, whose dtype does not hold it."""
    step, positional = trace.step, zip(parameter_names(operation), arguments, strict=False)
    for name, argument in [*positional, *(attributes or {}).items()]:
        if name in step.elements:
            refuse_number(operation.name, argument, trace.nodes[step.result].dtype)


def holds_tensor(argument: object) -> bool:
    """Whether an argument is a tensor or a list of some."""
    return isinstance(argument, Tensor) or (isinstance(argument, list | tuple) and any(map(holds_tensor, argument)))


def holds_number(argument: object) -> bool:
    """Whether an argument is a tensor or a number of NumPy's, or a list with some: `number_in` reads it."""
    if isinstance(argument, list | tuple):
        return any(map(holds_number, argument))
    return isinstance(argument, Tensor | np.generic)


def number_in(operation: str, name: str, argument: Any) -> Any:
    """The number in a tensor of one element, which is read; anything else unchanged. Raises TypeError."""
    if isinstance(argument, np.generic):
        return argument.item()
    if isinstance(argument, list | tuple):
        return [number_in(operation, name, item) for item in argument]
    if not isinstance(argument, Tensor):
        return argument
    if argument.numel() != 1:
        raise TypeError(f"{operation}: {name} takes a number, got a tensor of shape {argument.shape}")
    return argument.item()
