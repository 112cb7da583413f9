"""Calls of custom Functions: their saved tensors and their graph nodes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from genesis.autograd.derivation import arguments_of
from genesis.autograd.forward_values import saved_at
from genesis.autograd.hooks import Gradients
from genesis.execution.flush import flush
from genesis.ir.annotations import AnyFunction, Attributes, Key
from genesis.ir.graph import Graph, Node
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import Device
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor, root_of, share_storage, tensor_of
from genesis.tensor.in_place import write
from genesis.tensor.trace_inputs import enter
from genesis.tensor.view_memory import seen_by
from genesis.tensor.views import detach
from genesis.tracing.state import current_trace, grad_mode, recorded
from genesis.tracing.trace import LOCK, Array, Trace

Backward = AnyFunction  # (context, *gradients of results) -> gradients of arguments, or a Deferred


class Context:
    """State that `forward` saves for `backward`: tensors, variables by name, any other attribute.

    >>> context = Context()
    >>> context.save_variable("factor", 2)
    >>> context.saved_variables["factor"], context.saved_tensors
    (2, [])
    """

    needs_input_grad: tuple[bool, ...] = ()
    _custom: weakref.ref[CustomCall] | None = None  # weak, because the call refers to this context
    _materializes = True
    _pushed: Backward | None = None  # the adjoint of the user's forward derivative, if there is one
    _reaches_more = False  # whether gradients go to tensors other than arguments
    sequence: Callable[[Iterable[Any]], Any] = list  # the type of `saved_tensors`; a tuple in PyTorch's place

    def __init__(self) -> None:
        self.saved_variables: Attributes = {}
        self._saved: list[Tensor | None] = []
        self._composites: dict[int, CompositeTensor] = {}  # which of these are elements of others than dense tensors
        self._for_forward: list[int] = []  # which of these `save_for_forward` saved
        self._pushes = False  # whether the user's forward derivative runs
        self._constant: set[int] = set()

    @property
    def saved_tensors(self) -> list[Tensor]:  # or None, where None was saved
        """The saved tensors, with their values at the end of `forward`.

        Raises RuntimeError after backward has freed them.
        """
        if self._custom is None:
            return self.sequence(self._own(self._saved))  # type: ignore[no-any-return]
        custom = self._custom()
        if custom is None:
            raise RuntimeError("saved_tensors: the graph that this context belongs to is gone")
        return self.sequence(self._own(custom.read()))  # type: ignore[no-any-return]

    def _own(self, saved: list[Tensor | None]) -> list[Tensor | None]:
        """What was saved for the forward derivative, if that runs and there is something, or for backward."""
        for k, composite in self._composites.items():
            saved = [*saved[:k], composite.with_elements(saved[k]), *saved[k + 1 :]]  # type: ignore[arg-type]
        if not self._for_forward:
            return saved
        return [tensor for k, tensor in enumerate(saved) if (k in self._for_forward) is self._pushes]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors (arguments, results, or intermediates) for `backward`. A second call adds to the first."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"save_for_backward: wants tensors or None, got {type(tensor).__name__} {tensor!r:.40}")
            if isinstance(tensor, CompositeTensor):
                self._composites[len(self._saved)] = tensor
                tensor = tensor.derived_part
            self._saved.append(tensor)

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`, which otherwise reads those saved for `backward`."""
        first = len(self._saved)
        self.save_for_backward(*tensors)
        self._for_forward += range(first, len(self._saved))

    def save_variable(self, name: str, value: object) -> None:
        """Save any Python object under a name, in `saved_variables`."""
        self.saved_variables[name] = value

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Mark results of `forward` as having no gradient."""
        self._constant.update(map(id, outputs))

    def mark_dirty(self, *inputs: Tensor) -> None:
        """No effect: in-place changes are detected without it."""

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for results without a gradient."""
        self._materializes = bool(value)


class SavedLeaf(NamedTuple):
    """A leaf and its version when saved. The reference is weak: the leaf may be a detached result of an older trace."""

    tensor: weakref.ref[Tensor]
    array: Array
    version: int | None  # of its memory, if it had memory

    @staticmethod
    def of(tensor: Tensor, array: Array) -> SavedLeaf:
        """The record of `tensor`, whose array is `array`."""
        return SavedLeaf(weakref.ref(tensor), array, None if array.memory is None else array.memory.buffer.version)

    def unchanged(self) -> Tensor | None:
        """The leaf, if it is alive and unchanged."""
        tensor = self.tensor()
        if tensor is None or array_of(tensor) is not self.array:
            return None
        memory = self.array.memory
        return tensor if self.version is None or (memory is not None and memory.buffer.version == self.version) else None


class Deferred(NamedTuple):
    """The result of a `backward` that needs an inner pass: call `gradients` after running `backward_pass`."""

    backward_pass: Any
    gradients: Callable[[], Gradients]


def _ended(*gradients: object) -> None:
    """The backward of a call whose graph was freed. It is never called: such a pass raises earlier."""


