"""Where gradients pass on their way to the inputs that were asked for: beside that way nobody is asked or shown anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from genesis.autograd.calls import derived_at
from genesis.autograd.observers import observers
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tracing.trace import Trace

__all__ = ["leads_on", "ways_to"]


def ways_to(inputs: Sequence[Tensor], roots: Sequence[Tensor]) -> Mapping[Trace, AbstractSet[int]] | None:
    """The positions between `roots` and `inputs`; None if nobody has a word to say in these traces, or all is asked for.

    Rules need no such bounds: what they write and nobody reads is dropped in lowering.
    """
    if not inputs:
        return None
    ways: dict[Any, set[int]] = {}
    waiting = [array_of(root).trace for root in roots]
    while waiting:
        trace = waiting.pop()
        if trace is not None and trace not in ways:
            ways[trace] = set()
            waiting += [array.trace for array in trace.input_at.values()]
    if not any([s.hooks or s.node_hooks or s.custom_calls for s in (trace.backward for trace in ways)]) and not observers():
        return None
    for tensor in inputs:
        array = array_of(tensor)
        trace, index = (None, -1) if array.trace is None else derived_at(array.trace, array.index)
        if trace in ways:
            ways[trace].add(index)
    chosen = {id(tensor) for tensor in inputs}
    for trace, way in sorted(ways.items(), key=lambda pair: pair[0].number):
        for index, node in enumerate(trace.nodes):
            origin = trace.input_at.get(index)
            if node.differentiable and (
                id(trace.variables.get(index)) in chosen
                or (origin is not None and origin.index in ways.get(origin.trace, ()))
                or leads_on(trace, index, way)
            ):
                way.add(index)
    return ways


def leads_on(trace: Trace, index: int, way: AbstractSet[int] | None) -> bool:
    """Whether a gradient goes on from `index` to a position of `way` (None is everywhere)."""
    custom = trace.backward.custom_calls.get(index)
    if custom is None:
        return way is None or not way.isdisjoint(trace.nodes[index].inputs)
    return way is None or custom.context._reaches_more or not way.isdisjoint(custom.inputs)
