"""Dispatch: from a call on Tensors to a step of the trace.

Calling an operation records it; values are computed when Python reads one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from types import CodeType
from typing import Any

import numpy as np

from genesis.execution.flush import flush
from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, from_numpy_dtype
from genesis.ir.graph import plain_number
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import OPERATIONS, Operation
from genesis.ops.signatures import in_positions, operand_names
from genesis.runtime.devices import CPU, Device
from genesis.tensor.composite import NotDenseError
from genesis.tensor.first_call import defined, reads_numbers, refuse_elements, with_numbers_read
from genesis.tensor.handle import (
    CallArguments, Tensor, all_pending, detached_root, from_values, mark_inference, result_class, root_of, spreading, tensor_of,
    tensors_in,
)
from genesis.tensor.in_memory import filled_in_memory
from genesis.tensor.known_calls.calls import KnownCalls
from genesis.tensor.long_traces import flush_if_long
from genesis.tensor.new_programs import ended_before
from genesis.tensor.size import Size
from genesis.tensor.trace_inputs import enter
from genesis.tensor.traced_number import Number, plain
from genesis.tensor.transfer import sent
from genesis.tensor.varying_offsets import with_offset_as_argument
from genesis.tensor.versions import retain_at
from genesis.tensor.view_memory import array_in_root, array_over, is_whole
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.source_line import user_line
from genesis.tracing.state import grad_mode, open_trace, thread_state
from genesis.tracing.tensor_state import EXPOSED
from genesis.tracing.token import Token, of_complex, of_float
from genesis.tracing.trace import BUSY, LOCK, Array, Trace
from genesis.tracing.trie import Key

_PLAIN = frozenset({int, float, bool, str, type(None)})
LITERALS = (0, 1, -1)  # numbers that are part of programs
_DISTINCT = frozenset({int, str, type(None)})  # types whose equal values are interchangeable, unlike 1, 1.0 and True


def array_of(tensor: Tensor) -> Array:
    """The present array of `tensor`. A view re-reads its root's memory if the root has changed."""
    base = tensor._base
    if base is None:
        return tensor._array
    if base._changes == tensor._seen:
        return array_in_root(tensor, base)
    base = root_of(tensor)
    if base._changes != tensor._seen:
        _refresh(tensor, base)
    return tensor._array


def _refresh(view: Tensor, root: Tensor) -> None:
    """Give a view the array of its elements in the root's present memory or value."""
    if (holder := detached_root(view)) is not view and array_of(holder).node.differentiable:
        with grad_mode(True):
            whole = holder.as_strided(*contiguous_layout(root.shape))
            view._array, view._requires_grad, view._seen = read_by(view, whole)._array, True, root._changes
        return
    memory, mapped, changes = root._array.memory, view._element_map, root._changes  # a finalizer may write from here on
    unwritten = (changes - view._seen) % EXPOSED == 0  # so the view keeps its derivation
    outside = memory is not None and memory.buffer.shared
    if unwritten and memory is None:  # its root alone is another one
        view._seen = changes
        return
    aliases = memory is not None and (unwritten or view._detached or not root._requires_grad) and (outside or mapped is None)
    if aliases:
        # The memory itself, not a copy: the outside may write to it, and writes are counted.
        there = memory.at(view.storage_layout, view.dtype, root.dtype)  # type: ignore[union-attr]
        refreshed = array_over(view._array, there if mapped is None else there.mapped(mapped, view.dtype), unwritten)
    elif view._detached and not root._array.node.differentiable and is_whole(view, root):
        refreshed = root._array
    else:
        # It keeps its derivation even under no_grad, as it may be used outside of that later.
        derived = view._array.node.differentiable or (root._requires_grad and not view._detached)
        with grad_mode(derived or thread_state.grad_enabled):
            read = read_by(view, root)
            refreshed = (call(OPERATIONS["stop_gradient"], (read,)) if view._detached else read)._array
    if view._detached and view._array.node.differentiable and not (unwritten and aliases):
        with grad_mode(True):  # the derivation of what was written through the view
            refreshed = call(OPERATIONS["with_value"], (tensor_of(view._array, True), tensor_of(refreshed)))._array
    if view._array.node.differentiable or refreshed.node.differentiable:
        view._requires_grad = refreshed.node.differentiable
    if view._retains_grad and not unwritten:
        with grad_mode(True):  # a value of its own: a view of the whole is the root's, or another view's
            refreshed = call(OPERATIONS["clone"], (tensor_of(refreshed, True),))._array
        retain_at(view, refreshed)
    view._array = refreshed
    view._seen = changes
    if mapped is not None and outside:  # a computed value would miss writes from outside
        view._seen -= EXPOSED


