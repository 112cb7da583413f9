"""Inputs that die with a flush: results are written over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import compress, repeat
from operator import itemgetter
from typing import Any

from genesis.execution.plan import Plan
from genesis.execution.result_pool import ResultPool, reusable
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Array, Trace

_second = itemgetter(1)


def reused_inputs(plan: Plan, pool: ResultPool, trace: Trace, entered: dict[Any, Any]) -> Mapping[int, Array]:
    """Number of an output's buffer -> the input that it is written over, which dies with this flush."""
    entered.clear()
    # What backward will read has one owner more.
    saved = trace.inputs if plan.keeps and trace.backward.custom_calls else [trace.input_at[i] for i in plan.saved_inputs]
    recorder = thread_state.recorder
    written = map(id, map(_second, trace.written))
    others = dict.fromkeys(written, 2) if recorder is None else {
        array: 1 + count for array, count in (recorder.references() + Counter(written)).items()}
    # If the flush fails, `trace.written` restores overwritten tensors. But `donations` proves that nothing fails after the
    # first write over an input, so this reference, and the recording's own, do not prevent reuse of the memory.
    arrays = [*map(trace.inputs.__getitem__, pool.donors)]
    owners = [*map(others.get, map(id, arrays), repeat(1))]  # inputs, written tensors, the recording
    reused = dict(compress(zip(pool.donated, arrays, strict=True), reusable(arrays, owners, pool.sizes)))
    saved.clear()
    for number, array in reused.items():
        buffer = array.memory.buffer  # type: ignore[union-attr]
        if recorder is not None:
            reused[number] = Array(None, -1, array.node, array.memory)
            recorder.gave_away(array)
        buffer.version, buffer.origin = 0, None
    return reused