class CustomCall:
    """A call of a custom Function in a trace: its arguments, results and saved tensors."""

    __slots__ = (
        "__weakref__", "backward", "context", "first", "inputs", "kinds", "last", "leaves", "name", "outputs", "saved", "trace")

    def __init__(
        self, name: str, backward: Backward, context: Context, trace: Trace, inputs: Sequence[int | None],
        outputs: Sequence[int | None], results: Sequence[object],
    ) -> None:
        self.name = name
        self.backward = backward
        self.context = context
        self.trace = weakref.ref(trace)
        self.inputs = inputs  # positions of the arguments; None for those without a gradient
        self.outputs = outputs  # positions of the results; None for those without a gradient
        self.kinds = [(r.shape, r.dtype) if isinstance(r, Tensor) else None for r in results]
        self.saved: Sequence[int | None] | None = ()  # positions; None once freed
        self.leaves: dict[int, SavedLeaf] = {}  # the saved tensors, by number, that are leaves requiring gradients
        carried = [index for index in outputs if index is not None]
        self.first, self.last = min(carried), max(carried)
        trace.backward_state().custom_calls.update(dict.fromkeys(carried, self))

    def read(self) -> list[Tensor | None]:
        """The saved tensors."""
        trace = self.trace()
        if trace is None or self.saved is None:
            raise RuntimeError(
                f"saved_tensors: backward has released what {self.name} saved; give it retain_graph=True to read it again"
            )
        return [None if index is None else self._read(trace, k, index) for k, index in enumerate(self.saved)]

    def _read(self, trace: Trace, number: int, index: int) -> Tensor:
        """A saved tensor. An unchanged leaf is returned itself, because backward may differentiate by it."""
        leaf = self.leaves.get(number)
        unchanged = None if leaf is None else leaf.unchanged()
        return saved_at(trace, index) if unchanged is None else unchanged

    def release(self) -> None:
        """Drop the saved tensors."""
        self.saved = None
        self.context._composites.clear()

    def end(self) -> None:
        """Drop everything that only backward needs: no backward can come any more."""
        self.saved, self.context, self.backward = None, Context(), _ended

    def gradients(self, gradients: Gradients, source: Trace, adjoint: bool = False) -> list[Tensor | None] | Deferred:
        """The gradients of the arguments, computed by the user's `backward` from those of the results; with `adjoint`, by the
        adjoint of the user's forward derivative, if there is one."""
        if self.context._materializes:
            gradients = [
                filled(0, *kind, source.device) if g is None and kind is not None else g
                for g, kind in zip(gradients, self.kinds, strict=True)
            ]
        pushed = self.context._pushed if adjoint else None
        answer = (pushed or self.backward)(self.context, *gradients)
        if isinstance(answer, Deferred):
            return answer
        answers = list(answer) if isinstance(answer, tuple | list) else [answer]
        count = len(self.inputs)
        if any(a is not None for a in answers[count:]):
            raise RuntimeError(f"{self.name}.backward: returned {len(answers)} gradients for {count} arguments of forward")
        answers += [None] * (count - len(answers))
        return [
            None if index is None or a is None else self._fitted(k, a, source.nodes[index])
            for k, (a, index) in enumerate(zip(answers, self.inputs, strict=False))
        ]

    def _fitted(self, number: int, gradient: Any, like: Node) -> Tensor:
        """A gradient in its argument's shape and dtype."""
        if not isinstance(gradient, Tensor):
            raise TypeError(f"{self.name}.backward: gradient {number} is {type(gradient).__name__}; want a tensor or None")
        if gradient.shape != like.shape:
            try:
                gradient = call(OPERATIONS["sum_to_size"], (gradient, like.shape))
            except ValueError:
                raise RuntimeError(
                    f"{self.name}.backward: gradient {number} has shape {gradient.shape}; want the argument's {like.shape}"
                ) from None
        return gradient if gradient.dtype is like.dtype else call(OPERATIONS["to_dtype"], (gradient, like.dtype))


def record_custom(
    name: str, backward: Backward, context: Context, inputs: Sequence[tuple[Tensor, Array] | None],
    results: Sequence[Any], given: Mapping[int, tuple[Tensor, Array]],
) -> list[Any]:
    """Records the results as nodes of their own; `backward` computes the gradients of `inputs` from theirs.

    `given` maps ids of arguments to (argument, its array before the call).
    """
    carries = [isinstance(r, Tensor) and r.dtype.category >= 2 and id(r) not in context._constant for r in results]
    if not any(carries):
        return [plain(r) for r in results]
    with LOCK:
        saved = [None if t is None else (t, array_of(t)) for t in context._saved]
        device = _device_of(name, [array for _, array in filter(None, inputs)] + [
            array_of(r) for r in results if isinstance(r, Tensor)])
        handles = recorded(device, partial(_entered, name, backward, context, inputs, results, carries, saved))
        return [plain(r) if array is None else _wrapped(r, array, given) for r, array in zip(results, handles, strict=True)]