def read_by(view: Tensor, root: Tensor) -> Tensor:
    """The elements of `root`, a whole storage, that `view` has in it."""
    name, *more = ("view_at",) if view.dtype is root.dtype else ("part_at", view.dtype)
    read: Tensor = call(OPERATIONS[name], (root, view._layout, *more))
    return read if view._element_map is None else call(OPERATIONS[view._element_map], (read,))  # type: ignore[no-any-return]


def _position(trace: Trace, tensor: Tensor) -> int:
    """The position of a tensor in the open trace."""
    if trace.backward_done and tensor._requires_grad and thread_state.grad_enabled:  # a new forward begins a new trace
        trace.closed = True  # `call` restarts
        flush(trace)
        return -1
    base = tensor._base
    if base is None:
        return enter(trace, tensor, tensor._array, True)
    if base._changes == tensor._seen:
        return enter(trace, tensor, array_in_root(tensor, base), True)
    if trace.closed is not BUSY:  # closed by an earlier argument: `call` restarts
        return -1
    trace.closed = False  # the view re-reads by a call of its own
    array = array_of(tensor)
    if trace.closed:
        return -1
    trace.closed = BUSY
    return enter(trace, tensor, array, True)


def _token(trace: Trace, argument: Any, operand: bool, static: bool) -> Token:
    """An argument's part of a step's key: the position of a tensor, or the value of a static argument."""
    kind = type(argument)
    if kind is float or kind is int or kind is bool:
        if operand and not static and (argument not in LITERALS or (argument == 0 and copysign(1.0, argument) < 0)):
            return trace.enter_scalar(argument)
        return of_float(argument) if kind is float and not argument > 0 else (kind, argument)
    if kind is str or kind is DType or argument is None:
        return argument
    if isinstance(argument, Tensor):
        return _position(trace, argument)
    if kind is list or kind is tuple:
        if argument and isinstance(argument[0], Tensor):
            return "tensors", *[_token(trace, member, False, True) for member in argument]
        if not _DISTINCT.issuperset(map(type, argument)):
            argument = [member.item() if isinstance(member, np.generic) else member for member in argument]
        if _DISTINCT.issuperset(map(type, argument)):
            return tuple(argument)
        if _PLAIN.issuperset(map(type, argument)):
            return tuple([_token(trace, member, False, True) for member in argument])
        if any([isinstance(a, Tensor) for a in argument]):
            return "tensors", *[_token(trace, member, False, True) for member in argument]
        if thread_state.recorder is not None:
            argument = plain(argument)
        return tuple([tuple(a) if isinstance(a, list) else a for a in argument])
    if kind is Number:
        is_operand = operand and not static
        return argument.recorder.scalar(trace, argument) if is_operand else _token(trace, argument.fixed(), operand, static)
    if isinstance(argument, np.generic):
        return _token(trace, argument.item(), operand, static)
    if isinstance(argument, np.ndarray):
        refuse("the values of a NumPy array are read")
        return _position(trace, from_values(argument, from_numpy_dtype(argument.dtype), trace.device))
    if kind is complex:
        return of_complex(argument)
    if isinstance(argument, int | float | complex):  # of a class of its own, it would equal others, and positions
        return _token(trace, plain_number(argument), operand, static)
    is_listed = isinstance(argument, list) or (isinstance(argument, tuple) and any([isinstance(a, Tensor) for a in argument]))
    return _token(trace, [*argument], operand, static) if is_listed or kind is Size else argument


