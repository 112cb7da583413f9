"""Tensor: a handle on an array plus autograd state. No numerics live here.

Calling an operation records it in the trace; values are computed when one is looked at. Tensors that share storage
share a root: a view knows the root and its layout in it, and looks again when the root has been written to
(`genesis.storage` makes views and writes).
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.devices import CPU, Device, device_of
from genesis.execute import flush, realize
from genesis.ir.dtypes import DType, dtype_of_scalar, from_numpy_dtype, get_default_dtype
from genesis.ir.shapes import Shape
from genesis.literals import as_numpy
from genesis.ops.autocast import recast
from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.registry import OPERATIONS, Operation
from genesis.runtime.memory import Buffer
from genesis.trace import (
    BYTE_LIMIT,
    LOCK,
    Array,
    Memory,
    Step,
    Trace,
    current_trace,
    grad_mode,
    recording,
    thread_state,
    user_line,
)
from genesis.transfer import sent

__all__ = [
    "Tensor", "array_of", "attribute", "call", "call_on", "from_data", "from_memory", "gradient_holders", "hold_gradient",
    "method", "moved", "place", "result_class", "spreads", "tensor_of",
]

_SNAPSHOT_BYTES = 1 << 20


class Tensor:
    """A multi-dimensional array of one dtype that remembers how it was made.

    Built by `genesis.tensor` and by operations. Reads like a `torch.Tensor`.
    """

    __array_priority__ = 1000  # `ndarray + tensor` is a tensor

    # Defaults of what most tensors never set.
    _base: Tensor | None = None  # the root whose storage this views
    _layout: Layout | None = None  # where in the root
    _detached: bool = False
    _within: bool = False  # a view of a detached tensor
    _untracked: bool = False  # `.data`: backward does not mind what is written through it
    _version: int = 0
    _seen: int = 0
    _grad: Tensor | None = None
    _retains_grad: bool = False
    _is_holder: bool = False
    _hooks: dict[int, Callable[..., Any]] | None = None  # a leaf's; those of results are the trace's
    _post_hooks: dict[int, Callable[..., Any]] | None = None
    _node_hooks: Any = None
    _keeps_derivation: bool = False  # writes change the values alone: the gradients that create_graph leaves in .grad

    _array: Array
    _requires_grad: bool
    _result_class: type[Tensor]  # of what operations on it return

    def __init__(
        self, array: Any, *options: Any, device: Any = None, dtype: DType | None = None, requires_grad: bool = False,
        **parameters: Any,
    ) -> None:
        """A tensor with a copy of `array`: nested lists, numbers, a NumPy array or a tensor.

        `dtype`, `device` and `requires_grad` may be given by position, in any order; other parameters are ignored.
        """
        for option in options:
            if isinstance(option, DType):
                dtype = option
            elif isinstance(option, bool):
                requires_grad = option
            elif option is not None:
                device = option
        made = from_data(array, dtype, requires_grad, device)
        self._array, self._requires_grad = made._array, made._requires_grad

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # methods that genesis.methods attaches

        def __add__(self, other: Any, /) -> Tensor: ...

        __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = __add__
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = __add__
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = __add__

        def __eq__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]

        def __ne__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]

        def __neg__(self) -> Tensor: ...

        __abs__ = __invert__ = __pos__ = __neg__

        def __getitem__(self, index: Any, /) -> Tensor: ...

        def __setitem__(self, index: Any, value: Any, /) -> None: ...

    # ---- what it is ----

    @property
    def shape(self) -> Shape:
        """The extents, as a tuple of ints."""
        return self._array.node.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._array.node.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._array.node.shape)

    @property
    def requires_grad(self) -> bool:
        """True if gradients flow to (a leaf) or through (a result) this tensor."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, enabled: bool) -> None:
        if enabled and not self.dtype.is_floating_point:
            raise TypeError(f"requires_grad: only floating tensors can require gradients, this one is {self.dtype.name}")
        if not enabled and not self.is_leaf:
            raise RuntimeError("requires_grad: only a leaf can stop requiring gradients; use detach()")
        self._requires_grad = bool(enabled)

    @property
    def is_leaf(self) -> bool:
        """True unless an operation that carries gradients made it."""
        return not array_of(self).node.differentiable

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated by `backward()`, or None."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad: wants a Tensor or None, got {type(value).__name__}")
            if value.shape != self.shape:
                raise ValueError(f"grad: shape {value.shape} does not match the tensor's {self.shape}")
            if value.dtype is not self.dtype:
                raise TypeError(f"grad: dtype {value.dtype.name} does not match the tensor's {self.dtype.name}")
            if array_of(value).device is not array_of(self).device:
                raise RuntimeError(f"grad: is on {array_of(value).device}; want the tensor's {array_of(self).device}")
        hold_gradient(self, value)

    @property
    def layout(self) -> Layout:
        """Shape, strides and offset in the elements of the storage."""
        return self._layout or contiguous_layout(self.shape)