def _entered(
    name: str, backward: Backward, context: Context, inputs: Sequence[tuple[Tensor, Array] | None],
    results: Sequence[Any], carries: Sequence[bool], read: Sequence[tuple[Tensor, Array] | None], trace: Trace,
) -> list[Array | None]:
    """Record the call in `trace`; returns the results that have a gradient. `read`: arrays read besides `inputs`."""
    carried = [r for r, carries_gradient in zip(results, carries, strict=True) if carries_gradient]
    targets = [None if pair is None else enter(trace, *pair) for pair in inputs]
    with grad_mode(False):
        raws = [enter(trace, r, r._array) for r in carried]
    own = {id(r): k for k, r in enumerate(carried)}
    saved = [None if pair is None or id(pair[0]) in own else enter(trace, *pair) for pair in read]
    kept = tuple([own[id(t)] for t in context._saved if id(t) in own])
    start = len(trace.nodes)
    key = ("custom", name, tuple(targets), tuple(raws), tuple(saved), kept)
    trace.record(key, partial(_custom_nodes, raws=raws, targets=targets, saved=saved, kept=kept))
    positions = iter(range(start, start + len(raws)))
    outputs = [next(positions) if carries_gradient else None for carries_gradient in carries]
    custom = CustomCall(name, backward, context, trace, targets, outputs, results)
    custom.saved = [start + own[id(t)] if id(t) in own else index for t, index in zip(context._saved, saved, strict=True)]
    custom.leaves = {
        k: SavedLeaf.of(*pair) for k, pair in enumerate(read)
        if pair is not None and pair[0]._requires_grad and not pair[1].node.differentiable}
    context._custom, context._saved = weakref.ref(custom), []
    return [None if index is None else trace.handle(index) for index in outputs]


def _custom_nodes(
    graph: Graph, key: Key, raws: Sequence[int], targets: Sequence[int | None], saved: Sequence[int | None],
    kept: tuple[int, ...],
) -> None:
    """Add the nodes of a call's results. They read their values, the arguments, and saved intermediates."""
    sources = [index for index in targets if index is not None]
    read = [index for index in saved if index is not None]
    for k, raw in enumerate(raws):
        node = graph.nodes[raw]
        attrs = {"inputs": len(sources), "kept": tuple([other - k for other in kept])}
        graph.add("custom", (raw, *sources, *read), node.shape, node.dtype, attrs, differentiable=True)


def _device_of(name: str, arrays: Sequence[Array]) -> Device:
    """The common device of all; raises if they differ."""
    devices = {array.device for array in arrays}
    if len(devices) > 1:
        raise RuntimeError(f"{name}: arguments and results are on several devices: {', '.join(sorted(map(str, devices)))}")
    [device] = devices
    trace = current_trace(device)
    if trace.backward_done:
        flush(trace)
    return device


def _wrapped(result: Tensor, array: Array, given: Mapping[int, tuple[Tensor, Array]]) -> Tensor:
    """The tensor of a recorded result. An argument changed in place is the result itself, unless it is a leaf."""
    wrapped = tensor_of(array, True)
    _, before = given.get(id(result), (None, array_of(result)))
    if array_of(result) is not before:
        return write(result, wrapped) if before.node.differentiable or not result.requires_grad else wrapped
    root = root_of(result)
    if any(root_of(argument) is root for argument, _ in given.values()):  # an argument or a view of one, which it remains
        share_storage(wrapped, root, result._layout or contiguous_layout(result.shape), result._element_map)
        wrapped._seen = seen_by(wrapped, root)
    return wrapped


def plain(result: Any) -> Any:
    """A result without gradient."""
    return detach(result) if isinstance(result, Tensor) and result.requires_grad else result


def _with_context(backward: Backward, own: object, context: Context, *gradients: Tensor | None) -> object:
    """`backward` called with the user's context."""
    return backward(own, *gradients)


def created_by(self: Tensor, ctx: Any, backward: Backward) -> Tensor:
    """See `set_creator`."""
    if not callable(backward):
        raise TypeError(f"set_creator: backward must be a function, got {type(backward).__name__} {backward!r:.40}")
    names = getattr(backward, "__qualname__", type(backward).__name__).split(".")
    name = names[-2] if len(names) > 1 and names[-1] == "backward" else names[-1].strip("<>")
    sources = [t for t in ctx.saved_tensors if t is not None]
    if not isinstance(ctx, Context):  # the user's own class
        ctx, backward = Context(), partial(_with_context, backward, ctx)
    array = array_of(self)
    if not array.node.differentiable or (sources and array.trace is not current_trace(array.device)):
        inputs = [(t, array_of(t)) if t.requires_grad else None for t in sources]
        if any(inputs):
            made = record_custom(name, backward, ctx, inputs, [tensor_of(array)], {})[0]
            self._array, self._requires_grad = made._array, True
        return self
    trace = array.trace
    assert trace is not None
    with LOCK:
        targets = [enter(trace, t, array_of(t)) if t.requires_grad else None for t in sources]
        inputs_at = targets if sources else arguments_of(trace, array.index)
        CustomCall(name, backward, ctx, trace, inputs_at, [array.index], [self])
    return self


NOT_REPLAYABLE = ("created_by",)