def _token_of_argument(trace: Trace, operation: Operation | None, position: int, argument: Any) -> Token:
    """The token of the argument at a position; without an operation, of a member of a list of tensors."""
    if not isinstance(argument, Tensor):
        if operation is None:
            return _token(trace, argument, False, True)
        return _token(trace, argument, position in operation.operands, operation.static_scalars)
    array = argument._array
    if array.trace is trace and argument._base is None and (array.node.differentiable or not argument._requires_grad):
        return array.index
    return _position(trace, argument)


def call(
    operation: Operation, arguments: CallArguments, attributes: Attributes | None = None, bare: bool = False,
    target: Tensor | None = None,
) -> Any:
    """Record a call of `operation`; returns Tensors for its results, or, if `bare`, the arrays of several.

    A repeated call takes a position for each argument, one look-up and one handle. If it returns the `target`, that has taken
    the result already.
    """
    if attributes:
        arguments, attributes = in_positions(operation, arguments, attributes)
    return known.call(operation, arguments, attributes, bare, target)


def _by_python(
    operation: Operation, arguments: CallArguments, attributes: Attributes | None, bare: bool, target: Tensor | None = None
) -> Any:
    """`known.call`, by Python: the target takes nothing yet."""
    try:
        return _recorded(operation, arguments, attributes, bare)
    except NotDenseError as problem:  # no cost if all are dense
        met = problem
    return _by_parts(met, operation, arguments, attributes)


def _by_parts(problem: NotDenseError, operation: Operation, arguments: CallArguments, attributes: Attributes | None) -> Any:
    """The result of a call that has met a tensor made of others."""
    return problem.tensor.computed(operation.name, arguments, attributes or {})


def _recorded(operation: Operation, arguments: CallArguments, attributes: Attributes | None, bare: bool) -> Any:
    """`call` of positional arguments, and of others that the row takes by name alone."""
    with LOCK:
        state = thread_state.__dict__  # one look-up: each attribute of a thread-local costs as much
        trace = state["trace"]
        if trace is None or trace.closed:
            if state["multi_device"]:
                device = None if attributes else _one_device(arguments)
                if device is None:
                    device, arguments, attributes = _gathered(operation.name, arguments, attributes)
                trace = open_trace(device)
            else:
                trace = open_trace()
        # Until the result's handle exists, signal handlers and finalizers find the trace BUSY, and record into their own.
        trace.closed = BUSY
        try:
            mode: Token = state["grad_enabled"]
            if operation.autocast is not None and (low := thread_state.autocast) is not None:
                mode = mode, low
            code, offset = user_line()
            key: Key = (operation, mode, *[_token_of_argument(trace, operation, k, a) for k, a in enumerate(arguments)])
            result = _continued(trace, key, operation, arguments, attributes, bare, code, offset)
        finally:
            if trace.closed is BUSY:
                trace.closed = False
        if trace.weight > trace.limit:
            flush_if_long(trace, operation, code, offset)
        return result


def _continued(
    trace: Trace, key: Key, operation: Operation, arguments: CallArguments, attributes: Attributes | None, bare: bool,
    code: CodeType | None, offset: int,
) -> Any:
    """The result of a call in a trace that is BUSY; `key` has the tokens of its positional arguments."""
    if attributes:
        names, static = operand_names(operation), operation.static_scalars
        given = [(k, _token(trace, v, k in names, static)) for k, v in attributes.items() if v is not None]
        key = *key, tuple(given)
    if trace.closed is not BUSY:  # closed by a view's refresh, a call too many, or by another device
        return call(operation, arguments, attributes, bare)
    if key not in trace.step.children:
        filled = filled_in_memory(trace, arguments, code, offset) if operation.fills and not bare else None
        if filled is not None:
            return filled
        if again := _otherwise(trace, key, arguments, attributes, code, offset):
            trace.closed = trace.done
            return call(*again, bare)
    trace.lines.append((len(trace.nodes), code, offset, thread_state.scope, key))
    result = _stepped(trace, key, operation, arguments, attributes, bare)
    if thread_state.grad_enabled is None and not bare:
        mark_inference(result)
    return result