Tensor._result_class = Tensor
_spreading: set[type[Tensor]] = set()  # classes, of tensors made so far, whose operations return another than Tensor


def spreads(kind: type[Tensor]) -> None:
    """From now on a tensor of class `kind` may be among the arguments of an operation and decide on its results' class."""
    _spreading.add(kind)


def result_class(argument: Any, otherwise: type[Tensor] = Tensor) -> type[Tensor]:
    """The class of results that `argument`, a tensor or a sequence of them, decides on; `otherwise` if it does not."""
    if isinstance(argument, Tensor):
        return otherwise if argument._result_class is Tensor else argument._result_class
    if isinstance(argument, list | tuple):
        for member in argument:
            otherwise = result_class(member, otherwise)
    return otherwise


def tensor_of(array: Array, requires_grad: bool = False, kind: type[Tensor] = Tensor) -> Tensor:
    """The tensor of an array: the constructor that tracing uses."""
    tensor = _new(kind)
    tensor._array = array
    tensor._requires_grad = requires_grad
    return tensor


_new = object.__new__
_holders: list[weakref.ref[Tensor]] = []  # without callbacks: an interrupt within one would be lost
_FEW = 64


def hold_gradient(tensor: Tensor, gradient: Tensor | None) -> None:
    """Put `gradient` into `.grad`, and the tensor among those that `gradient_holders` lists as long as they live."""
    tensor._grad = gradient
    if gradient is not None and not tensor._is_holder:
        with LOCK:
            tensor._is_holder = True
            _holders.append(weakref.ref(tensor))
            if len(_holders) >= _FEW and len(_holders) & (len(_holders) - 1) == 0:  # at each doubling the dead are dropped
                _holders[:] = [reference for reference in _holders if reference() is not None]


