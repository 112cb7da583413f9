"""Eager mode runs a trace by the NumPy references of its nodes, one by one, where otherwise a plan runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from genesis.ops.reference import RefusedError, evaluate_all
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.devices import META
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Array, Trace


class Interpretation:
    """The values of `handles` by the references, in memory; for a later backward, all values that they are computed from.

    At the end of a flush it says what a plan says there. Where an index was out of range `failure` is (whose, in which
    words), and there is no value.
    """

    __slots__ = ("failure", "keeps", "memories", "read_collectives", "saved", "values")

    def __init__(self, trace: Trace, handles: Sequence[Array]) -> None:
        self.failure: tuple[int, Exception] | None = None
        self.keeps = any([array.node.differentiable for array in handles])
        self.saved: list[int] = []
        self.read_collectives = {index for index, node in enumerate(trace.nodes) if PRIMITIVES[node.op].kind == "collective"}
        self.memories: list[Memory] = []
        self.values: list[int] = []  # whose they are
        given = {index: array.memory.numpy(array.node.dtype) for index, array in trace.input_at.items()}  # type: ignore[union-attr]
        outputs = dict.fromkeys([array.index for array in handles])
        # A custom Function may read what nobody else does.
        wanted = [*outputs, *trace.backward.custom_calls] if self.keeps else outputs
        try:
            values = evaluate_all(trace.nodes, wanted, given, trace.scalars)
        except RefusedError as refused:
            self.failure = refused.position, refused.error
            return
        if self.keeps:
            self.saved = [index for index in values if index not in outputs and index not in given]
        self.values = [*outputs, *self.saved]
        self.memories = [
            *[_stored(values[index], trace, index) for index in outputs],
            *[_shared(trace, index) or _stored(values[index], trace, index) for index in self.saved],
        ]


class WithoutValues(Interpretation):
    """The values of `handles` on the device "meta": memory of their shapes that holds nothing, and what backward asks for."""

    __slots__ = ()

    def __init__(self, trace: Trace, handles: Sequence[Array]) -> None:
        self.failure, self.read_collectives = None, set()
        self.keeps = any([array.node.differentiable for array in handles])
        outputs = dict.fromkeys([array.index for array in handles])
        reached, waiting = set(outputs), [*outputs, *(trace.backward.custom_calls if self.keeps else ())]
        while waiting and self.keeps:
            found = set(trace.nodes[waiting.pop()].inputs) - reached
            reached |= found
            waiting += found
        self.saved = sorted(reached - outputs.keys() - trace.input_at.keys()) if self.keeps else []
        self.values = [*outputs, *self.saved]
        self.memories = [Memory.unwritten(trace.nodes[index].shape, trace.nodes[index].dtype, META) for index in self.values]


def _shared(trace: Trace, index: int) -> Memory | None:
    """The memory of the input that a value is, if it is one: backward then notices writes to that."""
    while (node := trace.nodes[index]).op in ("detach", "variable"):
        index = node.inputs[0]
    array = trace.input_at.get(index)
    return None if array is None else array.memory


def _stored(value: np.ndarray, trace: Trace, index: int) -> Memory:
    """A value in memory of its own."""
    node = trace.nodes[index]
    return Memory.of(np.broadcast_to(value, node.shape), node.dtype, trace.device)