known = KnownCalls(
    "genesis_call", _by_python, _continued, _token_of_argument, flush_if_long, refuse_elements, _by_parts, NotDenseError)


def _stepped(
    trace: Trace, key: Key, operation: Operation, arguments: CallArguments, attributes: Attributes | None, bare: bool
) -> Any:
    """The result of the call `key`, which becomes the trace's next step."""
    step = trace.step.children.get(key)
    if step is None:
        step = defined(trace, operation, arguments, attributes, key)
    else:
        trace.append(step)
        if step.elements:
            refuse_elements(trace, operation, arguments, attributes)
    if bare:
        return trace.handles(step.result)
    kind = result_class([*arguments, *(attributes or {}).values()]) if spreading else Tensor
    return all_pending(trace, step.result, kind)


def _otherwise(
    trace: Trace, key: Key, arguments: CallArguments, attributes: Attributes | None, code: CodeType | None, offset: int
) -> tuple[Operation, CallArguments, Attributes | None] | None:
    """The call to make instead of one that is new here: with numbers for tensors, a view's offset as an argument, or alone."""
    operation = key[0]
    if reads_numbers(operation, arguments, attributes):
        return operation, *with_numbers_read(operation, arguments, attributes)
    with_argument = with_offset_as_argument(trace, key, arguments, attributes, code, offset)
    return (operation, arguments, attributes) if with_argument is None and ended_before(trace) else with_argument


def _one_device(arguments: CallArguments) -> Device | None:
    """The common device of the tensors among the arguments; None if they are on several, or there are none."""
    devices = {array_of(tensor).device for tensor in tensors_in(arguments)}
    return devices.pop() if len(devices) == 1 else None


def _gathered(
    name: str, arguments: CallArguments, attributes: Attributes | None
) -> tuple[Device, CallArguments, Attributes | None]:
    """The device of a call, which is that of its tensors, and its arguments there: 0-d tensors on the CPU are sent.

    Raises RuntimeError for other tensors on different devices.
    """
    tensors = tensors_in([*arguments, *(attributes or {}).values()])
    devices = {t: array_of(t).device for t in tensors}
    fixed = [t for t in tensors if t.shape or devices[t] is not CPU]
    if not fixed:
        return CPU if tensors else thread_state.device, arguments, attributes
    device = devices[fixed[0]]
    for tensor in fixed:
        if devices[tensor] is not device:
            raise RuntimeError(
                f"{name}: Expected all tensors to be on the same device, but found at least two devices, {device} and "
                f"{devices[tensor]}! (the latter has shape {tensor.shape}); Tensor.to() copies to another"
            )
    numbers = [t for t in devices if devices[t] is not device]
    if numbers:
        there = dict(zip(numbers, moved(numbers, device), strict=True))
        arguments = [_swapped(a, there) for a in arguments]
        attributes = {k: _swapped(v, there) for k, v in attributes.items()} if attributes else attributes
    return device, arguments, attributes


def _swapped(argument: object, there: dict[Tensor, Tensor]) -> object:
    if isinstance(argument, Tensor):
        return there.get(argument, argument)
    return [_swapped(a, there) for a in argument] if argument.__class__ in (list, tuple) else argument


def moved(tensors: Sequence[Tensor], device: Device) -> list[Tensor]:
    """The tensors, copied to `device` if they are elsewhere; gradients of copies return to the originals' devices."""
    arrays = [array_of(t) for t in tensors]
    grad = thread_state.grad_enabled
    leaves = [t if grad and t._requires_grad and not a.node.differentiable else None
              for t, a in zip(tensors, arrays, strict=True)]
    copies = sent(arrays, device, leaves)
    return [t if copy is array else tensor_of(copy, copy.node.differentiable, result_class(t))
            for t, array, copy in zip(tensors, arrays, copies, strict=True)]
