"""Flushing: from a trace to realized arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.ops.reference import evaluate
from genesis.ops.view import contiguous_layout
from genesis.runtime.memory import Buffer
from genesis.trace import LOCK, Array, Memory, Trace

__all__ = ["FLUSH_HOOKS", "flush", "realize"]

FLUSH_HOOKS: list[Callable[[Trace, Any], None]] = []  # called after a flush, with the trace and its plan

_HELD = 3  # references to a handle that nobody holds: the trace's list, the loop variable, getrefcount's argument


def realize(array: Array) -> Memory:
    """The memory of `array`, computed now if it is pending."""
    if array.memory is None:
        with LOCK:
            if array.memory is None:
                assert array.trace is not None
                flush(array.trace)
    assert array.memory is not None
    return array.memory


def flush(trace: Trace) -> None:
    """Compute every pending value of `trace` that somebody holds."""
    with LOCK:
        if trace.closed:
            return
        trace.closed = True
        held = [a for a in trace.arrays if sys.getrefcount(a) > _HELD]
        outputs = [a.index for a in held]
        given: dict[int, Any] = {}
        for index, array in zip([i for i, n in enumerate(trace.nodes) if n.op == "input"], trace.inputs, strict=True):
            given[index] = array.memory.numpy(array.node.dtype)  # type: ignore[union-attr]
        results = evaluate(trace.nodes, outputs, given, trace.scalars)
        for array, values in zip(held, results, strict=True):
            values = np.ascontiguousarray(values).reshape(values.shape)
            array.memory = Memory(Buffer.wrap(values), contiguous_layout(values.shape), array.node.dtype)
        trace.saved = dict(trace.input_at)
        for hook in list(FLUSH_HOOKS):
            hook(trace, None)
        trace.arrays.clear()