def gradient_holders() -> list[Tensor]:
    """The living tensors of all threads that hold a gradient."""
    held = [reference() for reference in _holders]
    return [tensor for tensor in held if tensor is not None and tensor._grad is not None]


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a function of a Tensor becomes the method of Tensor that bears its name."""
    setattr(Tensor, function.__name__, function)
    return function


def attribute(function: Callable[..., Any]) -> property:
    """Decorator: a function of a Tensor becomes the property of Tensor that bears its name."""
    made = property(function)
    setattr(Tensor, function.__name__, made)
    return made


# ---- dispatch: from a call on Tensors to a step of the trace ----


def array_of(tensor: Tensor) -> Array:
    """The array that `tensor` holds now; a view whose root was written to looks again."""
    base = tensor._base
    if base is not None and base._version != tensor._seen:
        held = base._array.memory
        if held is not None and held.buffer.shared and (tensor._detached or not base._requires_grad):
            found = held.at(tensor.layout, tensor.dtype)  # not what lies there now: the outside may write to it
            refreshed = Array.realized(found.buffer, found.layout, tensor.dtype)
        else:
            whole = call(OPERATIONS["view_at"], (base, tensor._layout))
            refreshed = (call(OPERATIONS["stop_gradient"], (whole,)) if tensor._detached else whole)._array
        if tensor._array.node.differentiable or refreshed.node.differentiable:
            tensor._requires_grad = refreshed.node.differentiable
        tensor._array = refreshed
        tensor._seen = base._version
    return tensor._array


def _place(trace: Trace, tensor: Tensor) -> int:
    return place(trace, tensor, tensor._array if tensor._base is None else array_of(tensor))


def place(trace: Trace, tensor: Tensor, array: Array) -> int:
    """The position in `trace` of `array`, which `tensor` holds or held."""
    if array.trace is not trace:
        if array.memory is None:
            realize(array)
        buffer = array.memory.buffer  # type: ignore[union-attr]
        if buffer.device is not trace.device:  # the first in this thread: begin the call anew, and look at devices first
            thread_state.several = trace.closed = True
        if buffer.shared:
            _settle(trace, array)
    if tensor._requires_grad and not array.node.differentiable and grad_mode.get():
        return trace.place_variable(tensor, array)
    return trace.place_array(array)


def _settle(trace: Trace, array: Array) -> None:
    """Make what is read now of an array that the outside can write to the value read later: copy it, or flush soon."""
    memory, dtype = array.memory, array.node.dtype
    assert memory is not None
    if array.node.nbytes > _SNAPSHOT_BYTES:
        trace.weight += BYTE_LIMIT
        return
    now = memory.numpy(dtype)
    index = trace.known.get(array)
    if index is not None:
        then = trace.input_at[index].memory.numpy(dtype)  # type: ignore[union-attr]
        if now.tobytes() == then.tobytes():
            return
    copied = Buffer(array.node.nbytes, trace.device)
    copied.numpy(dtype.numpy, now.shape)[...] = now
    snapshot = Array(array.trace, array.index, array.node, Memory(copied, contiguous_layout(now.shape), dtype))
    trace.known[array] = trace.place_array(snapshot)


def _token(trace: Trace, argument: Any, operand: bool, static: bool) -> Any:
    """What an argument contributes to a step's key: a position for a tensor, the value itself for what is static."""
    if isinstance(argument, Tensor):
        return _place(trace, argument)
    kind = argument.__class__
    if kind is float or kind is int or kind is bool:
        if not operand or static or argument == 1 or argument == -1 or (
            argument == 0 and math.copysign(1.0, argument) > 0
        ):
            return kind, argument
        return trace.place_scalar(argument)
    if kind is list or kind is tuple:
        if any([isinstance(a, Tensor) for a in argument]):
            return "tensors", *[_token(trace, a, False, True) for a in argument]
        return tuple(argument)
    if isinstance(argument, np.generic):
        return _token(trace, argument.item(), operand, static)
    if isinstance(argument, np.ndarray):
        return _place(trace, from_data(argument, device=trace.device))
    return argument


def call(operation: Operation, arguments: Sequence[Any], attributes: dict[str, Any] | None = None) -> Any:
    """Record a call of `operation`; returns Tensors that stand for its results.

    The way of a repeated call is kept short: a position for each argument, one look-up, one handle.
    """
    with LOCK:
        trace = thread_state.trace
        if trace is None or trace.closed:
            if thread_state.several:
                device, arguments, attributes = _gathered(operation.name, arguments, attributes)
                trace = current_trace(device)
            else:
                trace = current_trace()
        mode: Any = thread_state.grad_enabled
        if operation.autocast is not None and (low := thread_state.autocast) is not None:
            mode = mode, low
        operands, static = operation.operands, operation.static_scalars
        tokens: list[Any] = [operation, mode]
        kind = Tensor
        for argument in arguments:
            if argument.__class__ is Tensor:
                array = argument._array
                if array.trace is trace and argument._base is None and (
                    array.node.differentiable or not argument._requires_grad
                ):
                    tokens.append(array.index)
                else:
                    tokens.append(_place(trace, argument))
            else:
                tokens.append(_token(trace, argument, len(tokens) - 2 in operands, static))
                if _spreading:
                    kind = result_class(argument, kind)
        if attributes:
            names = operation.operand_names
            tokens.append(tuple([
                (k, _token(trace, v, k in names, static)) for k, v in attributes.items() if v is not None
            ]))
            if _spreading:
                kind = result_class([*attributes.values()], kind)
        if trace.closed:  # by a view that had to be looked up anew, which was the call too many, or another device
            return call(operation, arguments, attributes)
        key = tuple(tokens)
        nodes = trace.nodes
        trace.lines.append((len(nodes), *user_line(), key))
        step = trace.step.children.get(key)
        if step is None:
            step = _defined(trace, operation, arguments, attributes, key)
        else:
            trace.step = step
            nodes += step.nodes
            trace.weight += step.weight
        index = step.result
        if index.__class__ is int:
            node = nodes[index]
            array = Array(trace, index, node)
            trace.arrays.append(array)
            result = _new(kind)
            result._array = array
            result._requires_grad = node.differentiable
        else:
            result = _wrap(trace, index, kind)
        if trace.weight > BYTE_LIMIT:
            flush(trace)
        return result


