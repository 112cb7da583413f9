"""Running derive on what was recorded: `Tensor.backward` and `genesis.autograd.grad`.

The derivation of a value may lie in the open trace or in traces that have been flushed. It is walked trace by trace,
newest first. Gradient nodes always go to the open trace, as one step of the trie: a program that repeats itself finds
its whole backward by one look-up and derives nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from genesis.execute import flush
from genesis.ir.graph import Graph, Value
from genesis.ops.derive import derive
from genesis.ops.registry import OPERATIONS, expand
from genesis.storage import write
from genesis.tensor import Tensor, array_of, call, call_on, hold_gradient, tensor_of
from genesis.trace import LOCK, Array, Trace, current_trace, thread_state, unflushed, user_line
from genesis.transfer import sent

__all__ = ["backward", "grad"]

_RELEASED = "backward: an earlier backward released this graph; give that one retain_graph=True to run it again"
_warned: list[bool] = []


def backward(
    tensors: Tensor | Sequence[Tensor], grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None, create_graph: bool = False, inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate into `.grad` the gradients of the leaves of `tensors` (of `inputs` alone, if given)."""
    roots = [tensors] if isinstance(tensors, Tensor) else tensors
    gradients = [grad_tensors] if isinstance(grad_tensors, Tensor) else grad_tensors
    inputs = [inputs] if isinstance(inputs, Tensor) else inputs
    with LOCK:
        chosen = None if inputs is None else {id(t) for t in inputs}
        found = _walk(roots, gradients, retain_graph, create_graph, inputs or ())
        for tensor, array in found:
            if chosen is None or id(tensor) in chosen:
                _accumulate(tensor, array, create_graph)
        for trace in unflushed():
            trace.backwards += 1
            if trace.backwards > 1:
                flush(trace)