def call_on(device: Device, operation: Operation, arguments: Sequence[Any]) -> Any:
    """Record a call without tensors among its arguments; its results are on `device`."""
    if device is CPU and not thread_state.several:
        return call(operation, arguments)
    current_trace(device)  # from now on this thread's calls look where they belong
    before, thread_state.device = thread_state.device, device
    try:
        return call(operation, arguments)
    finally:
        thread_state.device = before


def _gathered(
    name: str, arguments: Sequence[Any], attributes: dict[str, Any] | None
) -> tuple[Device, Sequence[Any], dict[str, Any] | None]:
    """The device of a call, which is that of its tensors, and its arguments there: 0-d tensors come from the CPU.

    Raises RuntimeError for other tensors on different devices.
    """
    tensors = _tensors([*arguments, *(attributes or {}).values()])
    places = {t: array_of(t).device for t in tensors}
    fixed = [t for t in tensors if t.shape or places[t] is not CPU]
    if not fixed:
        return CPU if tensors else thread_state.device, arguments, attributes
    device = places[fixed[0]]
    for tensor in fixed:
        if places[tensor] is not device:
            raise RuntimeError(
                f"{name}: one tensor is on {device}, another, of shape {tensor.shape}, on {places[tensor]}; "
                "want all on one device: Tensor.to() copies to another"
            )
    numbers = [t for t in places if places[t] is not device]
    if numbers:
        there = dict(zip(numbers, moved(numbers, device), strict=True))
        arguments = [_swapped(a, there) for a in arguments]
        attributes = {k: _swapped(v, there) for k, v in attributes.items()} if attributes else attributes
    return device, arguments, attributes


def _swapped(argument: Any, there: dict[Tensor, Tensor]) -> Any:
    if isinstance(argument, Tensor):
        return there.get(argument, argument)
    return [_swapped(a, there) for a in argument] if argument.__class__ in (list, tuple) else argument


def _tensors(arguments: Sequence[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            found.append(argument)
        elif argument.__class__ in (list, tuple):
            found += _tensors(argument)
    return found


def moved(tensors: Sequence[Tensor], device: Device) -> list[Tensor]:
    """The tensors on `device`, themselves where they are there; gradients of the copies return to where they were."""
    arrays = [array_of(t) for t in tensors]
    grad = grad_mode.get()
    leaves = [t if grad and t._requires_grad and not a.node.differentiable else None
              for t, a in zip(tensors, arrays, strict=True)]
    copies = sent(arrays, device, leaves)
    return [t if copy is array else tensor_of(copy, copy.node.differentiable, t._result_class)
            for t, array, copy in zip(tensors, arrays, copies, strict=True)]


def _defined(
    trace: Trace, operation: Operation, arguments: Sequence[Any], attributes: dict[str, Any] | None, key: tuple[Any, ...]
) -> Step:
    """The step of a call that is new at this place: the operation's definition, run on Values."""
    operands, tokens = operation.operands, key[2 : 2 + len(arguments)]
    grad, low = key[1] if key[1].__class__ is tuple else (key[1], None)

    def build(graph: Any) -> Any:
        values = [_value(graph, a, t) for a, t in zip(arguments, tokens, strict=True)]
        chosen = {k: _value(graph, attributes[k], t) for k, t in key[-1]} if attributes else {}
        if not any(hasattr(v, "graph") for v in values):
            values = [graph.constant(v, dtype_of_scalar(v), weak=True)
                      if i in operands and isinstance(v, int | float) else v
                      for i, v in enumerate(values)]
        if low is not None:
            values, chosen = recast(operation, low, values, chosen)
        return operation.define(*values, **chosen)

    try:
        step = trace.advance(key, build, grad=grad)
    except BaseException:
        trace.lines.pop()
        raise
    results = (step.result,) if isinstance(step.result, int) else step.result
    step.weight += sum(trace.nodes[i].nbytes for i in results)  # counted from the next time on
    return step


def _value(graph: Any, argument: Any, token: Any) -> Any:
    """The definition's argument for a token: Values for positions, Python objects for the rest."""
    if isinstance(argument, Tensor | np.ndarray) or (token.__class__ is int):
        return graph.value(token)
    if isinstance(argument, list | tuple):
        if token and token[0] == "tensors":
            return tuple([_value(graph, a, t) for a, t in zip(argument, token[1:], strict=True)])
        return tuple(argument) if argument.__class__ is list else argument
    return argument.item() if isinstance(argument, np.generic) else argument


def _wrap(trace: Trace, result: Any, kind: type[Tensor]) -> Any:
    if result.__class__ is int:
        array = trace.handle(result)
        made = tensor_of(array, array.node.differentiable)
        made.__class__ = kind
        return made
    if hasattr(result, "_fields"):
        return type(result)(*[_wrap(trace, r, kind) for r in result])
    return tuple([_wrap(trace, r, kind) for r in result])


# ---- in and out of memory ----


def from_memory(values: np.ndarray, requires_grad: bool = False) -> Tensor:
    """A tensor over the memory of `values`, without a copy where its layout can be told in whole elements.

    The root is all memory between the lowest and the highest element; an array that is not contiguous is a view of it.
    """
    dtype = from_numpy_dtype(values.dtype)
    size = values.itemsize
    if any(s % size for s in values.strides) or not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="), order="C")
    buffer = Buffer.wrap(values)
    if values.flags.c_contiguous or not values.size:
        return tensor_of(Array.realized(buffer, contiguous_layout(values.shape), dtype), requires_grad)
    extent = buffer.nbytes // size
    offset = (values.__array_interface__["data"][0] - buffer.ptr) // size
    at = Layout(values.shape, tuple(s // size for s in values.strides), offset)
    result = tensor_of(Array.realized(buffer, at, dtype), requires_grad)
    result._base, result._layout = tensor_of(Array.realized(buffer, contiguous_layout((extent,)), dtype)), at
    return result


def _copied(tensor: Tensor, dtype: DType | None, requires_grad: bool, device: Any) -> Tensor:
    """A leaf with what `tensor` holds now."""
    if requires_grad and dtype is None and tensor.dtype.category < 2:
        dtype = get_default_dtype()
    with recording(False):
        (tensor,) = [tensor] if device is None else moved([tensor], device_of(device))
        copy = call(OPERATIONS["clone"], (tensor,)) if dtype in (None, tensor.dtype) else call(
            OPERATIONS["to_dtype"], (tensor, dtype))
    copy.requires_grad = requires_grad
    return copy


def from_data(data: Any, dtype: DType | None = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor with a copy of `data`, in `dtype` or the one that `data` suggests, on `device` or that of a tensor.

    Integers that are to require a gradient become the default float, unless `dtype` says otherwise.
    """
    place = device_of(device)
    if isinstance(data, Tensor):
        return _copied(data, dtype, requires_grad, device)
    values = as_numpy(data, dtype)
    kind = from_numpy_dtype(values.dtype)
    if requires_grad and dtype is None and kind.category < 2:
        kind = get_default_dtype()
    buffer = Buffer(values.size * kind.itemsize, place)
    buffer.numpy(kind.numpy, values.shape)[...] = values
    result = tensor_of(Array.realized(buffer, contiguous_layout(values.shape), kind))
    result.requires_grad = requires_grad
    return result