def grad(
    outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` (seeded with `grad_outputs`, or ones for 0-d outputs) by `inputs`; `.grad` is untouched.

    Raises RuntimeError for an input that the outputs do not depend on, unless `allow_unused`.

    >>> import genesis
    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> genesis.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    roots = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    seeds = [grad_outputs] if isinstance(grad_outputs, Tensor) else grad_outputs
    with LOCK:
        totals: dict[int, Tensor] = {}
        keep = create_graph if retain_graph is None else retain_graph
        for tensor, array in _walk(roots, seeds, keep, create_graph, wanted):
            new = tensor_of(array, array.node.differentiable)
            held = totals.get(id(tensor))
            totals[id(tensor)] = new if held is None else _summed(held, new, create_graph)
        missing = [i for i, t in enumerate(wanted) if id(t) not in totals]
        if missing and not allow_unused:
            raise RuntimeError(
                f"grad: the outputs do not depend on input {missing[0]} (shape {wanted[missing[0]].shape}); "
                "allow_unused=True gives None for it"
            )
        return tuple(totals.get(id(t)) for t in wanted)


def _summed(a: Tensor, b: Tensor, create_graph: bool) -> Tensor:
    before = thread_state.grad_enabled
    thread_state.grad_enabled = create_graph
    try:
        return call(OPERATIONS["add"], (a, b))
    finally:
        thread_state.grad_enabled = before


def _accumulate(tensor: Tensor, array: Array, create_graph: bool) -> None:
    """`.grad = gradient`, or `.grad += gradient` in the tensor that is there."""
    new = tensor_of(array, array.node.differentiable)
    held = tensor._grad
    if held is None:
        hold_gradient(tensor, new)
        new._keeps_derivation = True
    elif create_graph or array_of(held).node.differentiable:
        tensor._grad = _summed(held, new, True)
    else:
        write(held, _summed(held, new, False))


def _walk(
    roots: Sequence[Tensor], gradients: Sequence[Tensor | None] | None, retain_graph: bool | None, create_graph: bool,
    wanted: Sequence[Tensor],
) -> list[tuple[Tensor, Array]]:
    """(tensor, gradient) for every leaf (and wanted or retaining tensor) that the roots depend on."""
    seeds = [None] * len(roots) if gradients is None else list(gradients)
    pending: dict[Trace, dict[int, Array | None]] = {}
    found: list[tuple[Tensor, Array]] = []
    for root, seed in zip(roots, seeds, strict=True):
        array = array_of(root)
        cotangent = _seed(root, seed)
        if array.node.differentiable:
            assert array.trace is not None
            held = pending.setdefault(array.trace, {})
            held[array.index] = _joined(held, array.index, cotangent, array, create_graph)
        elif root._requires_grad:
            ones = call_on(array.device, OPERATIONS["full"], (1, root.shape, root.dtype))._array
            found.append((root, ones if cotangent is None else cotangent))
        elif not _warned:
            _warned.append(True)
            warnings.warn("backward: the tensor has no derivation (nothing it came from requires grad)", stacklevel=5)
    wanted_at: dict[Trace | None, dict[int, Tensor]] = {}
    for tensor in wanted:
        array = array_of(tensor)
        if array.node.differentiable:
            wanted_at.setdefault(array.trace, {})[array.index] = tensor
    keep = create_graph if retain_graph is None else retain_graph
    while pending:
        source = max(pending, key=lambda trace: trace.number)
        reported = {**source.retained, **wanted_at.get(source, {})}
        ends, readers = _differentiate(source, pending.pop(source), frozenset(reported), create_graph)
        if not keep:
            _release(source, readers)
        onward = []
        for index, array in ends.items():
            if index in source.variables:
                found.append((source.variables[index], array))
            elif index in source.input_at:
                onward.append((source.input_at[index], array))
            if index in reported:
                found.append((reported[index], array))
        for origin, array in onward:  # to another device it is sent computed: what was recorded here is flushed
            assert origin.trace is not None
            held = pending.setdefault(origin.trace, {})
            (there,) = sent([array], origin.trace.device)
            held[origin.index] = _joined(held, origin.index, there, there, create_graph)
    return found


def _joined(held: dict[int, Array | None], index: int, new: Array | None, like: Array, create_graph: bool) -> Array | None:
    """The sum of the cotangent held for a position, if there is one, and a new one."""
    if index not in held:
        return new
    ones = (1, like.node.shape, like.node.dtype)
    pair = [call_on(like.device, OPERATIONS["full"], ones) if a is None else tensor_of(a, a.node.differentiable)
            for a in (held[index], new)]
    return _summed(pair[0], pair[1], create_graph)._array


def _seed(root: Tensor, gradient: Tensor | None) -> Array | None:
    """The array that seeds a root; None for ones."""
    if gradient is None:
        if root.numel() != 1:
            raise RuntimeError(
                f"backward: only a tensor of one element needs no gradient; this one has shape {root.shape}: "
                "give gradient= of that shape"
            )
        return None
    if array_of(gradient).device is not array_of(root).device:
        raise RuntimeError(f"backward: gradient is on {array_of(gradient).device}; want the tensor's {array_of(root).device}")
    if gradient.shape != root.shape:
        if gradient.numel() != 1 or root.numel() != 1:
            raise ValueError(f"backward: gradient has shape {gradient.shape}; want the tensor's {root.shape}")
        gradient = call(OPERATIONS["reshape"], (gradient, root.shape))
    if gradient.dtype is not root.dtype:
        gradient = call(OPERATIONS["to_dtype"], (gradient, root.dtype))
    return array_of(gradient)


def _release(source: Trace, readers: frozenset[int]) -> None:
    """What the walked rules read will not be read again."""
    source.released |= readers
    for index in [i for i in source.saved if source.nodes[i].op not in ("input", "variable")]:
        if index in readers:
            del source.saved[index]


def _differentiate(
    source: Trace, cotangents: dict[int, Array | None], wanted: frozenset[int], create_graph: bool
) -> tuple[dict[int, Array], frozenset[int]]:
    """The cotangents of `source`'s variables and differentiable inputs, recorded in the open trace; None is ones."""
    trace = current_trace(source.device)
    if source is not trace:
        flush(source)  # if another thread has it open, or its flush was interrupted
    if source.spent:
        raise RuntimeError(_RELEASED)
    known: dict[int, int] = {}
    if source is not trace:
        known = {
            index: trace.place_array(_linked(source, index, array) if create_graph else array)
            for index, array in sorted(source.saved.items())
        }
        for index, node in enumerate(source.nodes):
            if node.op == "scalar":
                known[index] = trace.place_scalar(source.scalars[node.attrs["slot"]], node.dtype)
    seeds = tuple((i, None if array is None else trace.place_array(array)) for i, array in sorted(cotangents.items()))
    key = ("derive", None if source is trace else source.step, seeds, tuple(known.items()), wanted, create_graph)

    def build(graph: Graph) -> Any:
        nodes = source.nodes
        placed = {} if source is trace else _replayed(source, max(cotangents), graph, known)

        def place(index: int) -> Value:
            if source is not trace and index not in placed:
                raise RuntimeError(_RELEASED)
            return graph.value(index) if source is trace else placed[index]

        given = {}
        for index, seed in seeds:
            node = nodes[index]
            given[index] = expand(graph.constant(1, node.dtype), node.shape) if seed is None else graph.value(seed)
        ends, readers = derive(nodes, given, graph, place, wanted)
        copies = tuple((placed[i], i) for i in placed if nodes[i].op == "variable")
        return tuple(ends.items()), readers, copies

    trace.lines.append((len(trace.nodes), *user_line(), key))
    step = trace.advance(key, build, grad=create_graph)
    ends, readers, copies = step.result
    for position, index in copies:
        trace.variables[position] = source.variables[index]
    if not source.released.isdisjoint(readers):
        raise RuntimeError(_RELEASED)
    return {index: trace.handle(position) for index, position in ends}, readers


def _linked(source: Trace, index: int, saved: Array) -> Array:
    """A saved value from which a second derivation finds its way back into `source`."""
    if saved.trace is not None or not saved.node.differentiable:
        return saved
    return Array(source, index, saved.node, saved.memory)


def _replayed(source: Trace, last: int, graph: Graph, known: dict[int, int]) -> dict[int, Value]:
    """Copies of the source's nodes up to `last`, as far as what was saved allows; the unused are dropped in lowering."""
    placed = {index: graph.value(position) for index, position in known.items()}
    for index in range(last + 1):
        node = source.nodes[index]
        if index in placed or node.op == "input" or any(i not in placed for i in node.inputs):
            continue
        graph.nodes.append(node.renumbered(tuple(placed[i].index for i in node.inputs)))
        placed[index] = graph.value(len(graph) - 1)
    return placed
